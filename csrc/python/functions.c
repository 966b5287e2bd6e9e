/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that take and give objects of Python, as a module of Python. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#define FUNCTION(name, function) \
    {(name), (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION("tfw_bytes_of_spans", tfwi_bytes_of_spans),
    FUNCTION("tfw_iterate_spans", tfwi_iterate_spans),
    FUNCTION("tfw_spans_of_bytes", tfwi_spans_of_bytes),
    FUNCTION("tfw_bytes_of_offsets", tfwi_bytes_of_offsets),
    FUNCTION("tfw_read_record", tfwi_bytes_of_record),
    FUNCTION("tfw_new_rows", tfwi_new_rows),
    FUNCTION("tfw_encode_row", tfwi_encode_row),
    FUNCTION("tfw_encode_rows", tfwi_encode_rows),
    FUNCTION("tfw_set_kinds", tfwi_set_kinds),
    FUNCTION("tfw_settle_kind", tfwi_settle_kind),
    FUNCTION("tfw_unsettle_kinds", tfwi_unsettle_kinds),
    FUNCTION("tfw_new_decoder", tfwi_new_decoder),
    FUNCTION("tfw_decode_dict", tfwi_decode_dict),
    FUNCTION("tfw_decode_dicts", tfwi_decode_dicts),
    FUNCTION("tfw_new_contents", tfwi_new_contents),
    FUNCTION("tfw_has_content", tfwi_has_content),
    FUNCTION("tfw_new_single", tfwi_new_single),
    FUNCTION("tfw_parse_single", tfwi_parse_single),
    FUNCTION("tfw_set_array_types", tfwi_set_array_types),
    FUNCTION("tfw_hold_columns", tfwi_hold_columns),
    FUNCTION("tfw_cut_columns", tfwi_cut_columns),
    FUNCTION("tfw_new_batches", tfwi_new_batches),
    {NULL, NULL, 0, NULL},
};

static bool add_type(PyObject *module, const char *name, PyObject *type) {
    const bool added = type != NULL && PyObject_SetAttrString(module, name, type) == 0;
    Py_XDECREF(type);
    return added;
}

/* Appends the module to the list with this address. cffi has let go of the GIL. */
int tfw_add_functions(uintptr_t list) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *module = PyModule_New("tfwire._native.objects");
    bool added = module != NULL && PyModule_AddFunctions(module, functions) == 0 &&
                 add_type(module, "HeldMemory", tfwi_new_held_type()) &&
                 add_type(module, "StringBatches", tfwi_new_string_batches_type()) &&
                 add_type(module, "Batches", tfwi_new_batches_type()) &&
                 PyList_Append((PyObject *)list, module) == 0;
    Py_XDECREF(module);
    PyErr_Clear();
    PyGILState_Release(state);
    return added ? TFW_OK : TFW_E_MEMORY;
}

#endif /* TFW_PYTHON */
