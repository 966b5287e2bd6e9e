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
tfwi_function tfwi_set_array_types, tfwi_hold_columns, tfwi_cut_columns, tfwi_new_batches;

/* ---- columns_held.c: arrays ---- */

/* The types that those functions make. NULL, with an exception. */
PyObject *tfwi_new_held_type(void);
PyObject *tfwi_new_string_batches_type(void);
PyObject *tfwi_new_batches_type(void);

/* Memory of arrays. */
typedef struct tfwi_memory {
    uint8_t *data;
    Py_ssize_t value_size;
    PyObject *dtype;
    tfw_hold *hold; /* or NULL, and */
    PyObject *owner;
} tfwi_memory;

/* A sequence of so many arrays, one after another, of these rows, each of a shape: a tuple, or NULL
 * where each is a value. It takes over the hold and the reference to the owner, also when it fails:
 * NULL, with an exception. */
PyObject *tfwi_hold(const tfwi_memory *memory, Py_ssize_t count, Py_ssize_t rows,
                    PyObject *row_shape);

/* The same of the offsets of so many batches of strings, copied so that those of each begin with 0,
 * and where each began, unless that is NULL. */
PyObject *tfwi_hold_offsets(const int64_t *offsets, size_t count, size_t strings, int64_t *begins);

/* Another array in the memory of such a sequence, from a byte on. NULL, with an exception. */
PyObject *tfwi_array_in(PyObject *held, Py_ssize_t offset, int rank, const Py_ssize_t *shape);

/* ---- batches.c ---- */

bool tfwi_set_bytes_column(PyObject *type);

/* A sequence of so many BytesColumns, of these strings and rows each. The memory of their bytes is
 * taken over, also when it fails: NULL, with an exception. */
PyObject *tfwi_new_string_batches(const tfwi_memory *data, const int64_t *offsets, size_t count,
                                  size_t strings, Py_ssize_t rows, PyObject *row_shape);

#else
#include "tfwire_python.h" /* a file of C is not empty */
#endif /* TFW_PYTHON */
#endif /* TFWIRE_OBJECTS_H */
