/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to dicts, without a schema: a pickle that builds them, and arrays of their numbers.
 *
 * A list of numbers is the opcode NEXT_BUFFER, for which the unpickler takes the next object of its
 * buffers argument. That may be anything: Python passes slices of two arrays.
 */
#include "parse/parse.h"
#include "wire/floats.h"
#include "wire/message.h"
#include "python/pickle_strings.h"

/* A list of numbers, as tfw_dicts describes it. */
#define BUFFER_FIELDS 3

#define SOME 64 /* elements of every array, at first */

/* A state to return to after a failure. */
typedef struct position {
    size_t pickle;
    size_t int64s;
    size_t floats;
    size_t buffers;
} position;

typedef struct decoder {
    tfwi_pickle pickle;
    tfwi_int64s int64s;
    TFWI_ARRAY(float) floats;
    tfwi_int64s buffers;
    position value; /* where the one being written begins */
    tfwi_blocks blocks;
    tfwi_fault fault;
} decoder;

#define PUT(decoder, ...)                                          \
    (TFWI_LIKELY(TFWI_PICKLE(&(decoder)->pickle, __VA_ARGS__)) || \
     tfwi_out_of_memory(&(decoder)->fault))

static position here(const decoder *d) {
    return (position){d->pickle.stream.count, d->int64s.count, d->floats.count, d->buffers.count};
}

static void go_back(decoder *d, const position *to) {
    d->pickle.stream.count = to->pickle;
    d->int64s.count = to->int64s;
    d->floats.count = to->floats;
    d->buffers.count = to->buffers;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* The list of strings is opened by value_bytes: here nothing may fail. */
static void value_restart(void *self, int32_t kind) {
    decoder *d = self;
    (void)kind;
    go_back(d, &d->value);
}

static bool value_bytes(void *self, const uint8_t *data, size_t len) {
    decoder *d = self;
    bool opened = d->pickle.stream.count != d->value.pickle;
    return (opened || PUT(d, OP_EMPTY_LIST, OP_MARK)) && tfwi_pickle_bytes(&d->pickle, data, len);
}

static bool value_floats(void *self, const uint8_t *block, size_t count) {
    decoder *d = self;
    if (!TFWI_RESERVE_MORE(d->floats, count)) {
        return false;
    }
    tfwi_load_floats(d->floats.of + d->floats.count, block, count);
    d->floats.count += count;
    return true;
}

static bool value_int64(void *self, int64_t value) {
    decoder *d = self;
    if (!TFWI_RESERVE_MORE(d->int64s, 1)) {
        return false;
    }
    d->int64s.of[d->int64s.count++] = value;
    return true;
}

static bool value_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    decoder *d = self;
    while (p != end) {
        size_t left = (size_t)(end - p), count;
        size_t room = left < TFWI_VARINTS_AT_ONCE ? left : TFWI_VARINTS_AT_ONCE;
        if (!TFWI_RESERVE_MORE(d->int64s, room)) {
            return tfwi_out_of_memory(fault);
        }
        int64_t *out = d->int64s.of + d->int64s.count;
        p = tfwi_read_block(&d->blocks, p, end, out, room, &count, fault);
        if (p == NULL) {
            return false;
        }
        d->int64s.count += count;
    }
    return true;
}

static const tfwi_sink value_sink = {value_restart, value_bytes, value_floats, value_int64,
                                     value_varints};

TFWI_INLINE bool put_buffer(decoder *d, int32_t kind, size_t begin, size_t end) {
    if (!TFWI_RESERVE_MORE(d->buffers, BUFFER_FIELDS)) {
        return tfwi_out_of_memory(&d->fault);
    }
    int64_t *out = d->buffers.of + d->buffers.count;
    out[0] = kind;
    out[1] = (int64_t)begin;
    out[2] = (int64_t)end;
    d->buffers.count += BUFFER_FIELDS;
    return PUT(d, OP_NEXT_BUFFER);
}

/* Completes a value; the last kind that was set counts. */
TFWI_INLINE bool value_end(decoder *d, int32_t kind) {
    switch (kind) {
    case TFW_INT64: return put_buffer(d, kind, d->value.int64s, d->int64s.count);
    case TFW_FLOAT: return put_buffer(d, kind, d->value.floats, d->floats.count);
    default: break;
    }
    if (d->pickle.stream.count != d->value.pickle) {
        return PUT(d, OP_APPENDS);
    }
    return kind == TFW_NONE ? PUT(d, OP_EMPTY_LIST) : put_buffer(d, kind, 0, 0);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* The value of a map entry: a Feature, which may be in pieces. */
TFWI_INLINE bool put_pickled_feature(decoder *d, tfwi_entry *entry) {
    int32_t kind = TFW_NONE;
    const uint8_t *p, *end;
    d->value = here(d);
    while (tfwi_next_piece(entry, &p, &end)) {
        if (!tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault)) {
            return false;
        }
    }
    return value_end(d, kind);
}

