/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded messages as dicts: strings as bytes objects, numbers as slices of arrays. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/keys.h"
#include "python/decode.h"

enum {
    MOST_NAMES = 4096,    /* that are remembered */
    LONGEST_NAME = 256,   /* of those */
    SHARED_NUMBERS = 512, /* numbers of one array; more are in an array of their own */
    KEPT_BYTES = 1 << 16  /* after a longer message its memory is not kept for the next one */
};

static const char decoder_name[] = "tfw_decoder";

/* Numbers of one kind. An array costs more than the numbers of a message, so several messages
 * share one: its numbers are used in turn. */
typedef struct source {
    PyObject *none;  /* an array without values */
    PyObject *dtype; /* of it */
    PyObject *all;   /* an array; NULL: there is no room yet */
    PyObject *rows;  /* the same, with one value a row; NULL: none was asked for */
    uint8_t *memory; /* of the array */
    size_t room;     /* numbers that it holds */
    size_t used;
    size_t begin; /* where those of the decoded messages begin */
} source;

/* Decodes messages, and remembers their keys from call to call. For one thread at a time. */
typedef struct decoder {
    tfwi_decoded decoded;
    tfwi_keys keys;
    TFWI_ARRAY(PyObject *) names;  /* by number of the key */
    TFWI_ARRAY(uint32_t) guesses;  /* the numbers of the keys of the map before, in order */
    size_t missed;                 /* guesses that were wrong */
    size_t entries;                /* of the map before */
    PyObject *alike;               /* a dict of the guesses; NULL: no two maps had the same keys */
    PyObject *from_memory;         /* numpy.frombuffer */
    PyObject *no_strings;          /* an array without values */
    source int64s;
    source floats;
} decoder;

/* ---- Decoders ------------------------------------------------------------------------------- */

static void forget_names(decoder *d) {
    while (d->names.count != 0) {
        Py_DECREF(d->names.of[--d->names.count]);
    }
    d->guesses.count = 0;
    Py_CLEAR(d->alike);
    tfwi_keys_clear(&d->keys);
}

static void close_source(source *from) {
    Py_CLEAR(from->all);
    Py_CLEAR(from->rows);
    from->room = from->used = 0;
}

static void free_source(source *from) {
    close_source(from);
    Py_XDECREF(from->none);
    Py_XDECREF(from->dtype);
}

static void free_decoder(PyObject *capsule) {
    decoder *d = PyCapsule_GetPointer(capsule, decoder_name);
    forget_names(d);
    Py_XDECREF(d->from_memory);
    Py_XDECREF(d->no_strings);
    free_source(&d->int64s);
    free_source(&d->floats);
    tfw_free(d->names.of);
    tfw_free(d->guesses.of);
    tfwi_decoded_clear(&d->decoded);
    tfw_free(d);
}

static PyObject *held(PyObject *object) {
    Py_INCREF(object);
    return object;
}

static bool begin_source(source *from, PyObject *none) {
    from->none = held(none);
    from->dtype = PyObject_GetAttrString(none, "dtype");
    return from->dtype != NULL;
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
    if (!begin_source(&d->floats, args[3]) || !begin_source(&d->int64s, args[4])) {
        Py_CLEAR(capsule);
    }
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
    d->missed++;
    if (value->key_len > LONGEST_NAME || d->keys.count > MOST_NAMES ||
        tfwi_keys_find(&d->keys, value->key, value->key_len, &number) != TFW_OK) {
        return decode_name(value);
    }
    if (number == d->names.count && add_name(d, value) == NULL) {
        return NULL;
    }
    Py_CLEAR(d->alike);
    if (place < d->guesses.count) {
        d->guesses.of[place] = number;
    } else if (place == d->guesses.count && TFWI_RESERVE_MORE(d->guesses, 1)) {
        d->guesses.of[d->guesses.count++] = number;
    }
    return held(d->names.of[number]);
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Makes room for so many numbers, in a new array; false, with an exception. */
static bool add_room(decoder *d, source *from, size_t count, size_t size) {
    close_source(from);
    const size_t room = count > SHARED_NUMBERS ? count : SHARED_NUMBERS;
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(room * size));
    if (memory == NULL) {
        return false;
    }
    from->memory = (uint8_t *)PyByteArray_AsString(memory);
    from->all = PyObject_CallFunctionObjArgs(d->from_memory, memory, from->dtype, NULL);
    Py_DECREF(memory);
    from->room = from->all != NULL ? room : 0;
    return from->room != 0;
}

