/* SPDX-License-Identifier: Apache-2.0 */
/* Which records hold a value. */
#include "base/spans.h"
#include "base/utf8.h"
#include "python/measure.h"
#include "wire/floats.h"

enum {
    TEXT_BYTES = 64,   /* of a string, which say whether it is text */
    SHORT_RECORD = 4096 /* on average: a walk over longer ones is faster than a search */
};

/* Bytes that a record has if it holds the value. */
typedef struct pattern {
    const uint8_t *bytes;
    size_t len;          /* 0: there are none */
    size_t rare;         /* the number of one that other values seldom have */
    const uint8_t *next; /* where they begin next; end: nowhere */
} pattern;

typedef struct finder {
    const tfw_wanted *wanted;
    pattern part;
    tfwi_blocks blocks;
    tfwi_fault fault;
    int32_t kind;
    bool found;    /* in the Feature at hand */
    bool is_known; /* the record has features */
} finder;

/* Where a pattern begins; end: nowhere. */
static const uint8_t *find_pattern(const pattern *n, const uint8_t *p, const uint8_t *end) {
    while ((size_t)(end - p) >= n->len) {
        const uint8_t *at = memchr(p + n->rare, n->bytes[n->rare],
                                   (size_t)(end - p) - n->len + 1);
        if (at == NULL) {
            break;
        }
        if (memcmp(at - n->rare, n->bytes, n->len) == 0) {
            return at - n->rare;
        }
        p = at - n->rare + 1;
    }
    return end;
}

static bool holds_part(const finder *f, const uint8_t *p, const uint8_t *end) {
    return find_pattern(&f->part, p, end) != end;
}

/* Whether the first characters are UTF-8. */
static bool begins_as_text(const uint8_t *p, size_t len) {
    const uint8_t *end = p + (len < TEXT_BYTES ? len : TEXT_BYTES);
    const size_t rest = len - (size_t)(end - p);
    while (p < end) {
        size_t size = tfwi_utf8_check(p, (size_t)(end - p) + rest);
        if (size == 0) {
            return false;
        }
        p += size;
    }
    return true;
}

/* ---- The values of a Feature ---------------------------------------------------------------- */

static void find_restart(void *self, int32_t kind) {
    finder *f = self;
    (void)kind;
    f->found = false;
}

static bool find_bytes(void *self, const uint8_t *data, size_t len) {
    finder *f = self;
    if (!f->found && (f->wanted->name != NULL || begins_as_text(data, len))) {
        f->found = holds_part(f, data, data + len);
    }
    return true;
}

static bool find_floats(void *self, const uint8_t *block, size_t count) {
    finder *f = self;
    for (size_t i = 0; i < count && f->wanted->has_number && !f->found; i++) {
        float value;
        tfwi_load_floats(&value, block + 4 * i, 1);
        f->found = value == f->wanted->number;
    }
    return true;
}

static bool find_int64(void *self, int64_t value) {
    finder *f = self;
    f->found |= f->wanted->has_integer && value == f->wanted->integer;
    return true;
}

static bool find_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    finder *f = self;
    int64_t values[TFWI_VARINTS_AT_ONCE];
    while (p != end) {
        size_t count;
        p = tfwi_read_block(&f->blocks, p, end, values, TFWI_VARINTS_AT_ONCE, &count, fault);
        if (p == NULL) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            find_int64(f, values[i]);
        }
    }
    return true;
}

static const tfwi_sink find_sink = {find_restart, find_bytes, find_floats, find_int64,
                                    find_varints};

static bool is_in_feature(finder *f, const uint8_t *p, const uint8_t *end) {
    return tfwi_walk_feature(&find_sink, f, p, end, &f->kind, &f->fault) && f->found;
}

static void begin_feature(finder *f) {
    f->kind = TFW_NONE;
    f->found = false;
}

/* ---- Records -------------------------------------------------------------------------------- */

static bool is_in_steps(finder *f, const uint8_t *p, const uint8_t *end) {
    tfwi_field step;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &step, &f->fault)) {
        begin_feature(f);
        if (is_in_feature(f, step.data, step.data + step.len)) {
            return true;
        }
    }
    return false;
}

