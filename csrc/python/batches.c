/* SPDX-License-Identifier: Apache-2.0 */
/* The batches that are cut of columns: an iterator over dicts, and strings by batches. A batch is
 * made when it is asked for, of the batch of the same number of each column: threads that ask at
 * the same time get batches of their own, whole. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include <stdatomic.h>

/* ---- Strings -------------------------------------------------------------------------------- */

static PyTypeObject *strings_type;
static PyTypeObject *bytes_column;
static PyObject *names_of_column; /* of what a BytesColumn has: data, offsets, shape */

bool tfwi_set_bytes_column(PyObject *type) {
    Py_XDECREF(names_of_column);
    names_of_column = PyObject_GetAttrString(type, "__slots__");
    Py_INCREF(type);
    bytes_column = (PyTypeObject *)type;
    return names_of_column != NULL;
}

/* A sequence of BytesColumns, one for each batch. */
typedef struct string_batches {
    PyObject_VAR_HEAD
    PyObject *data;    /* the memory of the bytes of all */
    PyObject *offsets; /* a sequence of arrays: each begins with 0 */
    PyObject *shape;   /* of a batch */
    int64_t begins[];  /* where the bytes of each batch begin */
} string_batches;

/* A BytesColumn that is known to be valid. NULL, with an exception; takes over what it is of. */
static PyObject *new_strings(PyObject *bytes, PyObject *offsets, PyObject *shape) {
    newfunc create = (newfunc)PyType_GetSlot(bytes_column, Py_tp_new);
    PyObject *none = bytes != NULL && offsets != NULL ? PyTuple_New(0) : NULL;
    PyObject *strings = none != NULL ? create(bytes_column, none, NULL) : NULL;
    PyObject *const values[] = {bytes, offsets, shape};
    for (Py_ssize_t k = 0; strings != NULL && k < 3; k++) {
        if (PyObject_SetAttr(strings, PyTuple_GetItem(names_of_column, k), values[k]) != 0) {
            Py_CLEAR(strings);
        }
    }
    Py_XDECREF(none);
    Py_XDECREF(bytes);
    Py_XDECREF(offsets);
    return strings;
}

static PyObject *strings_of_batch(PyObject *self, Py_ssize_t i) {
    const string_batches *s = (const string_batches *)(void *)self;
    PyObject *offsets = PySequence_GetItem(s->offsets, i);
    if (offsets == NULL) {
        return NULL;
    }
    const Py_ssize_t begin = (Py_ssize_t)s->begins[i];
    const Py_ssize_t size = (Py_ssize_t)s->begins[i + 1] - begin;
    return new_strings(tfwi_array_in(s->data, begin, 1, &size), offsets, s->shape);
}

static void drop_strings(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    string_batches *s = (string_batches *)(void *)self;
    Py_XDECREF(s->data);
    Py_XDECREF(s->offsets);
    Py_XDECREF(s->shape);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *tfwi_new_string_batches_type(void) {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)drop_strings},
        {Py_sq_item, (void *)(uintptr_t)strings_of_batch},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "tfwire._native.objects.StringBatches",
        .basicsize = sizeof(string_batches),
        .itemsize = sizeof(int64_t),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    strings_type = (PyTypeObject *)PyType_FromSpec(&spec);
    Py_XINCREF(strings_type);
    return (PyObject *)strings_type;
}

/* (rows, *row_shape). NULL, with an exception. */
static PyObject *shape_of_batch(Py_ssize_t rows, PyObject *row_shape) {
    PyObject *first = Py_BuildValue("(n)", rows);
    PyObject *shape = first != NULL ? PySequence_Concat(first, row_shape) : NULL;
    Py_XDECREF(first);
    return shape;
}

