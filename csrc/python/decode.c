/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a schema to flat arrays. */
#include "python/decode.h"
#include "wire/floats.h"

/* ---- Values --------------------------------------------------------------------------------- */

/* The number of values of a kind so far. */
static size_t count_of(const tfwi_decoded *d, int32_t kind) {
    return kind == TFW_INT64   ? d->int64s.count
           : kind == TFW_FLOAT ? d->floats.count
           : kind == TFW_BYTES ? d->strings.count
                               : 0;
}

static void cut_to(tfwi_decoded *d, int32_t kind, size_t count) {
    switch (kind) {
    case TFW_INT64: d->int64s.count = count; break;
    case TFW_FLOAT: d->floats.count = count; break;
    case TFW_BYTES: d->strings.count = count; break;
    default: break;
    }
}

/* The kind that was set last counts: values of another are dropped. */
static void value_restart(void *self, int32_t kind) {
    tfwi_decoded *d = self;
    cut_to(d, d->value.kind, d->value.begin);
    d->value.kind = kind;
    d->value.begin = count_of(d, kind);
}

static bool value_bytes(void *self, const uint8_t *data, size_t len) {
    tfwi_decoded *d = self;
    if (!TFWI_RESERVE_MORE(d->strings, 1)) {
        return false;
    }
    d->strings.of[d->strings.count++] = (tfw_span){(uintptr_t)data, len};
    return true;
}

static bool value_floats(void *self, const uint8_t *block, size_t count) {
    tfwi_decoded *d = self;
    if (count == 0) { /* there may be no memory */
        return true;
    }
    if (!TFWI_RESERVE_MORE(d->floats, count)) {
        return false;
    }
    tfwi_load_floats(d->floats.of + d->floats.count, block, count);
    d->floats.count += count;
    return true;
}

static bool value_int64(void *self, int64_t value) {
    tfwi_decoded *d = self;
    if (!TFWI_RESERVE_MORE(d->int64s, 1)) {
        return false;
    }
    d->int64s.of[d->int64s.count++] = value;
    return true;
}

static bool value_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    tfwi_decoded *d = self;
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

static bool add_value(tfwi_decoded *d, tfwi_value value) {
    if (!TFWI_RESERVE_MORE(d->values, 1)) {
        return tfwi_out_of_memory(&d->fault);
    }
    d->values.of[d->values.count++] = value;
    return true;
}

static bool end_value(tfwi_decoded *d, int32_t kind) {
    d->value.kind = kind;
    d->value.end = count_of(d, kind);
    return add_value(d, d->value);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* The value of a map entry: a Feature, which may be in pieces. */
TFWI_INLINE bool decode_feature(tfwi_decoded *d, tfwi_entry *entry) {
    int32_t kind = TFW_NONE;
    const uint8_t *p, *end;
    d->value = (tfwi_value){.key = entry->key, .key_len = entry->key_len};
    while (tfwi_next_piece(entry, &p, &end)) {
        if (!tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault)) {
            return false;
        }
    }
    return end_value(d, kind);
}

static bool add_step(tfwi_decoded *d, const uint8_t *p, const uint8_t *end) {
    int32_t kind = TFW_NONE;
    d->value = (tfwi_value){.key = NULL};
    return tfwi_walk_feature(&value_sink, d, p, end, &kind, &d->fault) && end_value(d, kind);
}

/* The value of a map entry: a FeatureList; the steps of its pieces follow each other. */
static bool decode_feature_list(tfwi_decoded *d, tfwi_entry *entry) {
    const size_t at = d->values.count;
    const uint8_t *p, *end;
    if (!add_value(d, (tfwi_value){.key = entry->key, .key_len = entry->key_len,
                                   .kind = TFWI_STEPS, .begin = at + 1})) {
        return false;
    }
    while (tfwi_next_piece(entry, &p, &end)) {
        tfwi_field field;
        while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &d->fault)) {
            if (!add_step(d, field.data, field.data + field.len)) {
                return false;
            }
        }
        if (p != end) {
            return false;
        }
    }
    d->values.of[at].end = d->values.count;
    return true;
}

typedef bool add_entry(tfwi_decoded *d, tfwi_entry *entry);

/* The entries of a map, or of a piece of one. */
TFWI_INLINE bool add_entries(tfwi_decoded *d, const uint8_t *p, const uint8_t *end,
                             add_entry *add) {
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &d->fault)) {
        tfwi_entry entry;
        if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &d->fault) ||
            !add(d, &entry)) {
            return false;
        }
    }
    return p == end;
}

/* The map that lies in the pieces of one field of the message. */
TFWI_INLINE bool add_map(tfwi_decoded *d, const uint8_t *p, const uint8_t *end, uint32_t number,
                         add_entry *add) {
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(number, TFWI_WIRE_LEN), &field, &d->fault)) {
        if (!add_entries(d, field.data, field.data + field.len, add)) {
            return false;
        }
    }
    if (p != end) {
        return false;
    }
    if (!TFWI_RESERVE_MORE(d->ends, 1)) {
        return tfwi_out_of_memory(&d->fault);
    }
    d->ends.of[d->ends.count++] = d->values.count;
    return true;
}

int tfwi_decode(tfwi_decoded *d, const tfwi_messages *messages, size_t count, unsigned flags,
                tfw_error *error) {
    const bool sequence = (flags & TFW_SEQUENCE) != 0;
    d->values.count = d->strings.count = d->floats.count = d->int64s.count = d->ends.count = 0;
    d->blocks.varints = tfwi_matcher_best()->varints;
    for (size_t i = 0; i < count; i++) {
        const tfwi_message message = tfwi_message_at(messages, i);
        const uint8_t *begin = message.begin, *end = begin + message.len;
        const size_t before = d->values.count;
        d->blocks.limit = message.limit;
        if (!add_map(d, begin, end, 1, decode_feature) ||
            (sequence && !add_map(d, begin, end, 2, decode_feature_list)) ||
            (d->values.count == before &&
             !tfwi_is_empty(begin, message.len, sequence ? 2 : 1, &d->fault))) {
            tfwi_fail(error, d->fault.status, d->fault.text);
            TFWI_SET(error, record, (int64_t)i);
            if (d->fault.status == TFW_E_WIRE) {
                TFWI_SET(error, offset, d->fault.at - begin);
            }
            return d->fault.status;
        }
    }
    return TFW_OK;
}

void tfwi_decoded_clear(tfwi_decoded *d) {
    tfw_free(d->values.of);
    tfw_free(d->strings.of);
    tfw_free(d->floats.of);
    tfw_free(d->int64s.of);
    tfw_free(d->ends.of);
    *d = (tfwi_decoded){.value.kind = TFW_NONE};
}
