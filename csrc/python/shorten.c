/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with their first parts only. */
#include "python/measure.h"

/* ---- Fields that become shorter ------------------------------------------------------------- */

/* A message being copied. The walks cannot fail: it was measured. */
typedef struct shortener {
    uint8_t *out;       /* where the next byte goes */
    tfw_extent rest;    /* of the limits; of features, how many more are kept */
    tfw_extent left;    /* of the share of the entry at hand */
    tfw_cut cut;        /* what the entry at hand loses */
    tfwi_counter counter;    /* of the Feature at hand, complete */
    uint64_t restarts;  /* of the Feature at hand, so far */
    int32_t kind;
    tfwi_fault fault;
} shortener;

static bool is_cut(const tfw_cut *cut) {
    return cut->steps != 0 || cut->values != 0;
}

static void copy_bytes(shortener *s, const uint8_t *begin, const uint8_t *end) {
    if (begin != end) {
        memcpy(s->out, begin, (size_t)(end - begin));
        s->out += end - begin;
    }
}

/* A field whose tag and length were copied, as wide as they are. */
typedef struct wrapper {
    uint8_t *header;
    uint8_t *content;
} wrapper;

static wrapper open_field(shortener *s, const uint8_t *begin, const tfwi_field *field) {
    wrapper w = {.header = s->out};
    copy_bytes(s, begin, field->data);
    w.content = s->out;
    return w;
}

/* States the length of what was written since: it is not longer than before, and its varint is
 * padded to the width that it had. */
static void close_field(shortener *s, wrapper w) {
    uint64_t length = (uint64_t)(s->out - w.content);
    uint8_t *p = w.header;
    while (*p >= 0x80) {
        p++; /* the tag */
    }
    for (p++; p != w.content - 1; p++) {
        *p = (uint8_t)(length & 0x7f) | 0x80;
        length >>= 7;
    }
    *p = (uint8_t)length;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Whether one more value is kept: none is after the first that is not. */
static bool keeps(shortener *s, uint64_t objects, uint64_t bytes) {
    if (is_cut(&s->cut) || objects > s->left.objects || bytes > s->left.bytes) {
        s->cut.values++;
        return false;
    }
    s->left.objects -= objects;
    s->left.bytes -= bytes;
    return true;
}

/* How many values of this size are kept of so many. */
static uint64_t keeps_of(shortener *s, uint64_t count, uint64_t size) {
    const uint64_t room = is_cut(&s->cut) ? 0 : s->left.bytes / size;
    const uint64_t kept = count < room ? count : room;
    s->left.bytes -= kept * size;
    s->cut.values += count - kept;
    return kept;
}

/* A packed block: a field of n floats, or of as many varints as it holds. */
static void shorten_block(shortener *s, const uint8_t *begin, const tfwi_field *field) {
    const uint8_t *p = field->data, *end = p + field->len;
    wrapper w = open_field(s, begin, field);
    if (s->kind == TFW_FLOAT) {
        const uint64_t kept = keeps_of(s, field->len / sizeof(float), sizeof(float));
        copy_bytes(s, p, p + sizeof(float) * kept);
    }
    while (s->kind == TFW_INT64 && p != end) {
        int64_t values[TFWI_VARINTS_AT_ONCE];
        size_t count = 0, rest;
        const uint8_t *next = tfwi_read_varints(p, end, values, TFWI_VARINTS_AT_ONCE, &count,
                                                &s->fault);
        const uint64_t kept = keeps_of(s, count, sizeof *values);
        const uint8_t *stop = next;
        if (kept < count) {
            stop = p;
            if (kept != 0) {
                stop = tfwi_read_varints(p, end, values, (size_t)kept, &rest, &s->fault);
            }
        }
        copy_bytes(s, p, stop);
        p = next;
    }
    close_field(s, w);
}

/* A BytesList, FloatList or Int64List, or a piece of one. */
static void shorten_list(shortener *s, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field field;
        bool kept = false;
        p = tfwi_read_field(p, end, &field, &s->fault);
        switch (field.tag) {
        case TFWI_TAG(1, TFWI_WIRE_LEN):
            if (s->kind != TFW_BYTES) {
                shorten_block(s, begin, &field);
            } else {
                kept = keeps(s, 1, field.len);
            }
            break;
        case TFWI_TAG(1, TFWI_WIRE_FIXED32):
            kept = s->kind == TFW_FLOAT && keeps(s, 0, sizeof(float));
            break;
        case TFWI_TAG(1, TFWI_WIRE_VARINT):
            kept = s->kind == TFW_INT64 && keeps(s, 0, sizeof(int64_t));
            break;
        default: break;
        }
        if (kept) {
            copy_bytes(s, begin, p);
        }
    }
}

