/* SPDX-License-Identifier: Apache-2.0 */
/* Dicts of Python to pairs of a key and a value: exact types only, and no call that could run code
 * of Python's, which might change what is being read. */
#include "python/rows.h"

#ifdef TFW_PYTHON

/* ---- What other threads may change ---------------------------------------------------------- */

#ifdef Py_GIL_DISABLED
/* A copy, held until the row is written, in place of what was read; NULL: there is none. */
static PyObject *hold(tfwi_rows *r, PyObject *copy) {
    if (copy == NULL || !TFWI_RESERVE_MORE(r->held, 1)) {
        Py_XDECREF(copy);
        PyErr_Clear();
        return NULL;
    }
    return r->held.of[r->held.count++] = copy;
}

#define HOLD_DICT(r, dict) hold(r, PyDict_Copy(dict))
#define HOLD_LIST(r, list) hold(r, PyList_AsTuple(list))
#define MAY_READ_BYTEARRAYS false

void tfwi_release_held(tfwi_rows *r) {
    while (r->held.count != 0) {
        Py_DECREF(r->held.of[--r->held.count]);
    }
}
#else /* the GIL keeps them out */
#define HOLD_DICT(r, dict) (dict)
#define HOLD_LIST(r, list) (list)
#define MAY_READ_BYTEARRAYS true
#endif

/* ---- Scalars -------------------------------------------------------------------------------- */

static int set_string(tfwi_element *out, const char *bytes, Py_ssize_t size) {
    if (bytes == NULL) { /* text with lone surrogates, or no memory */
        PyErr_Clear();
        return TFWI_UNKNOWN;
    }
    *out = (tfwi_element){(uintptr_t)bytes, (uint64_t)size};
    return TFW_OK;
}

static int read_text(PyObject *text, tfwi_element *out) {
    Py_ssize_t size = 0;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    return set_string(out, bytes, size);
}

