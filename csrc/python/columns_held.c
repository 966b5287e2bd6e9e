/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a chunk of a pipeline as arrays, whose memory each keeps by itself. */
#include "python/objects.h"

#ifdef TFW_PYTHON


/* ---- NumPy ---------------------------------------------------------------------------------- */

/* The places in the table of NumPy's C API, which do not change: NumPy 1 and 2. */
enum { GET_VERSION = 0, ARRAY_TYPE = 2, NEW_FROM_DESCR = 94, SET_BASE_OBJECT = 282 };
enum { NEWEST_NUMPY = 2, ALIGNED_AND_WRITABLE = 0x500 };

typedef unsigned get_version(void);
typedef PyObject *new_from_descr(PyTypeObject *type, PyObject *dtype, int rank,
                                 const Py_ssize_t *shape, const Py_ssize_t *strides, void *data,
                                 int flags, PyObject *like);
typedef int set_base_object(PyObject *array, PyObject *base);

/* Set when the package is imported. */
static struct {
    PyTypeObject *type;
    new_from_descr *create;
    set_base_object *set_base;
    PyObject *int64; /* the dtype */
} numpy;
static PyTypeObject *held_type;

/* The capsule of NumPy's C API, the dtype of offsets, BytesColumn: for all arrays. */
PyObject *tfwi_set_array_types(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    void **const table = PyCapsule_GetPointer(args[0], NULL);
    (void)module, (void)arg_count;
    if (table == NULL || !tfwi_set_bytes_column(args[2])) {
        return NULL;
    }
    const unsigned version = ((get_version *)(uintptr_t)table[GET_VERSION])() >> 24;
    if (version > NEWEST_NUMPY) {
        return PyErr_Format(PyExc_ImportError, "this tfwire knows no NumPy %u", version);
    }
    numpy.type = (PyTypeObject *)table[ARRAY_TYPE];
    numpy.create = (new_from_descr *)(uintptr_t)table[NEW_FROM_DESCR];
    numpy.set_base = (set_base_object *)(uintptr_t)table[SET_BASE_OBJECT];
    Py_INCREF(args[1]);
    numpy.int64 = args[1];
    Py_RETURN_NONE;
}

/* ---- Memory of a column --------------------------------------------------------------------- */

/* A sequence of arrays of one shape, each of which keeps it. Python is not asked to release
 * anything, as it loses an interrupt that arrives in a finalizer. */
typedef struct held_memory {
    PyObject_VAR_HEAD
    tfwi_memory memory;
    Py_ssize_t count;
    Py_ssize_t stride; /* in bytes */
    Py_ssize_t shape[];
} held_memory;

PyObject *tfwi_array_in(PyObject *self, Py_ssize_t offset, int rank, const Py_ssize_t *shape) {
    const tfwi_memory *m = &((held_memory *)(void *)self)->memory;
    Py_INCREF(m->dtype);
    PyObject *array = numpy.create(numpy.type, m->dtype, rank, shape, NULL, m->data + offset,
                                   ALIGNED_AND_WRITABLE, NULL);
    if (array != NULL) {
        Py_INCREF(self);
        if (numpy.set_base(array, self) != 0) {
            Py_CLEAR(array);
        }
    }
    return array;
}

static PyObject *array_of_batch(PyObject *self, Py_ssize_t i) {
    const held_memory *held = (const held_memory *)(void *)self;
    if (i < 0 || i >= held->count) {
        PyErr_SetString(PyExc_IndexError, "no such batch");
        return NULL;
    }
    return tfwi_array_in(self, i * held->stride, (int)Py_SIZE(self), held->shape);
}

static void release_memory(const tfwi_memory *m) {
    tfw_hold_release(m->hold);
    Py_XDECREF(m->owner);
}

