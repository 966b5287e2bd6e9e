/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that encode rows, and what is remembered from call to call. */
#include "python/rows.h"

#ifdef TFW_PYTHON

enum {
    MAX_KEYS = 4096,       /* that are remembered */
    SCRATCH_SIZE = 1 << 20 /* for the message of a single row: unused pages take no memory */
};

static const char capsule_name[] = "tfw_rows";

/* ---- Encoders ------------------------------------------------------------------------------- */

static void free_rows(PyObject *capsule) {
    tfwi_rows *r = PyCapsule_GetPointer(capsule, capsule_name);
    tfwi_rows_forget(r);
    Py_XDECREF(r->array_type);
    Py_XDECREF(r->declared);
    tfw_free(r->settled.of);
    tfw_free(r->blocks.of);
    tfw_free(r->prefixes.of);
    tfw_free(r->order.of);
    tfw_free(r->scalars.of);
    tfw_free(r->pairs.of);
    tfw_free(r->tape.of);
    tfw_free(r->scratch);
#ifdef Py_GIL_DISABLED
    tfw_free(r->held.of);
#endif
    tfw_free(r);
}

/* seed, as for tfw_schema_create; the type of the tuples (kind, bytes) that stand for arrays: an
 * encoder, for one thread at a time. */
PyObject *tfwi_new_rows(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const uint64_t seed = PyLong_AsUnsignedLongLong(args[0]);
    tfwi_rows *r = PyErr_Occurred() == NULL ? tfwi_calloc(1, sizeof *r) : NULL;
    uint8_t *scratch = r != NULL ? tfwi_realloc(NULL, SCRATCH_SIZE) : NULL;
    PyObject *capsule = scratch != NULL ? PyCapsule_New(r, capsule_name, free_rows) : NULL;
    (void)module, (void)arg_count;
    if (capsule == NULL) {
        tfw_free(scratch);
        tfw_free(r);
        return PyErr_Occurred() == NULL ? PyErr_NoMemory() : NULL;
    }
    r->scratch = scratch;
    r->guess = 1;
    r->keys.seed = tfwi_seed_of(seed);
    r->writer = tfwi_writer_best();
    r->array_type = args[1];
    Py_INCREF(r->array_type);
    return capsule;
}

tfwi_rows *tfwi_rows_take(PyObject *capsule) {
    tfwi_rows *r = PyCapsule_GetPointer(capsule, capsule_name);
    if (r != NULL && r->keys.count > MAX_KEYS) {
        tfwi_rows_forget(r);
    }
    return r;
}

/* The same, in this order of keys. */
static tfwi_rows *take_rows(PyObject *capsule, bool sort_keys) {
    tfwi_rows *r = tfwi_rows_take(capsule);
    if (r == NULL) {
        return NULL;
    }
    if (r->sort_keys != sort_keys) {
        r->sort_keys = sort_keys;
        r->pairs.count = 0; /* no guesses: find the order again */
    }
    return r;
}

/* Reads and writes a row. */
TFWI_INLINE int encode_dict(tfwi_rows *r, PyObject *row, tfwi_output *out) {
    const size_t settled = r->settled.count;
    int status = tfwi_read_row(r, row);
    if (status == TFW_OK) {
        status = tfwi_put_row(r, out);
    }
    if (status != TFW_OK) {
        r->pairs.count = 0; /* the order may not be that of these keys */
        tfwi_rows_unsettle(r, settled);
    }
#ifdef Py_GIL_DISABLED
    tfwi_release_held(r);
#endif
    return status;
}

static PyObject *no_memory(void) {
    PyErr_SetString(PyExc_MemoryError, "no memory for the values of a row");
    return NULL;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* rows, row, sort_keys[, number]: its Example; None: Python must encode it, or its number is needed
 * to settle kinds. */
PyObject *tfwi_encode_row(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfwi_rows *r = take_rows(args[0], args[2] == Py_True);
    (void)module;
    if (r == NULL) {
        return NULL;
    }
    r->may_settle = arg_count > 3;
    r->number = r->may_settle ? PyLong_AsUnsignedLongLong(args[3]) : 0;
    tfwi_output out = {r->scratch, r->scratch + SCRATCH_SIZE};
    switch (encode_dict(r, args[1], &out)) {
    case TFW_OK:
        return PyBytes_FromStringAndSize((const char *)r->scratch, out.at - r->scratch);
    case TFW_E_MEMORY: return no_memory();
    default: Py_RETURN_NONE;
    }
}

/* rows, list, first, sort_keys, headroom, tailroom, out, capacity, spans, number: encodes dicts of
 * the list from the first on, up to one that does not fit or that Python must encode. Headroom,
 * tailroom, out and spans, one for each, as of tfw_encode; the number is that of the list's first
 * row. Returns (how many, their bytes with the room around them, whether there was no room for the
 * next). */
PyObject *tfwi_encode_rows(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    PyObject *list = args[1];
    const size_t first = tfwi_size(args[2]), headroom = tfwi_size(args[4]);
    const size_t tailroom = tfwi_size(args[5]), capacity = tfwi_size(args[7]);
    uint8_t *memory = tfwi_address(args[6]);
    tfw_span *spans = tfwi_address(args[8]);
    const uint64_t number = PyLong_AsUnsignedLongLong(args[9]);
    const size_t count = (size_t)PyList_Size(list);
    size_t done = 0, length = 0;
    int status = TFW_OK;
    (void)module, (void)arg_count;
    tfwi_rows *r = PyErr_Occurred() == NULL ? take_rows(args[0], args[3] == Py_True) : NULL;
    if (r == NULL) {
        return NULL;
    }
    r->may_settle = true;
    for (; first + done < count; done++) {
        r->number = number + first + done;
        if (capacity - length < headroom + tailroom) {
            status = TFW_NEED_SPACE;
            break;
        }
        const size_t begin = length + headroom;
        tfwi_output out = {memory + begin, memory + capacity - tailroom};
        status = encode_dict(r, PyList_GetItem(list, (Py_ssize_t)(first + done)), &out);
        if (status != TFW_OK) {
            break;
        }
        const size_t size = (size_t)(out.at - memory) - begin;
        spans[done] = (tfw_span){begin, size};
        length = begin + size + tailroom;
    }
    if (status == TFW_E_MEMORY) {
        return no_memory();
    }
    return Py_BuildValue("nnN", (Py_ssize_t)done, (Py_ssize_t)length,
                         PyBool_FromLong(status == TFW_NEED_SPACE));
}

#endif /* TFW_PYTHON */
