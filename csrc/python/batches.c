/* SPDX-License-Identifier: Apache-2.0 */
/* The batches that are cut of columns: an iterator over dicts, and strings by batches. A batch is
 * made when it is asked for, of the batch of the same number of each column: threads that ask at
 * the same time get batches of their own, whole. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include <stdatomic.h>

/* ---- Strings -------------------------------------------------------------------------------- */

/* A sequence of BytesColumns, one for each batch. */
typedef struct string_batches {
    PyObject_HEAD
    PyObject *data;    /* an array of the bytes of all */
    PyObject *offsets; /* an array: those of each batch begin with 0 */
    PyObject *shape;   /* of a batch */
    PyObject *type;    /* BytesColumn, and */
    PyObject *names;   /* of what it has: data, offsets, shape */
    PyObject *owner;   /* of the memory of the offsets: a bytearray, which is followed by */
    int64_t *begins;   /* where the bytes of each batch begin, and the last ones end */
    size_t count;
} string_batches;

/* The bytes of a batch. NULL, with an exception. */
static PyObject *bytes_of_batch(const string_batches *s, size_t i) {
    PyObject *first = PyLong_FromLongLong(s->begins[i]);
    PyObject *last = PyLong_FromLongLong(s->begins[i + 1]);
    PyObject *slice = first != NULL && last != NULL ? PySlice_New(first, last, NULL) : NULL;
    PyObject *bytes = slice != NULL ? PyObject_GetItem(s->data, slice) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(last);
    Py_XDECREF(slice);
    return bytes;
}

/* A BytesColumn that is known to be valid. NULL, with an exception; takes over what it is of. */
static PyObject *new_strings(const string_batches *s, PyObject *bytes, PyObject *offsets) {
    newfunc create = (newfunc)PyType_GetSlot((PyTypeObject *)s->type, Py_tp_new);
    PyObject *none = bytes != NULL && offsets != NULL ? PyTuple_New(0) : NULL;
    PyObject *strings = none != NULL ? create((PyTypeObject *)s->type, none, NULL) : NULL;
    PyObject *const values[] = {bytes, offsets, s->shape};
    for (Py_ssize_t k = 0; strings != NULL && k < 3; k++) {
        if (PyObject_SetAttr(strings, PyTuple_GetItem(s->names, k), values[k]) != 0) {
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
    if (i < 0 || (size_t)i >= s->count) {
        PyErr_SetString(PyExc_IndexError, "no such batch");
        return NULL;
    }
    PyObject *bytes = bytes_of_batch(s, (size_t)i);
    return new_strings(s, bytes, bytes != NULL ? PySequence_GetItem(s->offsets, i) : NULL);
}

static void drop_strings(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    string_batches *s = (string_batches *)(void *)self;
    Py_XDECREF(s->data);
    Py_XDECREF(s->offsets);
    Py_XDECREF(s->shape);
    Py_XDECREF(s->type);
    Py_XDECREF(s->names);
    Py_XDECREF(s->owner);
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
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* Cuts the offsets of s->count batches of so many strings each. false: out of memory. */
static bool offsets_from_zero(string_batches *s, const int64_t *offsets, size_t strings) {
    const size_t bytes = ((strings + 1) * s->count + s->count + 1) * sizeof *offsets;
    s->owner = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (s->owner == NULL) {
        return false;
    }
    int64_t *restrict next = (int64_t *)(void *)PyByteArray_AsString(s->owner);
    s->begins = next + (strings + 1) * s->count;
    for (size_t i = 0; i < s->count; i++, offsets += strings, next += strings + 1) {
        const int64_t first = s->begins[i] = offsets[0];
        for (size_t k = 0; k <= strings; k++) {
            next[k] = offsets[k] - first;
        }
    }
    s->begins[s->count] = offsets[0];
    return true;
}

PyObject *tfwi_new_string_batches(PyObject *arrays, PyObject *data, const int64_t *offsets,
                                  size_t count, PyObject *shape) {
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(arrays, TFWI_STRING_BATCHES);
    string_batches *s = type != NULL ? PyObject_New(string_batches, type) : NULL;
    if (s == NULL) {
        return NULL;
    }
    PyObject *const column = PyTuple_GetItem(arrays, TFWI_BYTES_COLUMN);
    size_t strings = 1;
    for (Py_ssize_t k = 0; k < PyTuple_Size(shape); k++) {
        strings *= tfwi_size(PyTuple_GetItem(shape, k));
    }
    s->data = data, s->shape = shape, s->type = column, s->count = count;
    s->offsets = s->owner = NULL;
    Py_INCREF(data);
    Py_INCREF(shape);
    Py_XINCREF(column);
    s->names = column != NULL ? PyObject_GetAttrString(column, "__slots__") : NULL;
    if (s->names != NULL && PyErr_Occurred() == NULL && offsets_from_zero(s, offsets, strings)) {
        const Py_ssize_t dims[] = {(Py_ssize_t)count, (Py_ssize_t)strings + 1};
        PyObject *dtype = PyTuple_GetItem(arrays, TFWI_INT64_DTYPE);
        char *own = PyByteArray_AsString(s->owner);
        const tfwi_memory m = {own, sizeof *offsets, dtype, NULL, s->owner, 2};
        Py_INCREF(s->owner);
        s->offsets = tfwi_array_of(arrays, &m, dims, NULL);
    }
    if (s->offsets == NULL) {
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

/* arrays, data, offsets, batches, shape of a batch: BytesColumns, of an array of the bytes of all
 * strings, and of as many of the offsets, by their address, as all batches have, and one more. */
PyObject *tfwi_cut_strings(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const int64_t *offsets = tfwi_address(args[2]);
    const size_t count = tfwi_size(args[3]);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    return tfwi_new_string_batches(args[0], args[1], offsets, count, args[4]);
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