/* Copies the numbers of messages to where they stay; false, with an exception. */
static bool fill_source(decoder *d, source *from, const void *numbers, size_t count, size_t size) {
    if (count > from->room - from->used && !add_room(d, from, count, size)) {
        return false;
    }
    if (count != 0) {
        memcpy(from->memory + from->used * size, numbers, count * size);
    }
    from->begin = from->used;
    from->used += count;
    return true;
}

/* An array of one number. */
static PyObject *single_of(source *from, Py_ssize_t at) {
    if (from->rows == NULL) {
        from->rows = PyObject_CallMethod(from->all, "reshape", "ii", -1, 1);
    }
    return from->rows != NULL ? PySequence_GetItem(from->rows, at) : NULL;
}

static PyObject *array_of(source *from, const tfwi_value *value) {
    const size_t count = value->end - value->begin;
    const Py_ssize_t begin = (Py_ssize_t)(from->begin + value->begin);
    if (count == 0) {
        return PySequence_GetSlice(from->none, 0, 0);
    }
    if (count == from->room) {
        return held(from->all); /* nothing else is in it */
    }
    return count == 1 ? single_of(from, begin)
                      : PySequence_GetSlice(from->all, begin, begin + (Py_ssize_t)count);
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

static PyObject *object_of(decoder *d, const tfwi_value *value) {
    switch (value->kind) {
    case TFW_INT64: return array_of(&d->int64s, value);
    case TFW_FLOAT: return array_of(&d->floats, value);
    case TFW_BYTES: return strings_of(d, value);
    default: return PyList_New(0);
    }
}

static PyObject *list_of_steps(decoder *d, const tfwi_value *value) {
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

/* Whether a map has the keys that were noted. */
static bool is_alike(const decoder *d, size_t begin, size_t end) {
    const size_t count = end - begin;
    bool alike = d->alike != NULL && count == (size_t)PyDict_Size(d->alike);
    for (size_t i = 0; alike && i < count; i++) {
        const tfwi_value *value = &d->decoded.values.of[begin + i];
        alike = tfwi_is_named(&d->keys.of[d->guesses.of[i]], value->key, value->key_len);
    }
    return alike;
}

/* Such a map: its dict is a copy, since to set a value takes a third of the time of
 * adding one and making room. */
static PyObject *alike_dict_of(decoder *d, size_t begin, size_t end) {
    PyObject *dict = PyDict_Copy(d->alike);
    for (size_t i = begin; dict != NULL && i < end; i++) {
        PyObject *name = d->names.of[d->guesses.of[i - begin]];
        PyObject *object = object_of(d, &d->decoded.values.of[i]);
        if (object == NULL || PyDict_SetItem(dict, name, object) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(object);
    }
    return dict;
}

/* Notes the keys of a map of so many entries, all of which were guessed. Without memory none. */
static void note_keys(decoder *d, size_t count) {
    Py_CLEAR(d->alike);
    d->alike = PyDict_New();
    for (size_t i = 0; d->alike != NULL && i < count; i++) {
        if (PyDict_SetItem(d->alike, d->names.of[d->guesses.of[i]], Py_None) != 0) {
            Py_CLEAR(d->alike);
        }
    }
    PyErr_Clear();
}

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

/* The same of the features of a message. */
static PyObject *dict_of_features(decoder *d, size_t begin, size_t end) {
    if (is_alike(d, begin, end)) {
        return alike_dict_of(d, begin, end);
    }
    const size_t missed = d->missed, count = end - begin;
    PyObject *dict = dict_of(d, begin, end, 0);
    if (dict != NULL && count > TFWI_FEW_KEYS && count == d->entries && missed == d->missed &&
        count == (size_t)PyDict_Size(dict)) {
        note_keys(d, count);
    }
    d->entries = count;
    return dict;
}

/* A dict, or a tuple of two, of the message whose values begin there. */
static PyObject *message_of(decoder *d, size_t number, unsigned flags, size_t *begin) {
    const bool sequence = (flags & TFW_SEQUENCE) != 0;
    const size_t *ends = d->decoded.ends.of + (sequence ? 2 * number : number);
    const size_t entries = ends[0] - *begin;
    PyObject *context = dict_of_features(d, *begin, ends[0]);
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

/* Fills the sources with the numbers that were decoded. */
static bool fill_sources(decoder *d) {
    const tfwi_decoded *found = &d->decoded;
    return fill_source(d, &d->int64s, found->int64s.of, found->int64s.count, sizeof(int64_t)) &&
           fill_source(d, &d->floats, found->floats.of, found->floats.count, sizeof(float));
}

/* Keeps no array of many numbers, nor one that somebody has. */
static void close_sources(decoder *d) {
    if (d->int64s.used == d->int64s.room) {
        close_source(&d->int64s);
    }
    if (d->floats.used == d->floats.room) {
        close_source(&d->floats);
    }
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
