/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a chunk of a pipeline, each kept by an object of Python of its own, and the
 * batches that are cut of columns. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "tfwire_pipeline.h"

/* ---- Memory of a column --------------------------------------------------------------------- */

/* NumPy's array interface of C, version 3: what __array_struct__ points to. */
typedef struct array_interface {
    int two; /* always 2 */
    int rank;
    char kind;
    int item_size;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    void *data;
    PyObject *dtype;
} array_interface;

enum { /* flags */
    IN_ORDER = 0x3,     /* C's and Fortran's */
    ALIGNED = 0x100,
    NOT_SWAPPED = 0x200,
    WRITABLE = 0x400,
    HAS_DTYPE = 0x800,
};

/* What numpy.asarray makes an array of rank 1 of, which keeps it. Python is not asked to release
 * anything, as it loses an interrupt that arrives in a finalizer. */
typedef struct held_column {
    PyObject_HEAD
    tfw_hold *hold;
    array_interface interface;
    Py_ssize_t size;
    Py_ssize_t stride;
} held_column;

static void drop_held(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    held_column *held = (held_column *)(void *)self;
    tfw_hold_release(held->hold);
    Py_XDECREF(held->interface.dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *array_struct(PyObject *self, void *unused) {
    (void)unused;
    return PyCapsule_New(&((held_column *)(void *)self)->interface, NULL, NULL);
}

PyObject *tfwi_new_held_type(void) {
    static PyGetSetDef attributes[] = {
        {"__array_struct__", array_struct, NULL, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)drop_held},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "tfwire._native.objects.HeldColumn",
        .basicsize = sizeof(held_column),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* Holds a column of a chunk. NULL, with an exception. */
static PyObject *new_held(PyObject *type, tfw_chunk *chunk, bool is_list, size_t feature,
                          PyObject *dtype, tfw_column *column) {
    tfw_hold *hold;
    tfw_error error;
    const int status = tfw_chunk_hold(chunk, is_list, feature, column, &hold, &error);
    if (status != TFW_OK) {
        PyErr_SetString(status == TFW_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError, error.text);
        return NULL;
    }
    held_column *held = PyObject_New(held_column, (PyTypeObject *)type);
    if (held == NULL) {
        tfw_hold_release(hold);
        return NULL;
    }
    const uint64_t values = column->offsets != NULL ? column->byte_count : column->value_count;
    Py_INCREF(dtype);
    held->hold = hold;
    held->size = (Py_ssize_t)values;
    held->stride = values != 0 ? (Py_ssize_t)(column->byte_count / values) : 1;
    held->interface = (array_interface){
        .two = 2,
        .rank = 1,
        .flags = IN_ORDER | ALIGNED | NOT_SWAPPED | WRITABLE | HAS_DTYPE,
        .shape = &held->size,
        .strides = &held->stride,
        .data = column->values,
        .dtype = dtype,
    };
    return (PyObject *)held;
}

/* ---- Columns of a chunk --------------------------------------------------------------------- */

/* count + 1 offsets that begin with 0, in memory of their own: their ends are also those of other
 * rows. NULL for NULL, or with an exception. */
static PyObject *from_zero(const int64_t *offsets, uint64_t count) {
    if (offsets == NULL) {
        return NULL;
    }
    const size_t number = (size_t)count + 1;
    PyObject *found = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(number * sizeof *offsets));
    if (found != NULL) {
        int64_t *const restrict own = (int64_t *)(void *)PyByteArray_AsString(found);
        const int64_t first = offsets[0];
        for (size_t i = 0; i < number; i++) {
            own[i] = offsets[i] - first;
        }
    }
    return found;
}

/* Adds the number of a column, and its offsets, splits and steps, to a list. */
static bool add_offsets(PyObject *list, size_t number, const tfw_column *c, uint64_t records) {
    PyObject *const own[3] = {from_zero(c->offsets, c->value_count),
                              from_zero(c->splits, c->cell_count), from_zero(c->steps, records)};
    PyObject *of[3];
    for (int i = 0; i < 3; i++) {
        of[i] = own[i] != NULL ? own[i] : Py_None;
    }
    PyObject *found = PyErr_Occurred() == NULL
                          ? Py_BuildValue("nOOO", (Py_ssize_t)number, of[0], of[1], of[2])
                          : NULL;
    const bool done = found != NULL && PyList_Append(list, found) == 0;
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(own[i]);
    }
    Py_XDECREF(found);
    return done;
}

/* chunk, its records, is_list, dtypes: two lists. What each column's array is made of, of the
 * dtypes; and, of columns that have some, the number of the column, and offsets, splits and steps
 * as bytearrays, or None. No lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[0]);
    const size_t records = tfwi_size(args[1]);
    const bool is_list = tfwi_size(args[2]) != 0;
    PyObject *dtypes = args[3];
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(dtypes) : -1;
    (void)arg_count;
    PyObject *type = count >= 0 ? PyObject_GetAttrString(module, "HeldColumn") : NULL;
    PyObject *columns = type != NULL ? PyList_New(count) : NULL;
    PyObject *offsets = columns != NULL ? PyList_New(0) : NULL;
    bool done = offsets != NULL;
    for (Py_ssize_t i = 0; done && i < count; i++) {
        tfw_column c;
        PyObject *held =
            new_held(type, chunk, is_list, (size_t)i, PyList_GetItem(dtypes, i), &c);
        done = held != NULL && PyList_SetItem(columns, i, held) == 0;
        if (done && (c.offsets != NULL || c.splits != NULL || c.steps != NULL)) {
            done = add_offsets(offsets, (size_t)i, &c, records);
        }
    }
    PyObject *found = done ? PyTuple_Pack(2, columns, offsets) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(columns);
    Py_XDECREF(offsets);
    return found;
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* The slice of the bytes of a batch. NULL, with an exception. */
static PyObject *new_slice(int64_t begin, int64_t end) {
    PyObject *first = PyLong_FromLongLong(begin), *last = PyLong_FromLongLong(end);
    PyObject *slice = first != NULL && last != NULL ? PySlice_New(first, last, NULL) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(last);
    return slice;
}

/* offsets, strings of a batch, batches: the offsets of each batch, which begin with 0, one batch
 * after another in a bytearray; and a list of the slices of the bytes. */
PyObject *tfwi_cut_offsets(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const int64_t *offsets = tfwi_address(args[0]);
    const size_t size = tfwi_size(args[1]), count = tfwi_size(args[2]);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    const size_t bytes = (size + 1) * count * sizeof *offsets;
    PyObject *own = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    PyObject *slices = own != NULL ? PyList_New((Py_ssize_t)count) : NULL;
    bool done = slices != NULL;
    int64_t *restrict next = done ? (int64_t *)(void *)PyByteArray_AsString(own) : NULL;
    for (size_t i = 0; done && i < count; i++, offsets += size) {
        const int64_t first = offsets[0];
        for (size_t k = 0; k <= size; k++) {
            *next++ = offsets[k] - first;
        }
        PyObject *slice = new_slice(first, offsets[size]);
        done = slice != NULL && PyList_SetItem(slices, (Py_ssize_t)i, slice) == 0;
    }
    PyObject *found = done ? PyTuple_Pack(2, own, slices) : NULL;
    Py_XDECREF(own);
    Py_XDECREF(slices);
    return found;
}

/* A dict of keys, keys as a list, iterators: a dict of the next of each. */
PyObject *tfwi_next_dict(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    PyObject *keys = args[1], *iterators = args[2];
    const Py_ssize_t count = PyList_Size(keys);
    (void)module, (void)arg_count;
    PyObject *found = count > TFWI_FEW_KEYS ? PyDict_Copy(args[0]) : PyDict_New();
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *iterator = PyList_GetItem(iterators, i);
        PyObject *next = iterator != NULL ? PyIter_Next(iterator) : NULL;
        if (next == NULL || PyDict_SetItem(found, PyList_GetItem(keys, i), next) != 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(next);
    }
    if (found == NULL && PyErr_Occurred() == NULL) {
        PyErr_SetString(PyExc_ValueError, "fewer results than batches");
    }
    return found;
}

#endif /* TFW_PYTHON */
