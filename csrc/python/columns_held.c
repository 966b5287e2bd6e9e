/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a chunk of a pipeline as arrays, whose memory each keeps by itself. */
#include "python/objects.h"

#ifdef TFW_PYTHON


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

/* What numpy.asarray makes an array of, which keeps it. Python is not asked to release anything, as
 * it loses an interrupt that arrives in a finalizer. */
typedef struct held_memory {
    PyObject_VAR_HEAD
    tfw_hold *hold;  /* or NULL, and */
    PyObject *owner; /* of the memory */
    array_interface interface;
    Py_ssize_t dims[]; /* the shape, and the strides */
} held_memory;

static void drop_held(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    held_memory *held = (held_memory *)(void *)self;
    tfw_hold_release(held->hold);
    Py_XDECREF(held->owner);
    Py_XDECREF(held->interface.dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void drop_struct(PyObject *capsule) {
    Py_DECREF((PyObject *)PyCapsule_GetContext(capsule));
}

static PyObject *array_struct(PyObject *self, void *unused) {
    (void)unused;
    PyObject *capsule = PyCapsule_New(&((held_memory *)(void *)self)->interface, NULL, NULL);
    if (capsule != NULL) { /* it outlives this object only with a reference */
        Py_INCREF(self);
        (void)PyCapsule_SetContext(capsule, self);
        (void)PyCapsule_SetDestructor(capsule, drop_struct);
    }
    return capsule;
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
        .name = "tfwire._native.objects.HeldMemory",
        .basicsize = sizeof(held_memory),
        .itemsize = sizeof(Py_ssize_t),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* Sets the shape, and the strides of memory in order. */
static void set_shape(held_memory *held, const Py_ssize_t *shape, PyObject *row_shape) {
    const int rank = held->interface.rank;
    const int given = row_shape != NULL ? rank - (int)PyTuple_Size(row_shape) : rank;
    Py_ssize_t *dims = held->dims, stride = held->interface.item_size;
    for (int i = rank - 1; i >= 0; i--) {
        dims[i] = i < given ? shape[i] : PyLong_AsSsize_t(PyTuple_GetItem(row_shape, i - given));
        dims[rank + i] = stride;
        stride *= dims[i] > 1 ? dims[i] : 1;
    }
    held->interface.shape = dims;
    held->interface.strides = dims + rank;
    held->interface.item_size = 0; /* the dtype says it */
}

PyObject *tfwi_array_of(PyObject *arrays, const tfwi_memory *m, const Py_ssize_t *shape,
                        PyObject *row_shape) {
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(arrays, TFWI_HELD_MEMORY);
    held_memory *held = type != NULL ? PyObject_NewVar(held_memory, type, 2 * m->rank) : NULL;
    if (held == NULL) {
        tfw_hold_release(m->hold);
        Py_XDECREF(m->owner);
        return NULL;
    }
    Py_XINCREF(m->dtype);
    held->hold = m->hold;
    held->owner = m->owner;
    held->interface = (array_interface){
        .two = 2,
        .rank = m->rank,
        .item_size = (int)m->value_size,
        .flags = IN_ORDER | ALIGNED | NOT_SWAPPED | WRITABLE | HAS_DTYPE,
        .data = m->data,
        .dtype = m->dtype,
    };
    set_shape(held, shape, row_shape);
    PyObject *array = NULL;
    if (PyErr_Occurred() == NULL) {
        array = PyObject_CallFunctionObjArgs(PyTuple_GetItem(arrays, TFWI_ASARRAY), held, NULL);
    }
    Py_DECREF(held);
    return array;
}

/* ---- Columns of a chunk --------------------------------------------------------------------- */

/* What is made for every column of a chunk. */
typedef struct columns_of {
    PyObject *arrays;
    tfw_chunk *chunk;
    uint64_t records;
    bool is_list;
} columns_of;

static columns_of columns_of_chunk(PyObject *arrays, tfw_chunk *chunk, bool is_list) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    return (columns_of){arrays, chunk, info.records, is_list};
}

/* Holds a column. false, with an exception. */
static bool hold_one(const columns_of *of, size_t feature, tfw_column *c, tfw_hold **hold) {
    tfw_error error;
    const int status = tfw_chunk_hold(of->chunk, of->is_list, feature, c, hold, &error);
    if (status != TFW_OK) {
        PyErr_SetString(status == TFW_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError, error.text);
    }
    return status == TFW_OK;
}

/* Of none: a multiple of every size, which other libraries ask of strides. */
static size_t size_of_value(const tfw_column *c) {
    return c->value_count != 0 ? (size_t)(c->byte_count / c->value_count) : sizeof(int64_t);
}

/* The values of a column as an array of rank 1. NULL, with an exception. */
static PyObject *array_of_values(const columns_of *of, size_t feature, PyObject *dtype,
                                 tfw_column *c) {
    tfwi_memory m = {.dtype = dtype, .rank = 1};
    if (!hold_one(of, feature, c, &m.hold)) {
        return NULL;
    }
    const bool strings = c->offsets != NULL;
    const Py_ssize_t size = (Py_ssize_t)(strings ? c->byte_count : c->value_count);
    m.data = c->values;
    m.value_size = strings ? 1 : size_of_value(c);
    return tfwi_array_of(of->arrays, &m, &size, NULL);
}

/* count + 1 offsets that begin with 0, in memory of their own: their ends are also those of other
 * rows. None for NULL; NULL, with an exception. */
static PyObject *from_zero(const columns_of *of, const int64_t *offsets, uint64_t count) {
    if (offsets == NULL) {
        Py_RETURN_NONE;
    }
    const Py_ssize_t number = (Py_ssize_t)count + 1;
    PyObject *owner = PyByteArray_FromStringAndSize(NULL, number * (Py_ssize_t)sizeof *offsets);
    if (owner == NULL) {
        return NULL;
    }
    int64_t *const restrict own = (int64_t *)(void *)PyByteArray_AsString(owner);
    const int64_t first = offsets[0];
    for (Py_ssize_t i = 0; i < number; i++) {
        own[i] = offsets[i] - first;
    }
    PyObject *dtype = PyTuple_GetItem(of->arrays, TFWI_INT64_DTYPE);
    const tfwi_memory m = {own, sizeof *own, dtype, NULL, owner, 1};
    return tfwi_array_of(of->arrays, &m, &number, NULL);
}

/* Adds the number of a column, and its offsets, splits and steps, to a list. */
static bool add_offsets(const columns_of *of, PyObject *list, size_t number, const tfw_column *c) {
    PyObject *offsets = from_zero(of, c->offsets, c->value_count);
    PyObject *splits = offsets != NULL ? from_zero(of, c->splits, c->cell_count) : NULL;
    PyObject *steps = splits != NULL ? from_zero(of, c->steps, of->records) : NULL;
    PyObject *found =
        steps != NULL ? Py_BuildValue("nOOO", (Py_ssize_t)number, offsets, splits, steps) : NULL;
    const bool done = found != NULL && PyList_Append(list, found) == 0;
    Py_XDECREF(offsets);
    Py_XDECREF(splits);
    Py_XDECREF(steps);
    Py_XDECREF(found);
    return done;
}

/* arrays, chunk, is_list, dtypes: two lists. The array of each column, of the dtypes; and, of
 * columns that have some, the number of the column, and its offsets, splits and steps, or None. No
 * lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[1]);
    const bool is_list = tfwi_size(args[2]) != 0;
    PyObject *dtypes = args[3];
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(dtypes) : -1;
    (void)module, (void)arg_count;
    PyObject *columns = count >= 0 ? PyList_New(count) : NULL;
    PyObject *offsets = columns != NULL ? PyList_New(0) : NULL;
    bool done = offsets != NULL;
    const columns_of of = done ? columns_of_chunk(args[0], chunk, is_list) : (columns_of){0};
    for (Py_ssize_t i = 0; done && i < count; i++) {
        tfw_column c;
        PyObject *array = array_of_values(&of, (size_t)i, PyList_GetItem(dtypes, i), &c);
        done = array != NULL && PyList_SetItem(columns, i, array) == 0;
        if (done && (c.offsets != NULL || c.splits != NULL || c.steps != NULL)) {
            done = add_offsets(&of, offsets, (size_t)i, &c);
        }
    }
    PyObject *found = done ? PyTuple_Pack(2, columns, offsets) : NULL;
    Py_XDECREF(columns);
    Py_XDECREF(offsets);
    return found;
}

/* ---- Columns of a chunk, cut into batches --------------------------------------------------- */

/* Which rows of a chunk, and how many batches they are. */
typedef struct rows_of {
    uint64_t first;
    uint64_t count;
    uint64_t batches;
} rows_of;

/* Batches of strings. NULL, with an exception. */
static PyObject *cut_strings(const columns_of *of, const rows_of *rows, tfw_column *c,
                             tfwi_memory *m, PyObject *row_shape) {
    const uint64_t each = c->value_count / of->records; /* of a row */
    const int64_t *offsets = c->offsets + rows->first * each;
    const Py_ssize_t end = (Py_ssize_t)offsets[rows->count * each];
    m->data = (uint8_t *)c->values - c->offsets[0]; /* from the bytes of other rows on */
    m->value_size = m->rank = 1;
    PyObject *data = tfwi_array_of(of->arrays, m, &end, NULL);
    PyObject *size = Py_BuildValue("(n)", (Py_ssize_t)(rows->count / rows->batches));
    PyObject *shape = size != NULL ? PySequence_Concat(size, row_shape) : NULL;
    PyObject *found = data != NULL && shape != NULL
                          ? tfwi_new_string_batches(of->arrays, data, offsets,
                                                    (size_t)rows->batches, shape)
                          : NULL;
    Py_XDECREF(data);
    Py_XDECREF(size);
    Py_XDECREF(shape);
    return found;
}

/* The batches of a dense column as a sequence. NULL, with an exception. */
static PyObject *cut_column(const columns_of *of, const rows_of *rows, size_t feature,
                            PyObject *dtype, PyObject *row_shape) {
    tfwi_memory m = {.dtype = dtype};
    tfw_column c;
    if (!hold_one(of, feature, &c, &m.hold)) {
        return NULL;
    }
    if (c.offsets != NULL) {
        return cut_strings(of, rows, &c, &m, row_shape);
    }
    const Py_ssize_t shape[] = {(Py_ssize_t)rows->batches,
                                (Py_ssize_t)(rows->count / rows->batches)};
    m.data = (uint8_t *)c.values + rows->first * (c.byte_count / of->records);
    m.value_size = size_of_value(&c);
    m.rank = 2 + (int)PyTuple_Size(row_shape);
    return tfwi_array_of(of->arrays, &m, shape, row_shape);
}

/* arrays, chunk, first, count, batches, columns, dtypes, shapes: a list of sequences: the batches
 * of so many rows from the first one on, of columns whose rows are dense and of these shapes. No
 * lock is waited for long: the GIL is held. */
PyObject *tfwi_cut_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[1]);
    const rows_of rows = {tfwi_size(args[2]), tfwi_size(args[3]), tfwi_size(args[4])};
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(args[5]) : -1;
    (void)module, (void)arg_count;
    PyObject *found = count >= 0 ? PyList_New(count) : NULL;
    if (found == NULL) {
        return NULL;
    }
    const columns_of of = columns_of_chunk(args[0], chunk, false);
    const bool fits = of.records != 0 && rows.batches != 0 && rows.count % rows.batches == 0 &&
                      rows.count <= of.records && rows.first <= of.records - rows.count;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        const size_t feature = tfwi_size(PyList_GetItem(args[5], i));
        PyObject *cut = cut_column(&of, &rows, feature, PyList_GetItem(args[6], i),
                                   PyList_GetItem(args[7], i));
        if (cut == NULL || PyList_SetItem(found, i, cut) != 0) {
            Py_DECREF(found);
            return NULL;
        }
    }
    if (!fits) {
        Py_DECREF(found);
        PyErr_SetString(PyExc_ValueError, "no such rows");
        return NULL;
    }
    return found;
}

#endif /* TFW_PYTHON */