static void drop_held(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    const tfwi_memory *m = &((held_memory *)(void *)self)->memory;
    release_memory(m);
    Py_DECREF(m->dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *tfwi_new_held_type(void) {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)drop_held},
        {Py_sq_item, (void *)(uintptr_t)array_of_batch},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "tfwire._native.objects.HeldMemory",
        .basicsize = sizeof(held_memory),
        .itemsize = sizeof(Py_ssize_t),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    held_type = (PyTypeObject *)PyType_FromSpec(&spec);
    Py_XINCREF(held_type);
    return (PyObject *)held_type;
}

PyObject *tfwi_hold(const tfwi_memory *m, Py_ssize_t count, Py_ssize_t rows, PyObject *row_shape) {
    const Py_ssize_t row_rank = row_shape != NULL ? PyTuple_Size(row_shape) : 0;
    held_memory *held = NULL;
    if (row_rank >= 0) {
        held = PyObject_NewVar(held_memory, held_type, 1 + row_rank);
    }
    if (held == NULL) {
        release_memory(m);
        return NULL;
    }
    held->memory = *m;
    Py_INCREF(m->dtype);
    held->count = count;
    held->stride = rows * m->value_size;
    held->shape[0] = rows;
    for (Py_ssize_t k = 0; k < row_rank; k++) {
        held->shape[k + 1] = PyLong_AsSsize_t(PyTuple_GetItem(row_shape, k));
        held->stride *= held->shape[k + 1];
    }
    if (PyErr_Occurred() != NULL) {
        Py_CLEAR(held);
    }
    return (PyObject *)held;
}

/* The only array of memory: of rank 1. It takes over what tfwi_hold does. */
static PyObject *only_array(const tfwi_memory *m, Py_ssize_t size) {
    PyObject *held = tfwi_hold(m, 1, size, NULL);
    PyObject *array = held != NULL ? array_of_batch(held, 0) : NULL;
    Py_XDECREF(held);
    return array;
}

PyObject *tfwi_hold_offsets(const int64_t *offsets, size_t count, size_t strings, int64_t *begins) {
    const size_t size = (strings + 1) * count * sizeof *offsets;
    PyObject *owner = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (owner == NULL) {
        return NULL;
    }
    int64_t *restrict next = (int64_t *)(void *)PyByteArray_AsString(owner);
    const tfwi_memory m = {(uint8_t *)next, sizeof *next, numpy.int64, NULL, owner};
    for (size_t i = 0; i < count; i++, offsets += strings, next += strings + 1) {
        const int64_t first = offsets[0];
        for (size_t k = 0; k <= strings; k++) {
            next[k] = offsets[k] - first;
        }
        if (begins != NULL) {
            begins[i] = first;
        }
    }
    return tfwi_hold(&m, (Py_ssize_t)count, (Py_ssize_t)strings + 1, NULL);
}

/* ---- Columns of a chunk --------------------------------------------------------------------- */

/* What is held of every column. */
typedef struct columns_of {
    tfw_chunk *chunk;
    uint64_t records;
    bool is_list;
} columns_of;

static columns_of columns_of_chunk(tfw_chunk *chunk, bool is_list) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    return (columns_of){chunk, info.records, is_list};
}

/* Holds a column; of strings, their bytes. false, with an exception. */
static bool hold_one(const columns_of *of, size_t feature, PyObject *dtype, tfw_column *c,
                     tfwi_memory *m) {
    tfw_error error;
    *m = (tfwi_memory){.dtype = dtype};
    const int status = tfw_chunk_hold(of->chunk, of->is_list, feature, c, &m->hold, &error);
    if (status != TFW_OK) {
        PyErr_SetString(status == TFW_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError, error.text);
        return false;
    }
    const uint64_t count = c->offsets != NULL ? c->byte_count : c->value_count;
    m->data = c->values;
    m->value_size = count != 0 ? (Py_ssize_t)(c->byte_count / count) : 0;
    return true;
}

/* The values of a column as an array of rank 1. NULL, with an exception. */
static PyObject *array_of_values(const columns_of *of, size_t feature, PyObject *dtype,
                                 tfw_column *c) {
    tfwi_memory m;
    if (!hold_one(of, feature, dtype, c, &m)) {
        return NULL;
    }
    return only_array(&m, (Py_ssize_t)(c->offsets != NULL ? c->byte_count : c->value_count));
}

