/* SPDX-License-Identifier: Apache-2.0 */
/* Python's objects by Python's C API: its limited part, as of CPython 3.10, which csrc/ffi_build.py
 * chooses. Only the cffi module is built with TFW_PYTHON; elsewhere these files are empty.
 *
 * The functions are called as Python calls its own, with the GIL: they see objects, and hold it
 * from the first to the last. Memory of C comes as an address and what it has room for, as ints. */
#ifndef TFWIRE_OBJECTS_H
#define TFWIRE_OBJECTS_H

#ifdef TFW_PYTHON
#include <Python.h> /* before any header of the system, some of which it changes */

#include "base/common.h"
#include "tfwire_pipeline.h"
#include "tfwire_python.h"

/* The arguments of a function. Those that are numbers: a wrong one raises. */
typedef PyObject *const *tfwi_arguments;

TFWI_INLINE void *tfwi_address(PyObject *number) { return PyLong_AsVoidPtr(number); }

TFWI_INLINE size_t tfwi_size(PyObject *number) { return PyLong_AsSize_t(number); }

enum { TFWI_FEW_KEYS = 5 }; /* for which a new dict has room; of more, a copy is faster */

/* What METH_FASTCALL takes. Each is in the table of functions.c. */
typedef PyObject *tfwi_function(PyObject *module, tfwi_arguments args, Py_ssize_t count);

tfwi_function tfwi_new_decoder, tfwi_decode_dict, tfwi_decode_dicts;
tfwi_function tfwi_new_contents, tfwi_has_content;
tfwi_function tfwi_new_single, tfwi_parse_single;
tfwi_function tfwi_new_rows, tfwi_encode_row, tfwi_encode_rows;
tfwi_function tfwi_set_kinds, tfwi_settle_kind, tfwi_unsettle_kinds;
tfwi_function tfwi_bytes_of_spans;
tfwi_function tfwi_iterate_spans;
tfwi_function tfwi_spans_of_bytes;
tfwi_function tfwi_bytes_of_offsets;
tfwi_function tfwi_bytes_of_record;
tfwi_function tfwi_hold_columns, tfwi_cut_columns, tfwi_cut_strings, tfwi_new_batches;

/* ---- columns_held.c: arrays ---- */

/* The types that those functions make, of themselves or of NumPy. NULL, with an exception. */
PyObject *tfwi_new_held_type(void);
PyObject *tfwi_new_string_batches_type(void);
PyObject *tfwi_new_batches_type(void);

/* What is in the tuple that they need to make arrays. */
enum tfwi_of_arrays {
    TFWI_ASARRAY = 0,
    TFWI_INT64_DTYPE = 1, /* the dtype */
    TFWI_BYTES_COLUMN = 2,
    TFWI_HELD_MEMORY = 3,
    TFWI_STRING_BATCHES = 4
};

/* Memory of an array. */
typedef struct tfwi_memory {
    void *data;
    size_t value_size;
    PyObject *dtype;
    tfw_hold *hold; /* or NULL, and */
    PyObject *owner;
    int rank;
} tfwi_memory;

/* An array of a shape, which ends with that of a row, a tuple, unless it is NULL. It takes over the
 * hold and the reference to the owner, also when it fails: NULL, with an exception. */
PyObject *tfwi_array_of(PyObject *arrays, const tfwi_memory *memory, const Py_ssize_t *shape,
                        PyObject *row_shape);

/* ---- batches.c ---- */

/* A sequence of BytesColumns, as tfwi_cut_strings. NULL, with an exception. */
PyObject *tfwi_new_string_batches(PyObject *arrays, PyObject *data, const int64_t *offsets,
                                  size_t count, PyObject *shape);

#else
#include "tfwire_python.h" /* a file of C is not empty */
#endif /* TFW_PYTHON */
#endif /* TFWIRE_OBJECTS_H */
