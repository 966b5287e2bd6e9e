/* Messages to dicts, without a schema: a pickle that builds them, numbers beside it.
 *
 * The stream is written opcode by opcode here; bytes of a message are only ever payload of counted
 * strings. A list of numbers is the opcode NEXT_BUFFER, for which the unpickler takes the next
 * object of its buffers argument, whatever that is: Python passes slices of two arrays.
 */
#include "decode.h"
#include "message.h"

/* Opcodes, as pickletools names them. */
enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    TUPLE2 = 0x86,
    SHORT_BINBYTES = 'C',
    BINBYTES = 'B',
    BINBYTES8 = 0x8e,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE = 'X',
    BINUNICODE8 = 0x8d,
    MEMOIZE = 0x94,
    BINGET = 'h',
    LONG_BINGET = 'j',
    NEXT_BUFFER = 0x97
};

#define MAX_OPCODE 9 /* bytes of an opcode with its argument, payload aside */

/* A key that the unpickler remembers. */
typedef struct memo_slot {
    uint64_t hash;
    size_t offset; /* of the key in the pickle */
    size_t len;
    size_t number; /* in the unpickler's memo, plus 1; 0: the slot is free */
} memo_slot;

/* Keys whose slots are taken this many times over are written out again and again: no choice of
 * keys makes the search long. */
#define MEMO_PROBES 8
#define MEMO_SLOTS 64 /* at first */

/* An array that is filled from its beginning; sizes in items. */
typedef struct list {
    tfwi_array array;
    size_t count;
} list;

typedef struct decoder {
    list pickle;
    list int64s;
    list floats;
    list buffers;
    memo_slot *memo;
    size_t memo_mask;
    size_t memo_count;
    /* The value being written: where it begins in each of the lists. */
    size_t pickle_begin;
    size_t int64_begin;
    size_t float_begin;
    tfwi_blocks blocks;
    tfwi_fault fault;
} decoder;

/* Room for count more items, or NULL. */
static void *list_room(list *items, size_t count, size_t item_size) {
    size_t size;
    if (tfwi_add_overflows(items->count, count, &size) ||
        tfwi_mul_overflows(size, item_size, &size) || !tfwi_array_reserve(&items->array, size)) {
        return NULL;
    }
    return items->array.data + items->count * item_size;
}

/* ---- Opcodes -------------------------------------------------------------------------------- */