/* The string, or the bits of the number; TFWI_UNKNOWN: neither. */
TFWI_INLINE int read_scalar(PyObject *object, tfwi_element *out, uint8_t *out_type) {
    const PyTypeObject *type = Py_TYPE(object);
    if (type == &PyFloat_Type) {
        const double value = PyFloat_AsDouble(object);
        *out_type = TFWI_ITEM_FLOAT;
        memcpy(&out->a, &value, sizeof value);
        return TFW_OK;
    }
    if (type == &PyLong_Type) {
        int overflow;
        out->a = (uint64_t)PyLong_AsLongLongAndOverflow(object, &overflow);
        *out_type = TFWI_ITEM_INT;
        return overflow == 0 ? TFW_OK : TFWI_UNKNOWN;
    }
    *out_type = TFWI_ITEM_STRING;
    if (type == &PyUnicode_Type) {
        return read_text(object, out);
    }
    if (type == &PyBytes_Type) {
        return set_string(out, PyBytes_AsString(object), Py_SIZE(object));
    }
    if (type == &PyByteArray_Type && MAY_READ_BYTEARRAYS) {
        return set_string(out, PyByteArray_AsString(object), Py_SIZE(object));
    }
    if (type == &PyBool_Type) {
        *out_type = TFWI_ITEM_INT;
        out->a = object == Py_True;
        return TFW_OK;
    }
    return TFWI_UNKNOWN;
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* The length of a list or tuple; -1: something else. */
TFWI_INLINE Py_ssize_t list_size(PyObject *object) {
    const PyTypeObject *type = Py_TYPE(object);
    return type == &PyList_Type    ? PyList_Size(object)
           : type == &PyTuple_Type ? PyTuple_Size(object)
                                   : -1;
}

TFWI_INLINE PyObject *list_item(PyObject *object, Py_ssize_t i) {
    return Py_TYPE(object) == &PyList_Type ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
}

/* Adds the scalars of a list or tuple to those that the value has. */
static int add_scalars(tfwi_rows *r, PyObject *list, Py_ssize_t size, tfwi_item *value) {
    if (!TFWI_RESERVE_MORE(r->tape, (size_t)size)) {
        return TFW_E_MEMORY;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        uint8_t type;
        tfwi_element *element = &r->tape.of[r->tape.count];
        if (read_scalar(list_item(list, i), element, &type) != TFW_OK) {
            return TFWI_UNKNOWN;
        }
        if (type != TFWI_ITEM_STRING) {
            element->b = type;
        }
        value->kinds |= TFWI_BIT(type);
        r->tape.count++;
    }
    value->b += (uint64_t)size;
    return TFW_OK;
}

/* Reads a list or tuple of scalars. */
static int read_list(tfwi_rows *r, PyObject *list, tfwi_item *value) {
    if (Py_TYPE(list) == &PyList_Type && (list = HOLD_LIST(r, list)) == NULL) {
        return TFW_E_MEMORY;
    }
    const Py_ssize_t size = list_size(list);
    *value = (tfwi_item){.type = TFWI_ITEM_LIST, .a = r->tape.count};
    return size < 0 ? TFWI_UNKNOWN : add_scalars(r, list, size, value);
}

/* (kind, bytes of an array; of strings: none). */
static int read_array(PyObject *array, tfwi_item *value) {
    PyObject *kind = PyTuple_GetItem(array, 0), *bytes = PyTuple_GetItem(array, 1);
    *value = (tfwi_item){.type = TFWI_ITEM_RAW, .kind = (uint8_t)PyLong_AsLong(kind),
                         .a = (uintptr_t)PyBytes_AsString(bytes), .b = (uint64_t)Py_SIZE(bytes)};
    return TFW_OK;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

TFWI_INLINE int read_value(tfwi_rows *r, PyObject *object, tfwi_item *value) {
    tfwi_element scalar = {0, 0};
    if (TFWI_LIKELY(read_scalar(object, &scalar, &value->type) == TFW_OK)) {
        value->a = scalar.a;
        value->b = scalar.b; /* of strings only */
        return TFW_OK;
    }
    if (object == Py_None) {
        value->type = TFWI_ITEM_MISSING;
        return TFW_OK;
    }
    return (PyObject *)Py_TYPE(object) == r->array_type ? read_array(object, value)
                                                        : read_list(r, object, value);
}

/* Reads a key that is not the object of the row before. */
static int read_key(tfwi_rows *r, PyObject *name, tfwi_pair *pair) {
    tfwi_element text;
    int status = TFWI_UNKNOWN;
    if (Py_TYPE(name) == &PyUnicode_Type) {
        status = read_text(name, &text);
    } else if (Py_TYPE(name) == &PyBytes_Type) {
        status = set_string(&text, PyBytes_AsString(name), Py_SIZE(name));
    }
    if (status != TFW_OK) {
        return status;
    }
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)text.a;
    uint32_t key = pair->key;
    if (pair->name == NULL || !tfwi_is_named(&r->keys.of[key], bytes, (size_t)text.b)) {
        status = tfwi_keys_find(&r->keys, bytes, (size_t)text.b, &key);
    }
    if (status == TFW_OK) {
        Py_INCREF(name);
        Py_XDECREF(pair->name); /* of an exact type, it runs no code */
        pair->name = name;
        pair->key = key;
    }
    return status;
}

/* The place of the next pair; NULL: no memory. */
TFWI_INLINE tfwi_pair *place(tfwi_rows *r, size_t count) {
    if (TFWI_UNLIKELY(count == r->known)) {
        r->pairs.count = count;
        if (!TFWI_RESERVE_MORE(r->pairs, 1)) {
            return NULL;
        }
        r->pairs.of[r->known++].name = NULL;
    }
    return &r->pairs.of[count];
}

int tfwi_read_row(tfwi_rows *r, PyObject *row) {
    const size_t guesses = r->pairs.count;
    size_t count = 0;
    Py_ssize_t at = 0;
    PyObject *name, *object;
    bool same = true;
    r->tape.count = 0;
    if (Py_TYPE(row) != &PyDict_Type) {
        return TFWI_UNKNOWN;
    }
    if ((row = HOLD_DICT(r, row)) == NULL) {
        return TFW_E_MEMORY;
    }
    for (; PyDict_Next(row, &at, &name, &object); count++) {
        tfwi_pair *pair = place(r, count);
        if (pair == NULL) {
            return TFW_E_MEMORY;
        }
        if (TFWI_UNLIKELY(pair->name != name)) {
            const uint32_t guess = pair->name != NULL ? pair->key : UINT32_MAX;
            const int status = read_key(r, name, pair);
            if (status != TFW_OK) {
                return status;
            }
            same = same && pair->key == guess;
        }
        const int status = read_value(r, object, &pair->value);
        if (status != TFW_OK) {
            return status;
        }
    }
    r->same_keys = same && count == guesses;
    r->pairs.count = count;
    return TFW_OK;
}

#endif /* TFW_PYTHON */
