/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings of Python, thousands at a time: made of memory, and found in place. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "records/cache.h"
#include "records/indexed.h"

enum { TFWI_RECORD_ROOM = 1 << 15 }; /* for a record that is read by itself, on the stack */

/* ---- Made ----------------------------------------------------------------------------------- */

TFWI_INLINE PyObject *bytes_of(const uint8_t *data, size_t data_len, uint64_t begin,
                               uint64_t length) {
    if (TFWI_UNLIKELY(begin > data_len || length > data_len - begin)) {
        PyErr_SetString(PyExc_ValueError, "a string leaves its memory");
        return NULL;
    }
    return PyBytes_FromStringAndSize((const char *)data + begin, (Py_ssize_t)length);
}

/* Puts the next string of the data into its place of the list; false, with an exception. */
TFWI_INLINE bool put_bytes(PyObject *list, size_t i, const uint8_t *data, size_t data_len,
                           uint64_t begin, uint64_t length) {
    PyObject *bytes = bytes_of(data, data_len, begin, length);
    return bytes != NULL && PyList_SetItem(list, (Py_ssize_t)i, bytes) == 0;
}

/* data, data_len, spans, count: a list of the strings data[span]. */
PyObject *tfwi_bytes_of_spans(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const uint8_t *data = tfwi_address(args[0]);
    const size_t data_len = tfwi_size(args[1]), count = tfwi_size(args[3]);
    const tfw_span *spans = tfwi_address(args[2]);
    (void)module, (void)arg_count;
    PyObject *list = PyErr_Occurred() == NULL ? PyList_New((Py_ssize_t)count) : NULL;
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (!put_bytes(list, i, data, data_len, spans[i].offset, spans[i].length)) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* data, data_len, offsets, count: a list of the strings data[offsets[i]] to data[offsets[i + 1]].
 * Another thread may change the offsets: each is read once. */
PyObject *tfwi_bytes_of_offsets(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const uint8_t *data = tfwi_address(args[0]);
    const size_t data_len = tfwi_size(args[1]), count = tfwi_size(args[3]);
    const volatile int64_t *offsets = tfwi_address(args[2]);
    (void)module, (void)arg_count;
    PyObject *list = PyErr_Occurred() == NULL ? PyList_New((Py_ssize_t)count) : NULL;
    uint64_t begin = list != NULL && count != 0 ? (uint64_t)offsets[0] : 0;
    for (size_t i = 0; list != NULL && i < count; i++) {
        const uint64_t end = (uint64_t)offsets[i + 1];
        if (!put_bytes(list, i, data, data_len, begin, end - begin)) {
            Py_CLEAR(list);
        }
        begin = end;
    }
    return list;
}

/* The payload of a record in the cache of its file, verified; NULL, or an error: see below. */
static PyObject *bytes_of_cached(const tfw_indexed_file *file, tfwi_extent e) {
    const uint8_t *record;
    tfw_error found;
    int status = TFW_NEED_INPUT;
    Py_BEGIN_ALLOW_THREADS
    record = tfwi_cache_find(file->cache, file->fd, (uint64_t)e.begin, (uint64_t)e.size);
    if (record != NULL) {
        status = tfwi_verify_extent(record, e.size, (uint64_t)e.size, &found);
    }
    Py_END_ALLOW_THREADS
    return status != TFW_OK ? NULL
                            : PyBytes_FromStringAndSize((const char *)record + TFW_HEADER_SIZE,
                                                        (Py_ssize_t)(e.size - TFWI_FRAME_SIZE));
}

/* file, number: the payload of a record of a tfw_indexed_file, verified. None: it is longer than
 * the room for it, does not verify, or cannot be read. */
PyObject *tfwi_bytes_of_record(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    uint8_t room[TFWI_RECORD_ROOM];
    const tfw_indexed_file *file = tfwi_address(args[0]);
    const size_t number = tfwi_size(args[1]);
    int status = TFW_NEED_SPACE;
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    if (number >= file->count) {
        Py_RETURN_NONE;
    }
    const tfwi_extent e = tfwi_extent_of(file->offsets, (int64_t)number);
    if (file->cache != NULL && e.size != 0) {
        PyObject *found = bytes_of_cached(file, e);
        if (found != NULL || PyErr_Occurred() != NULL) {
            return found;
        }
    }
    if (e.size != 0 && (uint64_t)e.size <= sizeof room) {
        Py_BEGIN_ALLOW_THREADS
        status = tfw_read_record(file->fd, (uint64_t)e.begin, (size_t)e.size, room);
        Py_END_ALLOW_THREADS
    }
    if (status != TFW_OK) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)room + TFW_HEADER_SIZE,
                                     (Py_ssize_t)(e.size - TFWI_FRAME_SIZE));
}

