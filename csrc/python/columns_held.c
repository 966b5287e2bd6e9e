/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a chunk of a pipeline, each kept by an object of Python of its own. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "tfwire_pipeline.h"

static const char hold_name[] = "tfw_hold";

static void drop_held(PyObject *capsule) {
    tfw_hold_release(PyCapsule_GetPointer(capsule, hold_name));
}

static PyObject *keep(PyObject *hold, PyObject *memory) {
    (void)hold, (void)memory;
    Py_RETURN_NONE;
}

/* A function that holds a column and does nothing: a destructor for cffi. Python is not asked to
 * release anything, as it loses an interrupt that arrives in a finalizer. NULL, with an exception.
 */
static PyObject *new_keeper(tfw_chunk *chunk, bool is_list, size_t feature, tfw_column *column) {
    static PyMethodDef method = {"tfw_keep", keep, METH_O, NULL};
    tfw_hold *hold;
    tfw_error error;
    const int status = tfw_chunk_hold(chunk, is_list, feature, column, &hold, &error);
    if (status != TFW_OK) {
        PyErr_SetString(status == TFW_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError, error.text);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(hold, hold_name, drop_held);
    if (capsule == NULL) {
        tfw_hold_release(hold);
        return NULL;
    }
    PyObject *keeper = PyCFunction_NewEx(&method, capsule, NULL);
    Py_DECREF(capsule);
    return keeper;
}

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

/* Puts a new object, or NULL, into a new list. */
static bool put_item(PyObject *list, size_t i, PyObject *item) {
    return item != NULL && PyList_SetItem(list, (Py_ssize_t)i, item) == 0;
}

/* chunk, its records, is_list, values, count: fills in where the values of count columns are.
 * Returns three lists: objects that keep the columns' memory; how many bytes of values each has;
 * and, of those that have some, the number of the column, and offsets, splits and steps as
 * bytearrays, or None. No lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[0]);
    const size_t records = tfwi_size(args[1]);
    const bool is_list = tfwi_size(args[2]) != 0;
    void **values = tfwi_address(args[3]);
    const size_t count = tfwi_size(args[4]);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    PyObject *keepers = PyList_New((Py_ssize_t)count), *sizes = PyList_New((Py_ssize_t)count);
    PyObject *offsets = PyList_New(0);
    bool done = keepers != NULL && sizes != NULL && offsets != NULL;
    for (size_t i = 0; done && i < count; i++) {
        tfw_column c;
        done = put_item(keepers, i, new_keeper(chunk, is_list, i, &c)) &&
               put_item(sizes, i, PyLong_FromSize_t((size_t)c.byte_count));
        if (done && (c.offsets != NULL || c.splits != NULL || c.steps != NULL)) {
            done = add_offsets(offsets, i, &c, records);
        }
        values[i] = done ? c.values : NULL;
    }
    PyObject *found = done ? PyTuple_Pack(3, keepers, sizes, offsets) : NULL;
    Py_XDECREF(keepers);
    Py_XDECREF(sizes);
    Py_XDECREF(offsets);
    return found;
}

#endif /* TFW_PYTHON */
