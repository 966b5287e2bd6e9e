/* SPDX-License-Identifier: Apache-2.0 */
/* A Feature on the wire: prefix and values.
 *
 * In a message a length precedes what it counts, and four lengths surround the values of a feature.
 * Everything before the values (tags, key, lengths) is called the prefix here. The key and the kind
 * determine its bytes, except for the lengths, which follow from the length of the values. So every
 * feature is written in one pass. If the length of the values is known, the prefix is written
 * first. If not, the values are written after a gap as long as the last prefix, and moved if the
 * prefix turns out to have another length. */
#ifndef TFWIRE_PREFIX_H
#define TFWIRE_PREFIX_H

#include "wire/field.h"
#include "wire/floats.h"

#define TFWI_MAX_LENGTHS 4
#define TFWI_SLACK 64 /* bytes that copies by whole words may touch past their end */

/* ---- Prefixes ------------------------------------------------------------------------------- */

/* A prefix without its lengths: texts[i] bytes of text stand before length i. Nested as the message
 * is, so that the first lengths of one prefix also serve less deep (1: and 2: are tags of strings):
 *   outer   1: <entry> 1: <key's length, constant> key 2: <feature>      or, for a step of a
 *           feature list,                              1: <feature>
 *   list    ... kind: <list>
 *   packed  ... 1: <packed values, or the only string> */
typedef struct tfwi_prefix {
    uint8_t *text;
    size_t texts[TFWI_MAX_LENGTHS];
    unsigned outer;  /* lengths of the outer part: 2, or 1 */
    size_t guess;    /* size of the prefix last placed in front of values */
    size_t max_size; /* with lengths of any size */
    /* The packed prefix of values of no bytes, while every length is a single byte; to_add is 0xff
     * where a length stands. */
    uint64_t *template;
    uint64_t *to_add;
    size_t template_size;
    size_t template_limit; /* values must be shorter than this; 0: no template */
} tfwi_prefix;

#define TFWI_LIST_LENGTHS(prefix) ((prefix)->outer + 1)
#define TFWI_PACKED_LENGTHS(prefix) ((prefix)->outer + 2)

/* Words of memory for the text and for the template of a key of name_len bytes. */
size_t tfwi_prefix_text_words(size_t name_len);
size_t tfwi_prefix_template_words(size_t name_len);

/* A prefix whose text lies in memory: of a map entry, or of a step (without a key). */
void tfwi_prefix_init(tfwi_prefix *prefix, const char *name, size_t name_len, int32_t kind,
                      uint64_t *memory);
void tfwi_prefix_init_step(tfwi_prefix *prefix, int32_t kind, uint64_t *memory);

/* Prepares the template, unless the key is too long for one. */
void tfwi_prefix_prepare(tfwi_prefix *prefix, uint64_t *memory);

/* Writes the prefix of values of len bytes; returns where these begin. */
uint8_t *tfwi_prefix_put(const tfwi_prefix *prefix, unsigned lengths, size_t len, uint8_t *p);

/* Puts the prefix at start, before values that begin at start + guess and end at end; they move if
 * need be. Returns their new end. */
uint8_t *tfwi_prefix_place(tfwi_prefix *prefix, unsigned lengths, uint8_t *start,
                           const uint8_t *end);

/* Words of a block: templates are written in blocks, each as one vector where possible. */
#define TFWI_TEMPLATE_BLOCK 4

/* Writes a template for values of len bytes; touches less than a block past it. */
TFWI_INLINE void tfwi_put_template(uint8_t *p, const uint64_t *template, const uint64_t *to_add,
                                   size_t size, size_t len) {
    uint64_t add = len * UINT64_C(0x0101010101010101);
    for (size_t i = 0; 8 * i < size; i += TFWI_TEMPLATE_BLOCK) {
        uint64_t block[TFWI_TEMPLATE_BLOCK];
        for (size_t j = 0; j < TFWI_TEMPLATE_BLOCK; j++) { /* bytes below 128: no carry */
            block[j] = template[i + j] + (to_add[i + j] & add);
        }
        memcpy(p + 8 * i, block, sizeof block);
    }
}

/* Writes the packed prefix; touches less than a block past it. */
TFWI_INLINE uint8_t *tfwi_prefix_put_packed(const tfwi_prefix *f, size_t len, uint8_t *p) {
    if (TFWI_LIKELY(len < f->template_limit)) {
        tfwi_put_template(p, f->template, f->to_add, f->template_size, len);
        return p + f->template_size;
    }
    return tfwi_prefix_put(f, TFWI_PACKED_LENGTHS(f), len, p);
}

/* ---- Values --------------------------------------------------------------------------------- */

typedef struct tfwi_output {
    uint8_t *at;
    uint8_t *end;
} tfwi_output;

TFWI_INLINE bool tfwi_has_room(const tfwi_output *out, uint64_t need) {
    return (uint64_t)(out->end - out->at) >= need;
}

/* The most bytes that count values take with their prefix; strings: of text_len bytes in all. It
 * may be more than a size_t of 32 bits holds. */
TFWI_INLINE uint64_t tfwi_feature_bound(const tfwi_prefix *f, int32_t kind, uint64_t count,
                                        uint64_t text_len) {
    uint64_t values = kind == TFW_FLOAT   ? 4 * count
                      : kind == TFW_INT64 ? TFWI_MAX_VARINT * count
                                          : text_len + (1 + TFWI_MAX_VARINT) * count;
    return f->max_size + values + TFWI_SLACK;
}

/* One number. */
TFWI_INLINE void tfwi_put_int64(const tfwi_prefix *f, int64_t value, tfwi_output *out) {
    size_t size = tfwi_varint_size((uint64_t)value);
    uint8_t *p = tfwi_prefix_put_packed(f, size, out->at);
    out->at = tfwi_put_varint(p, (uint64_t)value, size);
}

/* One or more numbers in memory of any alignment. */
TFWI_INLINE void tfwi_put_floats(const tfwi_prefix *f, const void *values, size_t count,
                                 tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, 4 * count, out->at);
    tfwi_store_floats(p, values, count);
    out->at = p + 4 * count;
}

/* The bytes of a string; at most 16 as one word where limit, the bytes readable, allows it. */
TFWI_INLINE uint8_t *tfwi_put_text(const uint8_t *from, size_t len, size_t limit, uint8_t *p) {
    if (len <= 16 && limit >= 16) {
        memcpy(p, from, 16);
    } else if (len != 0) {
        memcpy(p, from, len);
    }
    return p + len;
}

/* The most bytes that a section of a message takes besides its entries, before they are moved. */
#define TFWI_SECTION_BOUND (1 + 2 * TFWI_MAX_VARINT)

/* Puts tag and length before entries that begin at start + 1 + *guess; they move if the guess of
 * the size of their length is wrong. Returns their new end. */
TFWI_INLINE uint8_t *tfwi_close_section(uint8_t *start, uint8_t tag, size_t *guess,
                                        const uint8_t *end) {
    const uint8_t *entries = start + 1 + *guess;
    size_t len = (size_t)(end - entries);
    size_t size = tfwi_varint_size(len);
    if (TFWI_UNLIKELY(size != *guess)) {
        memmove(start + 1 + size, entries, len);
        *guess = size;
    }
    *start = tag;
    return tfwi_put_length(start + 1, len) + len;
}

#endif /* TFWIRE_PREFIX_H */