PyObject *tfwi_new_string_batches(const tfwi_memory *data, const int64_t *offsets, size_t count,
                                  size_t strings, Py_ssize_t rows, PyObject *row_shape) {
    PyObject *held = tfwi_hold(data, 0, 0, NULL);
    const Py_ssize_t number = (Py_ssize_t)count + 1;
    string_batches *s = held != NULL ? PyObject_NewVar(string_batches, strings_type, number) : NULL;
    if (s == NULL) {
        Py_XDECREF(held);
        return NULL;
    }
    s->data = held;
    s->begins[count] = offsets[count * strings];
    s->offsets = tfwi_hold_offsets(offsets, count, strings, s->begins);
    s->shape = s->offsets != NULL ? shape_of_batch(rows, row_shape) : NULL;
    if (s->shape == NULL) {
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* An iterator over dicts. */
typedef struct batches {
    PyObject_HEAD
    PyObject *like;    /* a dict with the keys */
    PyObject *keys;    /* a list */
    PyObject *sources; /* a list, for each key: a sequence, or an iterator */
    size_t count;
    atomic_size_t next;
} batches;

/* The result of a key for a batch. NULL, with an exception. */
static PyObject *next_result(PyObject *source, size_t i) {
    if (!PyIter_Check(source)) {
        return PySequence_GetItem(source, (Py_ssize_t)i);
    }
    PyObject *next = PyIter_Next(source);
    if (next == NULL && PyErr_Occurred() == NULL) {
        PyErr_SetString(PyExc_ValueError, "fewer results than batches");
    }
    return next;
}

static PyObject *next_batch(PyObject *self) {
    batches *b = (batches *)(void *)self;
    if (b->next >= b->count) {
        return NULL;
    }
    const size_t i = b->next++;
    const Py_ssize_t count = i < b->count ? PyList_Size(b->keys) : -1;
    PyObject *found = count < 0                ? NULL
                      : count > TFWI_FEW_KEYS ? PyDict_Copy(b->like)
                                              : PyDict_New();
    for (Py_ssize_t k = 0; found != NULL && k < count; k++) {
        PyObject *next = next_result(PyList_GetItem(b->sources, k), i);
        if (next == NULL || PyDict_SetItem(found, PyList_GetItem(b->keys, k), next) != 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(next);
    }
    return found;
}

static PyObject *batches_left(PyObject *self, PyObject *unused) {
    const batches *b = (const batches *)(void *)self;
    const size_t next = b->next;
    (void)unused;
    return PyLong_FromSize_t(next < b->count ? b->count - next : 0);
}

static void drop_batches(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    batches *b = (batches *)(void *)self;
    Py_DECREF(b->like);
    Py_DECREF(b->keys);
    Py_DECREF(b->sources);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *tfwi_new_batches_type(void) {
    static PyMethodDef methods[] = {
        {"__length_hint__", batches_left, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)drop_batches},
        {Py_tp_iter, (void *)(uintptr_t)PyObject_SelfIter},
        {Py_tp_iternext, (void *)(uintptr_t)next_batch},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "tfwire._native.objects.Batches",
        .basicsize = sizeof(batches),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* A dict of the keys, keys and their sources as lists, how many batches: their iterator. */
PyObject *tfwi_new_batches(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const size_t count = tfwi_size(args[3]);
    const bool fits = PyErr_Occurred() == NULL && PyList_Size(args[1]) == PyList_Size(args[2]);
    (void)arg_count;
    if (!fits) {
        if (PyErr_Occurred() == NULL) {
            PyErr_SetString(PyExc_ValueError, "as many sources as keys");
        }
        return NULL;
    }
    PyObject *type = PyObject_GetAttrString(module, "Batches");
    batches *b = type != NULL ? PyObject_New(batches, (PyTypeObject *)type) : NULL;
    Py_XDECREF(type);
    if (b != NULL) {
        b->like = args[0], b->keys = args[1], b->sources = args[2], b->count = count;
        Py_INCREF(b->like);
        Py_INCREF(b->keys);
        Py_INCREF(b->sources);
        atomic_init(&b->next, 0);
    }
    return (PyObject *)b;
}

#endif /* TFW_PYTHON */
