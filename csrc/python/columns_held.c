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

/* chunk, is_list, columns, values, count: fills in count tfw_columns, and where their values are.
 * Returns two lists: objects that keep the columns' memory, and how many bytes of values each has.
 * No lock is waited for long: the GIL is held. */
PyObject *tfwi_hold_columns(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfw_chunk *chunk = tfwi_address(args[0]);
    const bool is_list = tfwi_size(args[1]) != 0;
    tfw_column *columns = tfwi_address(args[2]);
    void **values = tfwi_address(args[3]);
    const size_t count = tfwi_size(args[4]);
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    PyObject *keepers = PyList_New((Py_ssize_t)count), *sizes = PyList_New((Py_ssize_t)count);
    bool done = keepers != NULL && sizes != NULL;
    for (size_t i = 0; done && i < count; i++) {
        PyObject *keeper = new_keeper(chunk, is_list, i, &columns[i]);
        values[i] = columns[i].values;
        done = keeper != NULL && PyList_SetItem(keepers, (Py_ssize_t)i, keeper) == 0;
        PyObject *size = done ? PyLong_FromSize_t((size_t)columns[i].byte_count) : NULL;
        done = size != NULL && PyList_SetItem(sizes, (Py_ssize_t)i, size) == 0;
    }
    PyObject *found = done ? PyTuple_Pack(2, keepers, sizes) : NULL;
    Py_XDECREF(keepers);
    Py_XDECREF(sizes);
    return found;
}

#endif /* TFW_PYTHON */