static bool put_opcodes(decoder *d, const uint8_t *opcodes, size_t count) {
    uint8_t *out = list_room(&d->pickle, count, 1);
    if (out == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    memcpy(out, opcodes, count);
    d->pickle.count += count;
    return true;
}

#define PUT(decoder, ...) \
    put_opcodes(decoder, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Writes an opcode with a length of one, four or eight bytes; returns how many bytes it takes. */
static size_t write_header(uint8_t *out, const uint8_t opcodes[3], uint64_t len) {
    if (len <= UINT8_MAX) {
        out[0] = opcodes[0];
        out[1] = (uint8_t)len;
        return 2;
    }
    if (len <= UINT32_MAX) {
        out[0] = opcodes[1];
        tfwi_store32(out + 1, (uint32_t)len);
        return 5;
    }
    out[0] = opcodes[2];
    tfwi_store64(out + 1, len);
    return 9;
}

static bool put_bytes(decoder *d, const uint8_t *data, size_t len) {
    static const uint8_t opcodes[3] = {SHORT_BINBYTES, BINBYTES, BINBYTES8};
    size_t size;
    uint8_t *out = tfwi_add_overflows(len, MAX_OPCODE, &size) ? NULL
                                                              : list_room(&d->pickle, size, 1);
    if (out == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    size_t header = write_header(out, opcodes, len);
    if (len != 0) {
        memcpy(out + header, data, len);
    }
    d->pickle.count += header + len;
    return true;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static bool is_continuation(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/* Bytes of the UTF-8 character at p, 0 if there is none: Python's rules, thus no surrogates. */
static size_t utf8_len(const uint8_t *p, const uint8_t *end) {
    size_t left = (size_t)(end - p);
    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < 2 || !is_continuation(p[1])) {
        return 0;
    }
    if (p[0] < 0xe0) {
        return 2;
    }
    if (left < 3 || !is_continuation(p[2])) {
        return 0;
    }
    if (p[0] < 0xf0) {
        bool overlong = p[0] == 0xe0 && p[1] < 0xa0, surrogate = p[0] == 0xed && p[1] > 0x9f;
        return overlong || surrogate ? 0 : 3;
    }
    bool overlong = p[0] == 0xf0 && p[1] < 0x90, beyond = p[0] == 0xf4 && p[1] > 0x8f;
    return left < 4 || !is_continuation(p[3]) || overlong || beyond ? 0 : 4;
}

/* How many bytes of a key are not part of a character. */
static size_t count_stray_bytes(const uint8_t *p, const uint8_t *end) {
    size_t stray = 0;
    while (p != end) {
        size_t len = utf8_len(p, end);
        stray += len == 0;
        p += len != 0 ? len : 1;
    }
    return stray;
}

/* Copies a key, each stray byte b as the surrogate U+DC00 + b: what surrogateescape decodes. */
static void copy_escaped(uint8_t *out, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        size_t len = utf8_len(p, end);
        if (len == 0) {
            *out++ = 0xed;
            *out++ = (uint8_t)(0xb0 | *p >> 6);
            *out++ = (uint8_t)(0x80 | (*p++ & 0x3f));
        }
        for (; len > 0; len--) {
            *out++ = *p++;
        }
    }
}

/* Writes a key as str; *out_offset is where its bytes lie in the pickle. */
static bool put_str(decoder *d, const uint8_t *key, size_t len, size_t *out_stray,
                    size_t *out_offset) {
    static const uint8_t opcodes[3] = {SHORT_BINUNICODE, BINUNICODE, BINUNICODE8};
    size_t stray = count_stray_bytes(key, key + len), size;
    uint8_t *out = NULL;
    if (!tfwi_mul_overflows(len, 3, &size) && !tfwi_add_overflows(size, MAX_OPCODE, &size)) {
        out = list_room(&d->pickle, len + 2 * stray + MAX_OPCODE, 1);
    }
    if (out == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    size_t header = write_header(out, opcodes, len + 2 * stray);
    copy_escaped(out + header, key, key + len);
    *out_stray = stray;
    *out_offset = d->pickle.count + header;
    d->pickle.count += header + len + 2 * stray;
    return true;
}

/* The slot of a key, the free one for it, or NULL where neither is near. */
static memo_slot *memo_find(const decoder *d, const uint8_t *key, size_t len, uint64_t hash) {
    for (size_t i = 0; i < MEMO_PROBES; i++) {
        memo_slot *slot = &d->memo[(hash + i) & d->memo_mask];
        if (slot->number == 0 ||
            (slot->hash == hash && slot->len == len &&
             memcmp(d->pickle.array.data + slot->offset, key, len) == 0)) {
            return slot;
        }
    }
    return NULL;
}

/* Doubles the memo; keys that find no slot are forgotten, and would be written again. */
static bool memo_grow(decoder *d) {
    size_t slots = d->memo == NULL ? MEMO_SLOTS : 2 * (d->memo_mask + 1);
    memo_slot *old = d->memo;
    size_t old_slots = old == NULL ? 0 : d->memo_mask + 1;
    memo_slot *memo = tfwi_calloc(slots, sizeof *memo);
    if (memo == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    d->memo = memo;
    d->memo_mask = slots - 1;
    for (size_t i = 0; i < old_slots; i++) {
        const uint8_t *key = d->pickle.array.data + old[i].offset;
        memo_slot *slot = old[i].number == 0 ? NULL : memo_find(d, key, old[i].len, old[i].hash);
        if (slot != NULL) {
            *slot = old[i];
        }
    }
    tfw_free(old);
    return true;
}

static bool put_memo(decoder *d, size_t number) {
    uint8_t opcode[5] = {BINGET, (uint8_t)number};
    if (number <= UINT8_MAX) {
        return put_opcodes(d, opcode, 2);
    }
    opcode[0] = LONG_BINGET;
    tfwi_store32(opcode + 1, (uint32_t)number);
    return put_opcodes(d, opcode, 5);
}

/* Writes a key in full when it is new, else as a reference. */
static bool put_key(decoder *d, const uint8_t *key, size_t len) {
    bool full = d->memo == NULL || d->memo_count > d->memo_mask / 2;
    if (full && !memo_grow(d)) {
        return false;
    }
    uint64_t hash = tfwi_hash(key, len);
    memo_slot *slot = memo_find(d, key, len, hash);
    if (slot != NULL && slot->number != 0) {
        return put_memo(d, slot->number - 1);
    }
    size_t stray = 0, offset = 0;
    if (!put_str(d, key, len, &stray, &offset)) {
        return false;
    }
    if (slot == NULL || stray != 0 || d->memo_count == UINT32_MAX) {
        return true;
    }
    *slot = (memo_slot){.hash = hash, .offset = offset, .len = len, .number = ++d->memo_count};
    return PUT(d, MEMOIZE);
}

/* ---- Values --------------------------------------------------------------------------------- */

static void value_begin(decoder *d) {
    d->pickle_begin = d->pickle.count;
    d->int64_begin = d->int64s.count;
    d->float_begin = d->floats.count;
}

/* The list of strings is opened by value_bytes: here nothing may fail. */
static void value_restart(void *self, int32_t kind) {
    decoder *d = self;
    (void)kind;
    d->pickle.count = d->pickle_begin;
    d->int64s.count = d->int64_begin;
    d->floats.count = d->float_begin;
}

static bool value_bytes(void *self, const uint8_t *data, size_t len) {
    decoder *d = self;
    bool opened = d->pickle.count != d->pickle_begin;
    return (opened || PUT(d, EMPTY_LIST, MARK)) && put_bytes(d, data, len);
}

static bool value_floats(void *self, const uint8_t *block, size_t count) {
    decoder *d = self;
    void *out = list_room(&d->floats, count, sizeof(float));
    if (out != NULL) {
        tfwi_copy_floats(out, block, count);
        d->floats.count += count;
    }
    return out != NULL;
}

static bool value_int64(void *self, int64_t value) {
    decoder *d = self;
    int64_t *out = list_room(&d->int64s, 1, sizeof *out);
    if (out != NULL) {
        *out = value;
        d->int64s.count++;
    }
    return out != NULL;
}

static bool value_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    decoder *d = self;
    while (p != end) {
        size_t left = (size_t)(end - p), count;
        size_t room = left < TFWI_VARINTS_AT_ONCE ? left : TFWI_VARINTS_AT_ONCE;
        int64_t *out = list_room(&d->int64s, room, sizeof *out);
        if (out == NULL) {
            return tfwi_out_of_memory(fault);
        }
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

static bool put_buffer(decoder *d, int32_t kind, size_t begin, size_t end) {
    int64_t *out = list_room(&d->buffers, 3, sizeof *out);
    if (out == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    out[0] = kind;
    out[1] = (int64_t)begin;
    out[2] = (int64_t)end;
    d->buffers.count += 3;
    return PUT(d, NEXT_BUFFER);
}

/* Completes a value, of which the last kind that was set counts. */
static bool value_end(decoder *d, int32_t kind) {
    switch (kind) {
    case TFW_INT64: return put_buffer(d, kind, d->int64_begin, d->int64s.count);
    case TFW_FLOAT: return put_buffer(d, kind, d->float_begin, d->floats.count);
    default: break;
    }
    return d->pickle.count != d->pickle_begin ? PUT(d, APPENDS) : PUT(d, EMPTY_LIST);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* The value of a map entry: a Feature, which may be in pieces. */
static bool put_feature(decoder *d, tfwi_entry *entry) {
    int32_t kind = TFW_NONE;
    const uint8_t *p, *end;
    value_begin(d);
    while (tfwi_next_piece(entry, &p, &end)) {
        if (!tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault)) {
            return false;
        }
    }
    return value_end(d, kind);
}

static bool put_step(decoder *d, const uint8_t *p, const uint8_t *end) {
    int32_t kind = TFW_NONE;
    value_begin(d);
    return tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault) && value_end(d, kind);
}

/* The value of a map entry: a FeatureList; the steps of its pieces follow each other. */
static bool put_feature_list(decoder *d, tfwi_entry *entry) {
    const uint8_t *p, *end;
    if (!PUT(d, EMPTY_LIST, MARK)) {
        return false;
    }
    while (tfwi_next_piece(entry, &p, &end)) {
        while (p != end) {
            tfwi_field field;
            p = tfwi_read_field(p, end, &field, &d->fault);
            if (p == NULL) {
                return false;
            }
            if (field.tag == TFWI_TAG(1, TFWI_BYTES) &&
                !put_step(d, field.data, field.data + field.len)) {
                return false;
            }
        }
    }
    return PUT(d, APPENDS);
}

typedef bool put_value(decoder *d, tfwi_entry *entry);

/* The entries of a map, or of a piece of one. Of a key's entries the last counts: so it is with
 * maps, and so it is with SETITEMS. */
static bool put_entries(decoder *d, const uint8_t *p, const uint8_t *end, put_value *value) {
    while (p != end) {
        tfwi_field field;
        tfwi_entry entry;
        p = tfwi_read_field(p, end, &field, &d->fault);
        if (p == NULL) {
            return false;
        }
        if (field.tag != TFWI_TAG(1, TFWI_BYTES)) {
            continue;
        }
        if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &d->fault) ||
            !put_key(d, entry.key, entry.key_len) || !value(d, &entry)) {
            return false;
        }
    }
    return true;
}

/* A dict of the map that lies in the pieces of one field of the message. */
static bool put_map(decoder *d, const uint8_t *p, const uint8_t *end, uint32_t number,
                    put_value *value) {
    if (!PUT(d, EMPTY_DICT, MARK)) {
        return false;
    }
    while (p != end) {
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &d->fault);
        if (p == NULL) {
            return false;
        }
        if (field.tag == TFWI_TAG(number, TFWI_BYTES) &&
            !put_entries(d, field.data, field.data + field.len, value)) {
            return false;
        }
    }
    return PUT(d, SETITEMS);
}

static bool put_message(decoder *d, const uint8_t *p, const uint8_t *end, unsigned flags) {
    if (!put_map(d, p, end, 1, put_feature)) {
        return false;
    }
    if ((flags & TFW_SEQUENCE) == 0) {
        return true;
    }
    return put_map(d, p, end, 2, put_feature_list) && PUT(d, TUPLE2);
}

/* ---- Batches -------------------------------------------------------------------------------- */

static void decoder_free(decoder *d) {
    tfw_free(d->pickle.array.data);
    tfw_free(d->int64s.array.data);
    tfw_free(d->floats.array.data);
    tfw_free(d->buffers.array.data);
    tfw_free(d->memo);
}

/* Decodes messages until one is malformed; what that one had written is taken back. */
static bool put_messages(decoder *d, const tfwi_messages *messages, size_t count, unsigned flags,
                         size_t *out_done) {
    for (*out_done = 0; *out_done < count; ++*out_done) {
        tfwi_message message = tfwi_message_at(messages, *out_done);
        size_t pickle = d->pickle.count, int64s = d->int64s.count, floats = d->floats.count;
        size_t buffers = d->buffers.count;
        d->blocks.limit = message.limit;
        if (!put_message(d, message.begin, message.begin + message.len, flags)) {
            d->pickle.count = pickle;
            d->int64s.count = int64s;
            d->floats.count = floats;
            d->buffers.count = buffers;
            return false;
        }
    }
    return true;
}

static void hand_over(decoder *d, tfw_dicts *out_dicts) {
    *out_dicts = (tfw_dicts){
        .pickle = d->pickle.array.data,
        .int64s = (int64_t *)(void *)d->int64s.array.data,
        .floats = (float *)(void *)d->floats.array.data,
        .buffers = (int64_t *)(void *)d->buffers.array.data,
        .pickle_len = d->pickle.count,
        .int64_count = d->int64s.count,
        .float_count = d->floats.count,
        .buffer_count = d->buffers.count / 3,
    };
    d->pickle.array.data = d->int64s.array.data = NULL;
    d->floats.array.data = d->buffers.array.data = NULL;
}

/* Opens the list, and reserves something everywhere so that no pointer is missing. */
static bool begin(decoder *d) {
    if (list_room(&d->int64s, 1, sizeof(int64_t)) == NULL ||
        list_room(&d->floats, 1, sizeof(float)) == NULL ||
        list_room(&d->buffers, 3, sizeof(int64_t)) == NULL) {
        return tfwi_out_of_memory(&d->fault);
    }
    return PUT(d, PROTO, 5, EMPTY_LIST, MARK);
}

static int decode_failed(const decoder *d, const tfwi_messages *messages, size_t done,
                         tfw_error *error) {
    tfwi_fail(error, d->fault.status, d->fault.text);
    if (error != NULL) {
        error->record = (int64_t)done;
        if (d->fault.status == TFW_E_WIRE) {
            error->offset = d->fault.at - tfwi_message_at(messages, done).begin;
        }
    }
    return d->fault.status;
}

int tfw_decode(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
               unsigned flags, tfw_dicts *out_dicts, size_t *out_done, tfw_error *error) {
    tfwi_messages messages;
    decoder d = {.memo = NULL};
    size_t done = 0;
    *out_dicts = (tfw_dicts){.pickle = NULL};
    if (out_done != NULL) {
        *out_done = 0;
    }
    if ((flags & ~(unsigned)(TFW_SEQUENCE | TFW_ADDRESSES)) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "unknown flags");
    }
    int status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    if (status != TFW_OK) {
        return status;
    }
    d.blocks.varints = tfwi_kernel_best()->varints;
    bool complete = begin(&d) && put_messages(&d, &messages, count, flags, &done);
    if (!complete) {
        status = decode_failed(&d, &messages, done, error);
    }
    if (status != TFW_E_MEMORY && !PUT(&d, APPENDS, STOP)) {
        status = tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (status != TFW_E_MEMORY) {
        hand_over(&d, out_dicts);
        if (out_done != NULL) {
            *out_done = done;
        }
    }
    decoder_free(&d);
    return status;
}