/* count + 1 offsets that begin with 0, in memory of their own: their ends are also those of other
 * rows. None for NULL; NULL, with an exception. */
static PyObject *from_zero(const int64_t *offsets, uint64_t count) {
    if (offsets == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *held = tfwi_hold_offsets(offsets, 1, count, NULL);
    PyObject *array = held != NULL ? array_of_batch(held, 0) : NULL;
    Py_XDECREF(held);
    return array;
}

/* Adds the number of a column, and its offsets, splits and steps, to a list. */
static bool add_offsets(const columns_of *of, PyObject *list, size_t number, const tfw_column *c) {
    PyObject *offsets = from_zero(c->offsets, c->value_count);
    PyObject *splits = offsets != NULL ? from_zero(c->splits, c->cell_count) : NULL;
    PyObject *steps = splits != NULL ? from_zero(c->steps, of->records) : NULL;
    PyObject *found =
        steps != NULL ? Py_BuildValue("nOOO", (Py_ssize_t)number, offsets, splits, steps) : NULL;
    const bool done = found != NULL && PyList_Append(list, found) == 0;
    Py_XDECREF(offsets);
    Py_XDECREF(splits);
    Py_XDECREF(steps);
    Py_XDECREF(found);
    return done;
}

/* chunk, is_list, dtypes: two lists. The array of each column, of the dtypes; and, of
 * columns that have some, the number of the column, and its offsets, splits and steps, or None. No
 * lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[0]);
    const bool is_list = tfwi_size(args[1]) != 0;
    PyObject *dtypes = args[2];
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(dtypes) : -1;
    (void)module, (void)arg_count;
    PyObject *columns = count >= 0 ? PyList_New(count) : NULL;
    PyObject *offsets = columns != NULL ? PyList_New(0) : NULL;
    bool done = offsets != NULL;
    const columns_of of = done ? columns_of_chunk(chunk, is_list) : (columns_of){0};
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

/* The batches of a dense column as a sequence. NULL, with an exception. */
static PyObject *cut_column(const columns_of *of, const rows_of *rows, size_t feature,
                            PyObject *dtype, PyObject *row_shape) {
    const Py_ssize_t size = (Py_ssize_t)(rows->count / rows->batches);
    tfw_column c;
    tfwi_memory m;
    if (!hold_one(of, feature, dtype, &c, &m)) {
        return NULL;
    }
    if (c.offsets == NULL) {
        m.data += rows->first * (c.byte_count / of->records);
        return tfwi_hold(&m, (Py_ssize_t)rows->batches, size, row_shape);
    }
    const uint64_t each = c.value_count / of->records; /* strings of a row */
    m.data -= c.offsets[0]; /* from the bytes of other rows on */
    return tfwi_new_string_batches(&m, c.offsets + rows->first * each, (size_t)rows->batches,
                                   (size_t)(each * (uint64_t)size), size, row_shape);
}

/* chunk, first, count, batches, columns, dtypes, shapes: a list of sequences: the batches
 * of so many rows from the first one on, of columns whose rows are dense and of these shapes. No
 * lock is waited for long: the GIL is held. */
PyObject *tfwi_cut_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[0]);
    const rows_of rows = {tfwi_size(args[1]), tfwi_size(args[2]), tfwi_size(args[3])};
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(args[4]) : -1;
    (void)module, (void)arg_count;
    PyObject *found = count >= 0 ? PyList_New(count) : NULL;
    if (found == NULL) {
        return NULL;
    }
    const columns_of of = columns_of_chunk(chunk, false);
    const bool fits = of.records != 0 && rows.batches != 0 && rows.count % rows.batches == 0 &&
                      rows.count <= of.records && rows.first <= of.records - rows.count;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        const size_t feature = tfwi_size(PyList_GetItem(args[4], i));
        PyObject *cut = cut_column(&of, &rows, feature, PyList_GetItem(args[5], i),
                                   PyList_GetItem(args[6], i));
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
