/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of prefixes, and the kernel that matches them on any CPU. */
#include "parse/columns.h"
#include "base/kernels.h"

/* ---- Templates ------------------------------------------------------------------------------ */

static size_t field_len(size_t payload) { return 1 + tfwi_varint_size(payload) + payload; }

/* The prefix of a value of len bytes; its own size is returned. */
static size_t put_prefix(uint8_t *out, const tfw_feature *feature, bool list, size_t len) {
    const uint8_t *begin = out;
    size_t name = (size_t)feature->name_len;
    size_t values = field_len(len), message = field_len(values);
    *out++ = TFWI_TAG(1, TFWI_WIRE_LEN);
    if (!list) { /* a map entry of key and value; a step has neither */
        out = tfwi_put_length(out, field_len(name) + field_len(message));
        *out++ = TFWI_TAG(1, TFWI_WIRE_LEN);
        out = tfwi_put_length(out, name);
        if (name != 0) {
            memcpy(out, feature->name, name);
        }
        out += name;
        *out++ = TFWI_TAG(2, TFWI_WIRE_LEN);
    }
    out = tfwi_put_length(out, message);
    *out++ = (uint8_t)TFWI_TAG(feature->kind, TFWI_WIRE_LEN);
    out = tfwi_put_length(out, values);
    *out++ = TFWI_TAG(1, TFWI_WIRE_LEN);
    out = tfwi_put_length(out, len);
    return (size_t)(out - begin);
}

/* All lengths take one byte: the value's is the last of them. */
static void let_grow(tfwi_template *t, bool list) {
    size_t last = t->len - 1u;
    const size_t lengths[4] = {last, last - 2, last - 4, 1};
    for (size_t i = 0; i < (list ? 3 : 4); i++) {
        t->grows[lengths[i]] = 0xff;
    }
    /* The first length is the greatest. */
    t->max_len = (uint8_t)(0x7f - t->bytes[1]);
    if (t->shape == TFWI_SHAPE_ONE_INT64 && t->max_len > TFWI_MAX_VARINT) {
        t->max_len = TFWI_MAX_VARINT;
    }
}

/* What values of the feature look like: dense floats are always of one size, strings always
 * alone. */
static enum tfwi_shape shape_of(const tfw_feature *feature, bool list, size_t *out_fixed_len) {
    bool dense = feature->layout == TFW_DENSE, one = dense && feature->count == 1 && !list;
    *out_fixed_len = 0;
    if (feature->layout != TFW_VARIABLE && feature->count == 0) {
        return TFWI_SHAPE_OTHER;
    }
    switch (feature->kind) {
    case TFW_FLOAT:
        *out_fixed_len = dense ? (size_t)feature->count * sizeof(float) : 0;
        return one ? TFWI_SHAPE_ONE_FLOAT : TFWI_SHAPE_FLOATS;
    case TFW_INT64: return one ? TFWI_SHAPE_ONE_INT64 : TFWI_SHAPE_INT64S;
    default: return dense && feature->count != 1 ? TFWI_SHAPE_OTHER : TFWI_SHAPE_STRING;
    }
}

void tfwi_template_init_none(tfwi_template *t) {
    *t = (tfwi_template){.len = 1, .bytes_mask = 1}; /* a byte that begins no entry */
}

void tfwi_template_init(tfwi_template *t, const tfw_feature *feature, bool list) {
    uint8_t prefix[2 * TFWI_TEMPLATE_SIZE];
    tfwi_template_init_none(t);
    enum tfwi_shape shape = shape_of(feature, list, &t->fixed_len);
    if (shape == TFWI_SHAPE_OTHER || feature->name_len >= TFWI_TEMPLATE_SIZE) {
        return;
    }
    size_t len = put_prefix(prefix, feature, list, t->fixed_len);
    if (len > TFWI_TEMPLATE_SIZE) {
        return;
    }
    memcpy(t->bytes, prefix, len);
    t->bytes_mask = ~UINT64_C(0) >> (64 - len);
    t->len = (uint8_t)len;
    t->shape = (uint8_t)shape;
    if (t->fixed_len == 0) {
        let_grow(t, list);
    }
    if (t->shape == TFWI_SHAPE_ONE_INT64) {
        t->number_len = t->max_len;
    } else if (t->shape == TFWI_SHAPE_ONE_FLOAT) {
        t->number_len = sizeof(float);
        t->number_row = TFWI_FLOAT_ROW - sizeof(float);
    }
}

/* ---- The portable kernel -------------------------------------------------------------------- */

#define TARGET

/* Eight bytes at a time. A length and what it grows by stay below 128: nothing is carried. */
TFWI_INLINE bool prefix_is(const tfwi_template *t, const uint8_t *p, size_t len) {
    uint64_t lens = len * UINT64_C(0x0101010101010101), differences = 0;
    size_t i = 0;
    for (; i + 8 < t->len; i += 8) {
        uint64_t expected = tfwi_load64(t->bytes + i) + (tfwi_load64(t->grows + i) & lens);
        differences |= tfwi_load64(p + i) ^ expected;
    }
    uint64_t expected = tfwi_load64(t->bytes + i) + (tfwi_load64(t->grows + i) & lens);
    unsigned beyond = (unsigned)(8 * (i + 8 - t->len)) & 63;
    return (differences | (tfwi_load64(p + i) ^ expected) << beyond) == 0;
}

#include "parse/match_words.h"

static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end, const uint8_t *limit,
                                   int64_t *out, size_t room, size_t *out_count) {
    tfwi_fault none; /* the complete parser finds it again */
    (void)limit;
    return tfwi_read_varints(p, end, out, room, out_count, &none);
}

#include "parse/match_template.h"

static const tfwi_matcher portable = {
    .name = "portable",
    .features = 0,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_block,
};

/* ---- Choosing ------------------------------------------------------------------------------- */

static const tfwi_matcher *const matchers[] = {
#ifdef TFWI_X86
    &tfwi_matcher_avx512,
    &tfwi_matcher_avx2,
#endif
#ifdef TFWI_ARM64
    &tfwi_matcher_neon,
#endif
    &portable,
};

TFWI_DEFINE_CHOICE(tfwi_matcher, matchers)