static void begin_shortening(shortener *s) {
    s->restarts = 0;
    s->kind = TFW_NONE;
}

/* A Feature or a piece of one: what the last change of its kind has not made void. */
static void shorten_piece(shortener *s, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &s->fault);
        const int32_t number = (int32_t)(field.tag >> 3);
        if ((field.tag & 7) != TFWI_WIRE_LEN || number > TFW_INT64) {
            continue;
        }
        if (s->kind != number) {
            s->kind = number;
            s->restarts++;
        }
        if (s->restarts == s->counter.restarts) {
            wrapper w = open_field(s, begin, &field);
            shorten_list(s, field.data, field.data + field.len);
            close_field(s, w);
        }
    }
}

/* A FeatureList or a piece of one: no step follows one that is not complete. */
static void shorten_steps(shortener *s, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field step;
        p = tfwi_read_field(p, end, &step, &s->fault);
        if (step.tag != TFWI_TAG(1, TFWI_WIRE_LEN)) {
            continue;
        }
        tfwi_begin_count(&s->counter);
        tfwi_count_piece(&s->counter, step.data, step.data + step.len);
        if (is_cut(&s->cut) || s->left.objects == 0) {
            s->cut.steps++;
            s->cut.values += s->counter.values;
            continue;
        }
        s->left.objects--;
        wrapper w = open_field(s, begin, &step);
        begin_shortening(s);
        shorten_piece(s, step.data, step.data + step.len);
        close_field(s, w);
    }
}

/* ---- Maps ----------------------------------------------------------------------------------- */

/* Copies the last key of an entry. */
static void copy_key(shortener *s, const uint8_t *p, const uint8_t *end) {
    const uint8_t *begin = p, *key = NULL, *key_end = NULL;
    tfwi_field field;
    for (; p != end; begin = p) {
        p = tfwi_read_field(p, end, &field, &s->fault);
        if (field.tag == TFWI_TAG(1, TFWI_WIRE_LEN)) {
            key = begin;
            key_end = p;
        }
    }
    if (key != NULL) {
        copy_bytes(s, key, key_end);
    }
}

/* The values of an entry: what its share holds. */
static void shorten_values(shortener *s, const uint8_t *p, const uint8_t *end, bool is_list) {
    begin_shortening(s);
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &s->fault);
        if (field.tag != TFWI_TAG(2, TFWI_WIRE_LEN)) {
            continue;
        }
        wrapper w = open_field(s, begin, &field);
        (is_list ? shorten_steps : shorten_piece)(s, field.data, field.data + field.len);
        close_field(s, w);
    }
}

/* Takes the share of the next entry from the rest: what it does not use is for those after it. */
static void take_share(shortener *s) {
    const uint64_t entries = s->rest.features;
    const uint64_t objects = s->rest.objects / entries;
    s->left = (tfw_extent){.objects = objects != 0 ? objects - 1 : 0,
                           .bytes = s->rest.bytes / entries};
    s->rest.features--;
    s->rest.objects -= s->left.objects + (objects != 0);
    s->rest.bytes -= s->left.bytes;
}

