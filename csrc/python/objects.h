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
tfwi_function tfwi_hold_columns, tfwi_cut_offsets, tfwi_next_dict;

/* The type of what tfw_hold_columns gives. NULL, with an exception. */
PyObject *tfwi_new_held_type(void);

#else
#include "tfwire_python.h" /* a file of C is not empty */
#endif /* TFW_PYTHON */
#endif /* TFWIRE_OBJECTS_H */