static bool is_in_entry(finder *f, tfwi_entry entry, bool is_list) {
    const tfw_wanted *w = f->wanted;
    const uint8_t *p, *end;
    f->is_known = true;
    if (w->name != NULL && (entry.key_len != w->name_len ||
                            memcmp(entry.key, w->name, (size_t)w->name_len) != 0)) {
        return false;
    }
    if (w->part_len == 0) {
        return true;
    }
    begin_feature(f);
    bool found = false;
    while (tfwi_next_piece(&entry, &p, &end)) {
        if (is_list && is_in_steps(f, p, end)) {
            return true;
        }
        found = !is_list && is_in_feature(f, p, end);
    }
    return found;
}

static bool is_in_map(finder *f, const uint8_t *p, const uint8_t *end, bool is_list) {
    tfwi_field map, field;
    while (tfwi_find_field(&p, end, tfwi_map_tags[is_list], &map, &f->fault)) {
        const uint8_t *q = map.data, *map_end = map.data + map.len;
        while (tfwi_find_field(&q, map_end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &f->fault)) {
            tfwi_entry entry;
            if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &f->fault)) {
                return false;
            }
            if (is_in_entry(f, entry, is_list)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_in_record(finder *f, const uint8_t *p, const uint8_t *end) {
    const tfw_wanted *w = f->wanted;
    f->is_known = false;
    if ((w->name == NULL || !w->is_list) && is_in_map(f, p, end, false)) {
        return true;
    }
    if ((w->name == NULL || w->is_list) && is_in_map(f, p, end, true)) {
        return true;
    }
    /* A record without features may be text itself. */
    return w->name == NULL && !f->is_known && w->part_len != 0 && holds_part(f, p, end);
}

/* ---- Short records: by bytes that one must have --------------------------------------------- */

enum { PART, INTEGER, NUMBER, PATTERNS };

/* The patterns, of which a record has one if it holds the value; false: there is none to look for,
 * as any record may have a byte. */
static bool make_patterns(const finder *f, uint8_t *integer, uint8_t *number, pattern *patterns) {
    const tfw_wanted *w = f->wanted;
    const size_t integer_len = tfwi_varint_size((uint64_t)w->integer);
    tfwi_put_length(integer, (uint64_t)w->integer);
    tfwi_store_floats(number, &w->number, 1);
    patterns[PART] = f->part;
    patterns[INTEGER] = (pattern){integer, w->has_integer ? integer_len : 0, 0, NULL};
    patterns[NUMBER] = (pattern){number, w->has_number ? 4 : 0, 3, NULL};
    return w->part_len != 0 && (!w->has_integer || integer_len > 1) &&
           (!w->has_number || w->number != 0); /* which has two forms */
}

/* Where the next pattern begins, from p on; end: nowhere. */
static const uint8_t *next_pattern(pattern *patterns, const uint8_t *p, const uint8_t *end) {
    const uint8_t *nearest = end;
    for (int i = 0; i < PATTERNS; i++) {
        pattern *n = &patterns[i];
        if (n->len == 0) {
            continue;
        }
        if (n->next == NULL || n->next < p) {
            n->next = find_pattern(n, p, end);
        }
        nearest = n->next < nearest ? n->next : nearest;
    }
    return nearest;
}

size_t tfw_find(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
                const tfw_wanted *wanted, uint32_t *out) {
    finder f = {.wanted = wanted,
                .part = {wanted->part, (size_t)wanted->part_len, 0, NULL},
                .blocks = {.varints = tfwi_matcher_best()->varints, .limit = data + data_len}};
    pattern patterns[PATTERNS];
    uint8_t integer[TFWI_MAX_VARINT], number[4];
    const bool is_quick = make_patterns(&f, integer, number, patterns) &&
                          data_len / SHORT_RECORD < count;
    const uint8_t *nearest = NULL; /* pattern */
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!tfwi_span_fits(&spans[i], data_len, 0, 0)) {
            continue;
        }
        const uint8_t *p = data + spans[i].offset, *end = p + spans[i].length;
        if (is_quick && (nearest == NULL || nearest < p)) {
            nearest = next_pattern(patterns, p, data + data_len);
        }
        if (is_quick && nearest >= end) {
            continue;
        }
        if (is_in_record(&f, p, end)) {
            out[found++] = (uint32_t)i;
        }
    }
    return found;
}
