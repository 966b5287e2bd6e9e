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
typedef struct held_memory {
    PyObject_HEAD
    tfw_hold *hold;  /* or NULL, and */
    PyObject *owner; /* of the memory */
    array_interface interface;
    Py_ssize_t size;
    Py_ssize_t stride;
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
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* Memory of size values of a dtype. It takes over the hold and the reference to the owner, also
 * when it fails: NULL, with an exception. */
static PyObject *new_held(PyObject *type, void *data, uint64_t size, size_t value_size,
                          PyObject *dtype, tfw_hold *hold, PyObject *owner) {
    held_memory *held = PyObject_New(held_memory, (PyTypeObject *)type);
    if (held == NULL) {
        tfw_hold_release(hold);
        Py_XDECREF(owner);
        return NULL;
    }
    Py_INCREF(dtype);
    held->hold = hold;
    held->owner = owner;
    held->size = (Py_ssize_t)size;
    held->stride = (Py_ssize_t)value_size;
    held->interface = (array_interface){
        .two = 2,
        .rank = 1,
        .flags = IN_ORDER | ALIGNED | NOT_SWAPPED | WRITABLE | HAS_DTYPE,
        .shape = &held->size,
        .strides = &held->stride,
        .data = data,
        .dtype = dtype,
    };
    return (PyObject *)held;
}

/* ---- Columns of a chunk --------------------------------------------------------------------- */

/* What is made for every column of a chunk. */
typedef struct columns_of {
    PyObject *type;  /* of held memory */
    PyObject *int64; /* the dtype */
    tfw_chunk *chunk;
    uint64_t records;
    bool is_list;
    bool is_cut; /* into batches, next: the offsets of strings of dense rows stay where they are */
} columns_of;

static bool stays(const columns_of *of, const tfw_column *c) {
    return of->is_cut && c->offsets != NULL && c->splits == NULL && c->steps == NULL;
}

/* Holds a column. NULL, with an exception. */
static PyObject *hold_values(const columns_of *of, size_t feature, PyObject *dtype, tfw_column *c) {
    tfw_hold *hold;
    tfw_error error;
    const int status = tfw_chunk_hold(of->chunk, of->is_list, feature, c, &hold, &error);
    if (status != TFW_OK) {
        PyErr_SetString(status == TFW_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError, error.text);
        return NULL;
    }
    if (c->offsets == NULL) {
        /* of none: a multiple of every size, which other libraries ask of strides */
        const size_t size =
            c->value_count != 0 ? (size_t)(c->byte_count / c->value_count) : sizeof(int64_t);
        return new_held(of->type, c->values, c->value_count, size, dtype, hold, NULL);
    }
    /* bytes of other rows */
    const uint64_t before = stays(of, c) ? (uint64_t)c->offsets[0] : 0;
    uint8_t *values = (uint8_t *)c->values - before;
    return new_held(of->type, values, before + c->byte_count, 1, dtype, hold, NULL);
}

/* count + 1 offsets that begin with 0, in memory of their own: their ends are also those of other
 * rows. None for NULL; NULL, with an exception. */
static PyObject *from_zero(const columns_of *of, const int64_t *offsets, uint64_t count) {
    if (offsets == NULL) {
        Py_RETURN_NONE;
    }
    const size_t number = (size_t)count + 1;
    PyObject *owner = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(number * sizeof *offsets));
    if (owner == NULL) {
        return NULL;
    }
    int64_t *const restrict own = (int64_t *)(void *)PyByteArray_AsString(owner);
    const int64_t first = offsets[0];
    for (size_t i = 0; i < number; i++) {
        own[i] = offsets[i] - first;
    }
    return new_held(of->type, own, number, sizeof *own, of->int64, NULL, owner);
}

/* The same of strings; but those that are cut next stay where they are. */
static PyObject *string_offsets(const columns_of *of, const tfw_column *c, PyObject *values) {
    if (!stays(of, c)) {
        return from_zero(of, c->offsets, c->value_count);
    }
    Py_INCREF(values);
    return new_held(of->type, c->offsets, c->value_count + 1, sizeof *c->offsets, of->int64, NULL,
                    values);
}

/* Adds the number of a column, and its offsets, splits and steps, to a list. */
static bool add_offsets(const columns_of *of, PyObject *list, size_t number, const tfw_column *c,
                        PyObject *values) {
    PyObject *offsets = string_offsets(of, c, values);
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

/* chunk, is_list, size, dtypes, int64: two lists. What each column's array is made of, of the
 * dtypes; and, of columns that have some, the number of the column, and what offsets, splits and
 * steps are made of, or None. If the chunk has several batches of a size, all of them whole, the
 * offsets of strings lie in the memory of C. No lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    columns_of of = {
        .chunk = tfwi_address(args[0]), .is_list = tfwi_size(args[1]) != 0, .int64 = args[4]};
    const size_t size = tfwi_size(args[2]);
    PyObject *dtypes = args[3];
    const Py_ssize_t count = PyErr_Occurred() == NULL ? PyList_Size(dtypes) : -1;
    (void)arg_count;
    of.type = count >= 0 ? PyObject_GetAttrString(module, "HeldMemory") : NULL;
    PyObject *columns = of.type != NULL ? PyList_New(count) : NULL;
    PyObject *offsets = columns != NULL ? PyList_New(0) : NULL;
    bool done = offsets != NULL;
    if (done) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(of.chunk, &info);
        of.records = info.records;
        of.is_cut = size != 0 && info.records > size && info.records % size == 0;
    }
    for (Py_ssize_t i = 0; done && i < count; i++) {
        tfw_column c;
        PyObject *held = hold_values(&of, (size_t)i, PyList_GetItem(dtypes, i), &c);
        done = held != NULL && PyList_SetItem(columns, i, held) == 0;
        if (done && (c.offsets != NULL || c.splits != NULL || c.steps != NULL)) {
            done = add_offsets(&of, offsets, (size_t)i, &c, held);
        }
    }
    PyObject *found = done ? PyTuple_Pack(2, columns, offsets) : NULL;
    Py_XDECREF(of.type);
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
