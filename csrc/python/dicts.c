/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded messages as dicts: strings as bytes objects, numbers as slices of two arrays. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/keys.h"
#include "python/decode.h"

enum {
    MOST_NAMES = 4096,   /* that are remembered */
    LONGEST_NAME = 256,  /* of those */
    MANY_SINGLES = 8,    /* arrays of one value, from which on a view by rows pays */
    KEPT_BYTES = 1 << 16 /* after a longer message its memory is not kept for the next one */
};

static const char decoder_name[] = "tfw_decoder";

/* Numbers of one kind. */
typedef struct source {
    PyObject *all;  /* an array of all values */
    PyObject *rows; /* the same, with one value a row; NULL: too few would be used */
    size_t count;
} source;

/* Decodes messages, and remembers their keys from call to call. For one thread at a time. */
typedef struct decoder {
    tfwi_decoded decoded;
    tfwi_keys keys;
    TFWI_ARRAY(PyObject *) names;  /* by number of the key */
    TFWI_ARRAY(uint32_t) guesses;  /* the numbers of the keys of the map before, in order */
    PyObject *from_memory;         /* numpy.frombuffer */
    PyObject *no_strings;          /* arrays without values */
    PyObject *no_floats;
    PyObject *no_int64s;
    source int64s;
    source floats;
} decoder;

/* ---- Decoders ------------------------------------------------------------------------------- */

static void forget_names(decoder *d) {
    while (d->names.count != 0) {
        Py_DECREF(d->names.of[--d->names.count]);
    }
    d->guesses.count = 0;
    tfwi_keys_clear(&d->keys);
}

static void free_decoder(PyObject *capsule) {
    decoder *d = PyCapsule_GetPointer(capsule, decoder_name);
    forget_names(d);
    Py_XDECREF(d->from_memory);
    Py_XDECREF(d->no_strings);
    Py_XDECREF(d->no_floats);
    Py_XDECREF(d->no_int64s);
    tfw_free(d->names.of);
    tfw_free(d->guesses.of);
    tfwi_decoded_clear(&d->decoded);
    tfw_free(d);
}

static PyObject *held(PyObject *object) {
    Py_INCREF(object);
    return object;
}

/* seed, as for tfw_schema_create, numpy.frombuffer, arrays without values of objects, of float32
 * and of int64: a decoder, for one thread at a time. */