static bool put_step(decoder *d, const uint8_t *p, const uint8_t *end) {
    int32_t kind = TFW_NONE;
    d->value = here(d);
    return tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault) && value_end(d, kind);
}

/* The value of a map entry: a FeatureList; the steps of its pieces follow each other. */
static bool put_feature_list(decoder *d, tfwi_entry *entry) {
    const uint8_t *p, *end;
    if (!PUT(d, OP_EMPTY_LIST, OP_MARK)) {
        return false;
    }
    while (tfwi_next_piece(entry, &p, &end)) {
        tfwi_field field;
        while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &d->fault)) {
            if (!put_step(d, field.data, field.data + field.len)) {
                return false;
            }
        }
        if (p != end) {
            return false;
        }
    }
    return PUT(d, OP_APPENDS);
}

typedef bool put_value(decoder *d, tfwi_entry *entry);

/* The entries of a map, or of a piece of one. The last entry of a key counts, as protobuf's maps
 * and SETITEMS have it. */
TFWI_INLINE bool put_pairs_of(decoder *d, const uint8_t *p, const uint8_t *end, put_value *value) {
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &d->fault)) {
        tfwi_entry entry;
        if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &d->fault)) {
            return false;
        }
        if (!tfwi_pickle_key(&d->pickle, entry.key, entry.key_len)) {
            return tfwi_out_of_memory(&d->fault);
        }
        if (!value(d, &entry)) {
            return false;
        }
    }
    return p == end;
}

/* A dict of the map that lies in the pieces of one field of the message. */
TFWI_INLINE bool put_map(decoder *d, const uint8_t *p, const uint8_t *end, uint32_t number,
                    put_value *value) {
    if (!PUT(d, OP_EMPTY_DICT, OP_MARK)) {
        return false;
    }
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(number, TFWI_WIRE_LEN), &field, &d->fault)) {
        if (!put_pairs_of(d, field.data, field.data + field.len, value)) {
            return false;
        }
    }
    return p == end && PUT(d, OP_SETITEMS);
}