static void return_rest(shortener *s) {
    s->rest.objects += s->left.objects;
    s->rest.bytes += s->left.bytes;
}

/* An entry; false: it is left out, because of its key. */
static bool shorten_entry(shortener *s, const uint8_t *begin, const tfwi_field *field,
                          const uint8_t *message, bool is_list) {
    const uint8_t *p = field->data, *end = p + field->len;
    tfwi_entry entry;
    tfwi_read_entry(p, end, &entry, &s->fault);
    take_share(s);
    if (tfwi_objects_of_key(&entry) > s->left.objects || entry.key_len > s->left.bytes) {
        return_rest(s);
        return false;
    }
    s->left.objects -= tfwi_objects_of_key(&entry);
    s->left.bytes -= entry.key_len;
    s->cut = (tfw_cut){.key_at = (uint64_t)(entry.key - message), .key_len = entry.key_len,
                       .is_list = is_list};
    if (!is_list) {
        tfwi_count_value(&s->counter, entry);
    }
    wrapper w = open_field(s, begin, field);
    copy_key(s, p, end);
    shorten_values(s, p, end, is_list);
    close_field(s, w);
    return_rest(s);
    return true;
}

/* Where tfw_shorten notes what it leaves out. */
typedef struct losses {
    tfw_cut *cuts;
    size_t count;
    uint64_t features;
} losses;

/* A piece of a map, of which *room entries are kept. */
static void shorten_map(shortener *s, const tfwi_field *map, const uint8_t *message, bool is_list,
                        uint64_t *room, losses *lost) {
    const uint8_t *p = map->data, *end = p + map->len;
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &s->fault);
        if (field.tag != TFWI_TAG(1, TFWI_WIRE_LEN)) {
            continue;
        }
        if (*room == 0) {
            lost->features++;
            continue;
        }
        --*room;
        if (!shorten_entry(s, begin, &field, message, is_list)) {
            lost->features++;
            continue;
        }
        if (is_cut(&s->cut)) {
            lost->cuts[lost->count++] = s->cut;
        }
    }
}

static uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

int tfw_shorten(const uint8_t *message, size_t len, const tfw_extent *most, uint8_t *out,
                size_t *out_len, tfw_cut *cuts, size_t cut_capacity, size_t *out_cuts,
                uint64_t *out_left_out, tfw_error *error) {
    tfw_extent extents[2];
    const uint8_t *p = message, *end = p;
    losses lost = {.cuts = cuts};
    *out_len = *out_cuts = 0;
    *out_left_out = 0;
    if (len == 0) { /* then message may be NULL */
        return TFW_OK;
    }
    end += len;
    if (most->features > cut_capacity / 2) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "cuts must have room for two of every feature");
    }
    int status = tfwi_measure(message, len, extents, error);
    if (status != TFW_OK) {
        return status;
    }
    uint64_t room[2] = {lesser(extents[0].features, most->features),
                        lesser(extents[1].features, most->features)};
    shortener s = {.out = out, .rest = *most, .counter = tfwi_counter_of(end)};
    if (extents[0].objects + extents[1].objects <= most->objects &&
        extents[0].bytes + extents[1].bytes <= most->bytes) {
        s.rest.objects = s.rest.bytes = UINT64_MAX; /* equal shares are for those that do not fit */
    }
    s.rest.features = room[0] + room[1];
    while (p != end) {
        const uint8_t *begin = p;
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &s.fault);
        if (field.tag == tfwi_map_tags[0] || field.tag == tfwi_map_tags[1]) {
            const bool is_list = field.tag == tfwi_map_tags[1];
            wrapper w = open_field(&s, begin, &field);
            shorten_map(&s, &field, message, is_list, &room[is_list], &lost);
            close_field(&s, w);
        }
    }
    *out_len = (size_t)(s.out - out);
    *out_cuts = lost.count;
    *out_left_out = lost.features;
    return TFW_OK;
}