PyObject *tfwi_new_decoder(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const uint64_t seed = PyLong_AsUnsignedLongLong(args[0]);
    decoder *d = PyErr_Occurred() == NULL ? tfwi_calloc(1, sizeof *d) : NULL;
    PyObject *capsule = d != NULL ? PyCapsule_New(d, decoder_name, free_decoder) : NULL;
    (void)module, (void)arg_count;
    if (capsule == NULL) {
        tfw_free(d);
        return PyErr_Occurred() == NULL ? PyErr_NoMemory() : NULL;
    }
    d->keys.seed = tfwi_seed_of(seed);
    d->from_memory = held(args[1]);
    d->no_strings = held(args[2]);
    d->no_floats = held(args[3]);
    d->no_int64s = held(args[4]);
    return capsule;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static PyObject *decode_name(const tfwi_value *value) {
    return PyUnicode_DecodeUTF8((const char *)value->key, (Py_ssize_t)value->key_len,
                                "surrogateescape");
}

/* Remembers the name of a new key; NULL, with an exception. */
static PyObject *add_name(decoder *d, const tfwi_value *value) {
    PyObject *name = TFWI_RESERVE_MORE(d->names, 1) ? decode_name(value) : PyErr_NoMemory();
    if (name == NULL) {
        forget_names(d); /* the key has its number already */
        return NULL;
    }
    d->names.of[d->names.count++] = name;
    return name;
}

/* The name of an entry, the place-th of its map: a new reference. */
static PyObject *name_of(decoder *d, const tfwi_value *value, size_t place) {
    uint32_t number;
    if (place < d->guesses.count) {
        number = d->guesses.of[place];
        if (TFWI_LIKELY(tfwi_is_named(&d->keys.of[number], value->key, value->key_len))) {
            return held(d->names.of[number]);
        }
    }
    if (value->key_len > LONGEST_NAME || d->keys.count > MOST_NAMES ||
        tfwi_keys_find(&d->keys, value->key, value->key_len, &number) != TFW_OK) {
        return decode_name(value);
    }
    if (number == d->names.count && add_name(d, value) == NULL) {
        return NULL;
    }
    if (place < d->guesses.count) {
        d->guesses.of[place] = number;
    } else if (place == d->guesses.count && TFWI_RESERVE_MORE(d->guesses, 1)) {
        d->guesses.of[d->guesses.count++] = number;
    }
    return held(d->names.of[number]);
}

/* ---- Values --------------------------------------------------------------------------------- */

/* An array of a copy of numbers; false, with an exception. */
static bool fill_source(decoder *d, source *from, PyObject *none, const void *numbers,
                        size_t count, size_t size, size_t singles) {
    *from = (source){.count = count};
    if (count == 0) {
        from->all = held(none);
        return true;
    }
    PyObject *memory = PyByteArray_FromStringAndSize(numbers, (Py_ssize_t)(count * size));
    PyObject *dtype = memory != NULL ? PyObject_GetAttrString(none, "dtype") : NULL;
    if (dtype != NULL) {
        from->all = PyObject_CallFunctionObjArgs(d->from_memory, memory, dtype, NULL);
        Py_DECREF(dtype);
    }
    Py_XDECREF(memory);
    if (from->all != NULL && singles >= MANY_SINGLES) {
        from->rows = PyObject_CallMethod(from->all, "reshape", "ii", -1, 1);
        return from->rows != NULL;
    }
    return from->all != NULL;
}

static PyObject *array_of(const source *from, const tfwi_value *value) {
    const Py_ssize_t begin = (Py_ssize_t)value->begin, end = (Py_ssize_t)value->end;
    if (end - begin == 1 && from->rows != NULL) {
        return PySequence_GetItem(from->rows, begin);
    }
    if (begin == 0 && value->end == from->count && end != 0) {
        return held(from->all); /* nothing else is in it */
    }
    return PySequence_GetSlice(from->all, begin, end);
}

static PyObject *strings_of(const decoder *d, const tfwi_value *value) {
    const size_t count = value->end - value->begin;
    if (count == 0) {
        return PySequence_GetSlice(d->no_strings, 0, 0);
    }
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const tfw_span string = d->decoded.strings.of[value->begin + i];
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)(uintptr_t)string.offset,
                                                    (Py_ssize_t)string.length);
        if (bytes == NULL || PyList_SetItem(list, (Py_ssize_t)i, bytes) != 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *object_of(const decoder *d, const tfwi_value *value) {
    switch (value->kind) {
    case TFW_INT64: return array_of(&d->int64s, value);
    case TFW_FLOAT: return array_of(&d->floats, value);
    case TFW_BYTES: return strings_of(d, value);
    default: return PyList_New(0);
    }
}

static PyObject *list_of_steps(const decoder *d, const tfwi_value *value) {
    PyObject *list = PyList_New((Py_ssize_t)(value->end - value->begin));
    for (size_t i = value->begin; list != NULL && i < value->end; i++) {
        PyObject *step = object_of(d, &d->decoded.values.of[i]);
        if (step == NULL || PyList_SetItem(list, (Py_ssize_t)(i - value->begin), step) != 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* A dict of the values [begin, end). Its keys are remembered by their places from first on. */
static PyObject *dict_of(decoder *d, size_t begin, size_t end, size_t first) {
    PyObject *dict = PyDict_New();
    for (size_t i = begin, place = first; dict != NULL && i < end; place++) {
        const tfwi_value *value = &d->decoded.values.of[i];
        const bool is_list = value->kind == TFWI_STEPS;
        PyObject *name = name_of(d, value, place);
        PyObject *object = NULL;
        if (name != NULL) {
            object = is_list ? list_of_steps(d, value) : object_of(d, value);
        }
        if (object == NULL || PyDict_SetItem(dict, name, object) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(name);
        Py_XDECREF(object);
        i = is_list ? value->end : i + 1;
    }
    return dict;
}

/* A dict, or a tuple of two, of the message whose values begin there. */
static PyObject *message_of(decoder *d, size_t number, unsigned flags, size_t *begin) {
    const bool sequence = (flags & TFW_SEQUENCE) != 0;
    const size_t *ends = d->decoded.ends.of + (sequence ? 2 * number : number);
    const size_t entries = ends[0] - *begin;
    PyObject *context = dict_of(d, *begin, ends[0], 0);
    *begin = ends[sequence];
    if (context == NULL || !sequence) {
        return context;
    }
    PyObject *lists = dict_of(d, ends[0], ends[1], entries);
    PyObject *both = lists != NULL ? PyTuple_Pack(2, context, lists) : NULL;
    Py_DECREF(context);
    Py_XDECREF(lists);
    return both;
}

/* Fills the sources of the numbers that were decoded. */
static bool fill_sources(decoder *d) {
    const tfwi_decoded *found = &d->decoded;
    size_t singles[2] = {0, 0};
    for (size_t i = 0; i < found->values.count; i++) {
        const tfwi_value *value = &found->values.of[i];
        const bool is_single = value->end - value->begin == 1;
        singles[0] += is_single && value->kind == TFW_INT64;
        singles[1] += is_single && value->kind == TFW_FLOAT;
    }
    d->int64s = d->floats = (source){.all = NULL};
    return fill_source(d, &d->int64s, d->no_int64s, found->int64s.of, found->int64s.count,
                       sizeof(int64_t), singles[0]) &&
           fill_source(d, &d->floats, d->no_floats, found->floats.of, found->floats.count,
                       sizeof(float), singles[1]);
}

static void close_sources(decoder *d) {
    Py_CLEAR(d->int64s.all);
    Py_CLEAR(d->int64s.rows);
    Py_CLEAR(d->floats.all);
    Py_CLEAR(d->floats.rows);
}

/* A list of the messages that were decoded. */
static PyObject *messages_of(decoder *d, size_t count, unsigned flags) {
    size_t begin = 0;
    PyObject *list = fill_sources(d) ? PyList_New((Py_ssize_t)count) : NULL;
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *message = message_of(d, i, flags, &begin);
        if (message == NULL || PyList_SetItem(list, (Py_ssize_t)i, message) != 0) {
            Py_CLEAR(list);
        }
    }
    close_sources(d);
    if (d->keys.count > MOST_NAMES) {
        forget_names(d);
    }
    return list;
}

/* decoder, data, data_len, spans, count, flags, error: a list of dicts, or with TFW_SEQUENCE of
 * tuples (context, feature lists); the status of a failure as an int. Flags: also TFW_ADDRESSES. */
PyObject *tfwi_decode_dicts(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    decoder *d = PyCapsule_GetPointer(args[0], decoder_name);
    const uint8_t *data = tfwi_address(args[1]);
    const size_t data_len = tfwi_size(args[2]), count = tfwi_size(args[4]);
    const tfw_span *spans = tfwi_address(args[3]);
    const unsigned flags = (unsigned)PyLong_AsUnsignedLong(args[5]);
    tfw_error *error = tfwi_address(args[6]);
    tfwi_messages messages;
    (void)module, (void)arg_count;
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    int status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    if (status == TFW_OK) {
        Py_BEGIN_ALLOW_THREADS
        status = tfwi_decode(&d->decoded, &messages, count, flags, error);
        Py_END_ALLOW_THREADS
    }
    return status == TFW_OK ? messages_of(d, count, flags) : PyLong_FromLong(status);
}

/* decoder, message, sequence: the dict or the tuple of a bytes object; None: decoding failed. */
PyObject *tfwi_decode_dict(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    decoder *d = PyCapsule_GetPointer(args[0], decoder_name);
    const unsigned flags = args[2] == Py_True ? TFW_SEQUENCE : 0;
    const uint8_t *data = (const uint8_t *)PyBytes_AsString(args[1]);
    const tfw_span span = {.length = data != NULL ? (uint64_t)Py_SIZE(args[1]) : 0};
    tfwi_messages messages;
    (void)module, (void)arg_count;
    if (d == NULL || data == NULL) {
        return NULL;
    }
    int status = tfwi_messages_init(&messages, data, (size_t)span.length, &span, 1, flags, NULL);
    if (status == TFW_OK) {
        status = tfwi_decode(&d->decoded, &messages, 1, flags, NULL);
    }
    size_t begin = 0;
    PyObject *message = status != TFW_OK ? held(Py_None)
                        : fill_sources(d) ? message_of(d, 0, flags, &begin)
                                          : NULL;
    close_sources(d);
    if (span.length > KEPT_BYTES) {
        tfwi_decoded_clear(&d->decoded);
    }
    if (d->keys.count > MOST_NAMES) {
        forget_names(d);
    }
    return message;
}

#endif /* TFW_PYTHON */
