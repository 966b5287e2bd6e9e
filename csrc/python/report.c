/* SPDX-License-Identifier: Apache-2.0 */
/* What streams have to say to Python, though their consumers may have any thread and no GIL: it
 * waits in a list until the main thread comes to it. To take the GIL here might never succeed: a
 * thread that has it may wait for the consumer. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/memory.h"
#include "tfwire_pipeline.h"

#include <stdatomic.h>

typedef struct report {
    struct report *next;
    uint64_t record;
    size_t path_len;
    size_t key_len;
    int is_list;
    int has_more;
    char text[]; /* the path, then the key */
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

static bool warn_of(PyObject *module, const report *r) {
    PyObject *done = PyObject_CallMethod(
        module, "warn_of", "NKNii", PyBytes_FromStringAndSize(r->text, (Py_ssize_t)r->path_len),
        (unsigned long long)r->record,
        PyBytes_FromStringAndSize(r->text + r->path_len, (Py_ssize_t)r->key_len), r->is_list,
        r->has_more);
    Py_XDECREF(done);
    return done != NULL;
}

/* Where warnings are errors, the first one is raised. */
static int warn_of_waiting(void *unused) {
    (void)unused;
    report *r = take_waiting(), *next;
    PyObject *module = r != NULL ? PyImport_ImportModule("tfwire._parsing.failure") : NULL;
    bool good = module != NULL;
    for (; r != NULL; r = next) {
        next = r->next;
        good = good && warn_of(module, r);
        tfw_free(r);
    }
    Py_XDECREF(module);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

void tfw_report_unknown(const char *name, const struct tfw_unknown *unknown) {
    const size_t path_len = strlen(name), key_len = (size_t)unknown->name_len;
    report *r = tfwi_realloc(NULL, sizeof *r + path_len + key_len);
    if (r == NULL || !Py_IsInitialized()) {
        tfw_free(r);
        return;
    }
    *r = (report){NULL, unknown->place.record, path_len, key_len, unknown->is_list,
                  unknown->has_more};
    memcpy(r->text, name, path_len);
    memcpy(r->text + path_len, unknown->name, key_len);
    r->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &r->next, r)) {
    }
    (void)Py_AddPendingCall(warn_of_waiting, NULL); /* full: a later one says it */
}

#endif /* TFW_PYTHON */