static bool put_message(decoder *d, const uint8_t *p, const uint8_t *end, unsigned flags) {
    if (!put_map(d, p, end, 1, put_pickled_feature)) {
        return false;
    }
    if ((flags & TFW_SEQUENCE) == 0) {
        return true;
    }
    return put_map(d, p, end, 2, put_feature_list) && PUT(d, OP_TUPLE2);
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* Decodes messages until one is malformed; nothing of that one is kept. */
static bool put_messages(decoder *d, const tfwi_messages *messages, size_t count, unsigned flags,
                         size_t *out_done) {
    for (*out_done = 0; *out_done < count; ++*out_done) {
        tfwi_message message = tfwi_message_at(messages, *out_done);
        position before = here(d);
        d->blocks.limit = message.limit;
        if (!put_message(d, message.begin, message.begin + message.len, flags)) {
            go_back(d, &before);
            return false;
        }
    }
    return true;
}

/* The array of the last call, to be reused unless the caller has kept it. */
#define LENT(data, room) {.of = (data), .capacity = (data) != NULL ? (room) : 0}

static decoder decoder_of(const tfw_dicts *dicts) {
    return (decoder){
        .pickle = {.stream = LENT(dicts->pickle, dicts->capacities[0])},
        .int64s = LENT(dicts->int64s, dicts->capacities[1]),
        .floats = LENT(dicts->floats, dicts->capacities[2]),
        .buffers = LENT(dicts->buffers, dicts->capacities[3]),
        .blocks = {.varints = tfwi_matcher_best()->varints},
    };
}

/* Returns the arrays, which may have moved. */
static void give_back(const decoder *d, tfw_dicts *out_dicts) {
    *out_dicts = (tfw_dicts){
        .pickle = d->pickle.stream.of,
        .int64s = d->int64s.of,
        .floats = d->floats.of,
        .buffers = d->buffers.of,
        .pickle_len = d->pickle.stream.count,
        .int64_count = d->int64s.count,
        .float_count = d->floats.count,
        .buffer_count = d->buffers.count / BUFFER_FIELDS,
        .capacities = {d->pickle.stream.capacity, d->int64s.capacity, d->floats.capacity,
                       d->buffers.capacity},
    };
}

/* Opens the list, and reserves a little of every array so that no pointer is NULL. */
static bool begin(decoder *d) {
    bool reserved = TFWI_RESERVE(d->pickle.stream, SOME) && TFWI_RESERVE(d->int64s, SOME) &&
                    TFWI_RESERVE(d->floats, SOME) && TFWI_RESERVE(d->buffers, SOME);
    return (reserved || tfwi_out_of_memory(&d->fault)) &&
           PUT(d, OP_PROTO, 5, OP_EMPTY_LIST, OP_MARK);
}

static int decode_failed(decoder *d, const tfwi_messages *messages, size_t done,
                         tfw_error *error) {
    tfwi_fail(error, d->fault.status, d->fault.text);
    TFWI_SET(error, record, (int64_t)done);
    if (d->fault.status == TFW_E_WIRE) {
        TFWI_SET(error, offset, d->fault.at - tfwi_message_at(messages, done).begin);
    }
    return d->fault.status;
}

/* The whole pickle, or nothing when out of memory. */
static int put_pickle(decoder *d, const tfwi_messages *messages, size_t count, unsigned flags,
                      size_t *out_done, tfw_error *error) {
    int status = TFW_OK;
    if (!begin(d) || !put_messages(d, messages, count, flags, out_done)) {
        status = decode_failed(d, messages, *out_done, error);
    }
    if (status != TFW_E_MEMORY && !PUT(d, OP_APPENDS, OP_STOP)) {
        status = tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (status == TFW_E_MEMORY) {
        *out_done = 0;
        go_back(d, &(position){.pickle = 0});
    }
    return status;
}

int tfw_decode(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
               unsigned flags, tfw_dicts *dicts, size_t *out_done, tfw_error *error) {
    tfwi_messages messages;
    decoder d = decoder_of(dicts);
    size_t done = 0;
    int status = tfwi_check_flags(flags, TFW_SEQUENCE | TFW_ADDRESSES, error);
    if (status == TFW_OK) {
        status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    }
    if (status == TFW_OK) {
        status = put_pickle(&d, &messages, count, flags, &done, error);
    }
    if (out_done != NULL) {
        *out_done = done;
    }
    give_back(&d, dicts);
    tfw_free(d.pickle.memo);
    return status;
}

#define FITS(dicts, count, small, array) \
    ((dicts)->count <= sizeof((small)->array) / sizeof *(small)->array)
#define TAKE(dicts, count, small, array) \
    memcpy((small)->array, (dicts)->array, (size_t)(dicts)->count * sizeof *(small)->array)

int tfw_decode_small(const uint8_t *data, size_t len, unsigned flags, tfw_dicts *dicts,
                     tfw_small_dict *out_small, tfw_error *error) {
    tfw_span span = {.offset = 0, .length = len};
    if ((flags & TFW_ADDRESSES) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a message has no spans to hold addresses");
    }
    int status = tfw_decode(data, len, &span, 1, flags, dicts, NULL, error);
    if (status != TFW_OK) {
        return status;
    }
    const uint64_t buffer_fields = BUFFER_FIELDS * dicts->buffer_count;
    if (!FITS(dicts, pickle_len, out_small, pickle) ||
        !FITS(dicts, int64_count, out_small, int64s) ||
        !FITS(dicts, float_count, out_small, floats) ||
        buffer_fields > sizeof out_small->buffers / sizeof *out_small->buffers) {
        return TFW_NEED_SPACE;
    }
    TAKE(dicts, pickle_len, out_small, pickle);
    TAKE(dicts, int64_count, out_small, int64s);
    TAKE(dicts, float_count, out_small, floats);
    memcpy(out_small->buffers, dicts->buffers, (size_t)buffer_fields * sizeof(int64_t));
    out_small->int64_count = dicts->int64_count;
    out_small->float_count = dicts->float_count;
    out_small->buffer_count = dicts->buffer_count;
    return TFW_OK;
}

void tfw_dicts_free(tfw_dicts *dicts) {
    tfw_free(dicts->pickle);
    tfw_free(dicts->int64s);
    tfw_free(dicts->floats);
    tfw_free(dicts->buffers);
    *dicts = (tfw_dicts){.pickle = NULL};
}
