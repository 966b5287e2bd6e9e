/* SPDX-License-Identifier: Apache-2.0 */
/* Which records hold a value. */
#include "base/cpu.h"
#include "base/spans.h"
#include "base/utf8.h"
#include "python/measure.h"
#include "wire/floats.h"

enum {
    TEXT_BYTES = 64,     /* of a string, which say whether it is text */
    SHORT_RECORD = 2048, /* on average: a walk over longer ones is faster than a search */
    SEARCHED = 512,      /* bytes that are searched at once */
    USUAL = 128          /* an entry of fewer bytes has lengths of one byte */
};

/* Bytes that a record has if it holds the value. */
typedef struct pattern {
    const uint8_t *bytes;
    size_t len;     /* 0: there are none */
    size_t rare[2]; /* the numbers of those that other values seldom have */
    uint8_t mask;   /* what counts of the second of these */
} pattern;

enum { PART, INTEGER, NUMBER, PATTERNS };

typedef struct finder {
    const tfw_wanted *wanted;
    pattern patterns[PATTERNS];
    uint8_t integer[1 + TFWI_MAX_VARINT]; /* as it is written, after a byte */
    uint8_t number[4];
    bool (*may_begin)(const pattern *patterns, const uint8_t *p);
    tfwi_blocks blocks;
    tfwi_fault fault;
    int32_t kind;
    bool found;    /* in the Feature at hand */
    bool is_known; /* the record has features */
} finder;

/* Where a pattern begins; end: nowhere. */
static const uint8_t *find_pattern(const pattern *n, const uint8_t *p, const uint8_t *end) {
    const size_t rare = n->rare[0];
    while ((size_t)(end - p) >= n->len) {
        const uint8_t *at = memchr(p + rare, n->bytes[rare], (size_t)(end - p) - n->len + 1);
        if (at == NULL) {
            break;
        }
        if (n->mask != 0xff ? (at[-1] & n->mask) == 0 : memcmp(at - rare, n->bytes, n->len) == 0) {
            return at - rare;
        }
        p = at - rare + 1;
    }
    return end;
}

static bool holds_part(const finder *f, const uint8_t *p, const uint8_t *end) {
    return find_pattern(&f->patterns[PART], p, end) != end;
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

/* Whether one of the bytes begins the integer, too. Reads eight at a time. */
static bool may_have_integer(const finder *f, const uint8_t *p, size_t len) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t zeros = 0;
    for (size_t i = 0; i < len; i += 8) {
        const uint64_t v = tfwi_load64(p + i) ^ ones * f->integer[1];
        const uint64_t past = len - i < 8 ? ~UINT64_C(0) << 8 * (len - i) : 0;
        zeros |= (v - ones) & ~v & ones << 7 & ~past; /* the first one of v is right */
    }
    return zeros != 0;
}

/* Whether a list of values of the usual form may have the value; not well-formed: it may not. */
static bool may_have(finder *f, uint8_t tag, const uint8_t *list, const uint8_t *end) {
    const tfw_wanted *w = f->wanted;
    switch (tag) {
    case TFWI_TAG(TFW_INT64, TFWI_WIRE_LEN):
        return w->has_integer && may_have_integer(f, list, (size_t)(end - list));
    case TFWI_TAG(TFW_FLOAT, TFWI_WIRE_LEN):
        f->found = false;
        find_floats(f, list, (size_t)(end - list) / 4);
        return f->found;
    case TFWI_TAG(TFW_BYTES, TFWI_WIRE_LEN): return holds_part(f, list, end);
    default: return true;
    }
}

/* Passes entries of the usual form that do not have the value: returns the next other one. */
static const uint8_t *pass_entries(finder *f, const uint8_t *p, const uint8_t *end) {
    const tfw_wanted *w = f->wanted;
    while (end - p >= 10 && p[1] < USUAL && f->blocks.limit - p >= USUAL + 10) {
        const uint8_t *next = p + 2 + p[1], *value = p + 4 + p[3], *list = value + 6;
        const ptrdiff_t len = next - list;
        if (next > end || len < 0 || p[0] != TFWI_TAG(1, TFWI_WIRE_LEN) ||
            p[2] != TFWI_TAG(1, TFWI_WIRE_LEN) || value[0] != TFWI_TAG(2, TFWI_WIRE_LEN) ||
            value[1] != len + 4 || value[3] != len + 2 ||
            value[4] != TFWI_TAG(1, TFWI_WIRE_LEN) || value[5] != len) {
            break;
        }
        f->is_known = true;
        if ((w->name == NULL || (p[3] == w->name_len && memcmp(p + 4, w->name, p[3]) == 0)) &&
            (w->part_len == 0 || may_have(f, value[2], list, next))) {
            break;
        }
        p = next;
    }
    return p;
}

