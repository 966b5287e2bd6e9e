/* SPDX-License-Identifier: Apache-2.0 */
/* One Example at a time, by a schema of dense features, as a dict. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "parse/columns.h"

enum { LONG_MESSAGE = 1 << 14 }; /* from which on others may run while it is parsed */

static const char single_name[] = "tfw_single";

/* What becomes the value of a key. */
typedef struct item {
    PyObject *key;
    PyObject *from;   /* an array; what is called; or None: a string */
    Py_ssize_t place; /* in the array; -1: it is called; the number of the feature */
} item;

/* Columns of one record, whose numbers are in arrays of Python. For one thread at a time. */
typedef struct single {
    tfw_columns *columns;
    unsigned flags;
    PyObject *held;  /* the columns and what the items borrow */
    PyObject *alike; /* a dict of the keys, to be copied; NULL: they are few */
    size_t count;
    item items[];
} single;

/* ---- Made ----------------------------------------------------------------------------------- */

static void free_single(PyObject *capsule) {
    single *s = PyCapsule_GetPointer(capsule, single_name);
    Py_XDECREF(s->held);
    Py_XDECREF(s->alike);
    tfw_free(s);
}

static bool set_item(single *s, size_t i, PyObject *given) {
    item *item = &s->items[i];
    *item = (struct item){PyTuple_GetItem(given, 0), PyTuple_GetItem(given, 1), 0};
    item->place = PyErr_Occurred() == NULL ? PyLong_AsSsize_t(PyTuple_GetItem(given, 2)) : -1;
    return PyErr_Occurred() == NULL &&
           (s->alike == NULL || PyDict_SetItem(s->alike, item->key, Py_None) == 0);
}

/* columns, flags, owner of the columns, items: what parses by them. An item is a tuple: a key, what
 * its value is made of, and a place, as above. */
PyObject *tfwi_new_single(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    PyObject *items = args[3];
    tfw_columns *columns = tfwi_address(args[0]);
    const unsigned flags = (unsigned)PyLong_AsUnsignedLong(args[1]);
    const Py_ssize_t count = PyTuple_Size(items);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    single *s = tfwi_calloc(1, sizeof *s + (size_t)count * sizeof s->items[0]);
    PyObject *capsule = s != NULL ? PyCapsule_New(s, single_name, free_single) : NULL;
    if (capsule == NULL) {
        tfw_free(s);
        return PyErr_Occurred() == NULL ? PyErr_NoMemory() : NULL;
    }
    s->columns = columns;
    s->flags = flags | TFW_SINGLE;
    s->held = PyTuple_Pack(2, args[2], items);
    s->alike = count > TFWI_FEW_KEYS ? PyDict_New() : NULL;
    s->count = (size_t)count;
    bool done = s->held != NULL && (count <= TFWI_FEW_KEYS || s->alike != NULL);
    for (size_t i = 0; done && i < s->count; i++) {
        done = set_item(s, i, PyTuple_GetItem(items, (Py_ssize_t)i));
    }
    if (!done) {
        Py_CLEAR(capsule);
    }
    return capsule;
}

/* ---- Parsed --------------------------------------------------------------------------------- */

static PyObject *value_of(const single *s, const item *item) {
    if (item->from == Py_None) {
        const tfwi_column *column = &s->columns->columns[item->place];
        return PyBytes_FromStringAndSize((const char *)column->values.of,
                                         (Py_ssize_t)column->offsets.of[1]);
    }
    return item->place >= 0 ? PySequence_GetItem(item->from, item->place)
                            : PyObject_CallObject(item->from, NULL);
}

static PyObject *dict_of_record(const single *s) {
    PyObject *dict = s->alike != NULL ? PyDict_Copy(s->alike) : PyDict_New();
    for (size_t i = 0; dict != NULL && i < s->count; i++) {
        PyObject *value = value_of(s, &s->items[i]);
        if (value == NULL || PyDict_SetItem(dict, s->items[i].key, value) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}

/* single, message, error: the dict of a bytes object; the status of a failure as an int. */
PyObject *tfwi_parse_single(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    single *s = PyCapsule_GetPointer(args[0], single_name);
    const uint8_t *message = (const uint8_t *)PyBytes_AsString(args[1]);
    tfw_error *error = tfwi_address(args[2]);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    const tfw_span span = {.length = (uint64_t)Py_SIZE(args[1])};
    PyThreadState *state = span.length >= LONG_MESSAGE ? PyEval_SaveThread() : NULL;
    tfw_columns_clear(s->columns);
    const int status = tfw_parse(s->columns, message, (size_t)span.length, &span, 1, s->flags,
                                 NULL, error);
    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
    return status == TFW_OK ? dict_of_record(s) : PyLong_FromLong(status);
}

#endif /* TFW_PYTHON */