/* ---- Made one by one ------------------------------------------------------------------------ */

/* An iterator over strings. What nobody keeps is freed before the next is made, in the same memory,
 * which is in the cache; a list of them would not be. */
typedef struct strings {
    PyObject_HEAD
    PyObject *owner; /* of the memory; NULL at the end */
    const uint8_t *data;
    size_t data_len;
    const tfw_span *spans;
    size_t left;
} strings;

static PyObject *next_string(PyObject *self) {
    strings *s = (strings *)self;
    if (s->left == 0) {
        Py_CLEAR(s->owner);
        return NULL;
    }
    PyObject *bytes = bytes_of(s->data, s->data_len, s->spans->offset, s->spans->length);
    if (TFWI_LIKELY(bytes != NULL)) {
        s->spans++;
        s->left--;
    }
    return bytes;
}

static PyObject *strings_left(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromSize_t(((strings *)self)->left);
}

static void end_strings(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(((strings *)self)->owner);
    release(self);
    Py_DECREF(type);
}

static PyObject *type_of_strings(void) {
    static PyMethodDef methods[] = {
        {"__length_hint__", strings_left, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_iter, (void *)PyObject_SelfIter},
        {Py_tp_iternext, (void *)next_string},
        {Py_tp_methods, methods},
        {Py_tp_dealloc, (void *)end_strings},
        {0, NULL},
    };
    static PyType_Spec spec = {"tfwire._native.strings", sizeof(strings), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    static PyObject *type = NULL; /* the GIL guards it */
    if (type == NULL) {
        type = PyType_FromSpec(&spec);
    }
    return type;
}

/* owner, data, data_len, spans, count: an iterator over the strings data[span], which keeps the
 * owner as long as there are more. */
PyObject *tfwi_iterate_spans(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const uint8_t *data = tfwi_address(args[1]);
    const size_t data_len = tfwi_size(args[2]), count = tfwi_size(args[4]);
    const tfw_span *spans = tfwi_address(args[3]);
    (void)module, (void)arg_count;
    PyObject *type = PyErr_Occurred() == NULL ? type_of_strings() : NULL;
    strings *s = type != NULL ? PyObject_New(strings, (PyTypeObject *)type) : NULL;
    if (s != NULL) {
        s->owner = args[0];
        Py_INCREF(s->owner);
        s->data = data;
        s->data_len = data_len;
        s->spans = spans;
        s->left = count;
    }
    return (PyObject *)s;
}

/* ---- Found in place ------------------------------------------------------------------------- */

/* Where the bytes begin in an object of this length; they follow its head wherever anybody has
 * looked, and then a call for each, which would take half the time, is not needed. */
static ptrdiff_t place_of_bytes(Py_ssize_t length) {
    PyObject *example = PyBytes_FromStringAndSize(NULL, length);
    ptrdiff_t place = example != NULL ? PyBytes_AsString(example) - (char *)example : 0;
    Py_XDECREF(example);
    return place;
}

/* objects, spans, first: notes where the bytes lie of the objects of a tuple from the first on, up
 * to one that is no bytes object, as spans of addresses; returns their number. The tuple keeps
 * them alive. */
PyObject *tfwi_spans_of_bytes(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    static ptrdiff_t place = 0; /* the GIL, or that every thread finds the same, guards it */
    PyObject *tuple = args[0];
    tfw_span *spans = tfwi_address(args[1]);
    const Py_ssize_t count = PyTuple_Size(tuple);
    (void)module, (void)arg_count;
    if (place == 0) {
        const ptrdiff_t found = place_of_bytes(8);
        place = found == place_of_bytes(4096) ? found : -1;
    }
    Py_ssize_t i = 0;
    for (; i < count; i++) {
        PyObject *object = PyTuple_GetItem(tuple, i);
        if (Py_TYPE(object) != &PyBytes_Type) {
            break;
        }
        const char *bytes = TFWI_LIKELY(place > 0) ? (char *)object + place
                                                   : PyBytes_AsString(object);
        spans[i] = (tfw_span){(uintptr_t)bytes, (uint64_t)Py_SIZE(object)};
    }
    return PyErr_Occurred() == NULL ? PyLong_FromSsize_t(i) : NULL;
}

#endif /* TFW_PYTHON */
