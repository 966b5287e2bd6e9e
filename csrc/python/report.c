/* SPDX-License-Identifier: Apache-2.0 */
/* What streams have to say to Python, though their consumers may have any thread and no GIL: it
 * waits in a list until the main thread comes to it. To take the GIL here might never succeed: a
 * thread that has it may wait for the consumer. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/memory.h"
#include "parse/unknown.h"
#include "tfwire_pipeline.h"

#include <stdatomic.h>

typedef struct report {
    struct report *next;
    uint64_t record;
    size_t path_len;
    int is_list;
    int has_more;
    size_t count;
    size_t key_len[2 * TFWI_MOST_UNKNOWN];
    char text[]; /* the path, then the keys */
} report;

static _Atomic(report *) waiting; /* the last one first */

/* Those that wait, in order. */
static report *take_waiting(void) {
    report *first = NULL, *next;
    for (report *r = atomic_exchange(&waiting, NULL); r != NULL; r = next) {
        next = r->next;
        r->next = first;
        first = r;
    }
    return first;
}

/* The keys as a list. NULL, with an exception. */
static PyObject *keys_of(const report *r) {
    PyObject *keys = PyList_New((Py_ssize_t)r->count);
    const char *key = r->text + r->path_len;
    for (size_t i = 0; keys != NULL && i < r->count; key += r->key_len[i++]) {
        PyObject *bytes = PyBytes_FromStringAndSize(key, (Py_ssize_t)r->key_len[i]);
        if (bytes == NULL || PyList_SetItem(keys, (Py_ssize_t)i, bytes) != 0) {
            Py_CLEAR(keys);
        }
    }
    return keys;
}

static void warn_of(PyObject *module, const report *r) {
    PyObject *done =
        PyObject_CallMethod(module, "warn_of", "NKiNi",
                            PyBytes_FromStringAndSize(r->text, (Py_ssize_t)r->path_len),
                            (unsigned long long)r->record, r->is_list, keys_of(r), r->has_more);
    Py_XDECREF(done);
}

/* Where warnings are errors they are printed: the main thread may be anywhere, and has nothing to
 * do with them. Only its own interrupts are raised. */
static int warn_of_waiting(void *unused) {
    (void)unused;
    report *r = take_waiting(), *next;
    PyObject *module = r != NULL ? PyImport_ImportModule("tfwire._parsing.failure") : NULL;
    for (; r != NULL; r = next) {
        next = r->next;
        if (module != NULL && PyErr_Occurred() == NULL) {
            warn_of(module, r);
        }
        if (PyErr_Occurred() != NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_WriteUnraisable(module);
        }
        tfw_free(r);
    }
    Py_XDECREF(module);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

void tfw_report_unknown(const char *name, const struct tfw_unknown *unknown, size_t count) {
    const size_t path_len = strlen(name);
    size_t len = path_len;
    for (size_t i = 0; i < count; i++) {
        len += (size_t)unknown[i].name_len;
    }
    report *r = tfwi_realloc(NULL, sizeof *r + len);
    if (r == NULL || !Py_IsInitialized()) {
        tfw_free(r);
        return;
    }
    *r = (report){NULL, unknown->place.record, path_len, unknown->is_list, 0, count, {0}};
    char *text = memcpy(r->text, name, path_len);
    text += path_len;
    for (size_t i = 0; i < count; text += r->key_len[i++]) {
        r->key_len[i] = (size_t)unknown[i].name_len;
        r->has_more |= unknown[i].has_more;
        memcpy(text, unknown[i].name, r->key_len[i]);
    }
    r->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &r->next, r)) {
    }
    (void)Py_AddPendingCall(warn_of_waiting, NULL); /* full: a later one says it */
}

#endif /* TFW_PYTHON */