static bool is_in_map(finder *f, const uint8_t *p, const uint8_t *end, bool is_list) {
    tfwi_field map, field;
    while (tfwi_find_field(&p, end, tfwi_map_tags[is_list], &map, &f->fault)) {
        const uint8_t *q = map.data, *map_end = map.data + map.len;
        for (;;) {
            tfwi_entry entry;
            q = is_list ? q : pass_entries(f, q, map_end);
            if (!tfwi_find_field(&q, map_end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &f->fault)) {
                break;
            }
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

/* The patterns, of which a record has one if it holds the value; false: there is none to look for.
 * An integer of one byte follows the last one of a varint, a length or a tag. */
static bool make_patterns(finder *f) {
    const tfw_wanted *w = f->wanted;
    const size_t integer_len = tfwi_varint_size((uint64_t)w->integer);
    tfwi_put_length(f->integer + 1, (uint64_t)w->integer);
    tfwi_store_floats(f->number, &w->number, 1);
    f->patterns[PART] = (pattern){w->part, (size_t)w->part_len, {0, w->part_len > 1}, 0xff};
    f->patterns[INTEGER] = integer_len > 1
                               ? (pattern){f->integer + 1, integer_len, {0, 1}, 0xff}
                               : (pattern){f->integer, 2, {1, 0}, 0x80};
    f->patterns[NUMBER] = (pattern){f->number, 4, {3, 2}, 0xff};
    f->patterns[INTEGER].len *= (size_t)(w->has_integer != 0);
    f->patterns[NUMBER].len *= (size_t)(w->has_number != 0);
    return w->part_len != 0 && (!w->has_number || w->number != 0); /* which has two forms */
}

/* Whether patterns may begin in a block: two of their bytes do. */
TFWI_INLINE bool may_begin_in(const pattern *patterns, const uint8_t *p) {
    uint8_t least = 0xff; /* 0: the two bytes are equal; compilers make vectors of the loop */
    for (const pattern *n = patterns; n < patterns + PATTERNS; n++) {
        if (n->len != 0) {
            const uint8_t *first = p + n->rare[0], *second = p + n->rare[1];
            const uint8_t a = n->bytes[n->rare[0]], b = n->bytes[n->rare[1]], mask = n->mask;
            for (int i = 0; i < SEARCHED; i++) {
                uint8_t other = (uint8_t)((first[i] ^ a) | ((second[i] ^ b) & mask));
                least = other < least ? other : least;
            }
        }
    }
    return least == 0;
}

static bool may_begin_portable(const pattern *patterns, const uint8_t *p) {
    return may_begin_in(patterns, p);
}

#ifdef TFWI_X86
__attribute__((target("avx2"))) static bool may_begin_avx2(const pattern *patterns,
                                                            const uint8_t *p) {
    return may_begin_in(patterns, p);
}
#endif

/* Where the next pattern begins, from p on; end: nowhere. */
static const uint8_t *next_pattern(const finder *f, const uint8_t *p, const uint8_t *end) {
    const pattern *patterns = f->patterns;
    for (; end - p >= SEARCHED + 4; p += SEARCHED) {
        if (!f->may_begin(patterns, p)) {
            continue;
        }
        const uint8_t *nearest = end;
        for (int k = 0; k < PATTERNS; k++) {
            const pattern *n = &patterns[k];
            const size_t len = SEARCHED - 1 + n->len, left = (size_t)(end - p);
            const uint8_t *last = p + (len < left ? len : left);
            const uint8_t *at = n->len != 0 ? find_pattern(n, p, last) : last;
            nearest = at != last && at < nearest ? at : nearest;
        }
        if (nearest != end) {
            return nearest;
        }
    }
    return p; /* in the last bytes, perhaps */
}

size_t tfw_find(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
                const void *wanted, uint32_t *out) {
    finder f = {.wanted = wanted,
                .may_begin = may_begin_portable,
                .blocks = {.varints = tfwi_matcher_best()->varints, .limit = data + data_len}};
#ifdef TFWI_X86
    if (tfwi_cpu_prefers(TFWI_CPU_AVX2)) {
        f.may_begin = may_begin_avx2;
    }
#endif
    const bool is_quick = make_patterns(&f) && data_len / SHORT_RECORD < count;
    const uint8_t *nearest = NULL; /* pattern */
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (nearest != NULL && spans[i].offset + spans[i].length <= (size_t)(nearest - data)) {
            continue;
        }
        if (!tfwi_span_fits(&spans[i], data_len, 0, 0)) {
            continue;
        }
        const uint8_t *p = data + spans[i].offset, *end = p + spans[i].length;
        if (is_quick && (nearest == NULL || nearest < p)) {
            nearest = next_pattern(&f, p, data + data_len);
        }
        if ((!is_quick || nearest < end) && is_in_record(&f, p, end)) {
            out[found++] = (uint32_t)i;
        }
    }
    return found;
}
