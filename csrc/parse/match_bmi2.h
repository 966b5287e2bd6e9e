/* SPDX-License-Identifier: Apache-2.0 */
/* Template: prefixes and single varints by AVX2 and BMI2. A kernel's file includes it once, after
 * it has defined
 *
 *     TARGET     the function attribute that allows its instructions, these among them
 */
#ifndef TFWIRE_MATCH_BMI2_H
#define TFWIRE_MATCH_BMI2_H

#include "parse/match.h"

#include <immintrin.h>

/* The bytes of half a prefix that are as expected. */
TARGET TFWI_INLINE uint32_t half_is(const tfwi_template *t, const uint8_t *p, size_t half,
                                    __m256i lens) {
    __m256i fixed = _mm256_loadu_si256((const __m256i *)(const void *)(t->bytes + half));
    __m256i grows = _mm256_loadu_si256((const __m256i *)(const void *)(t->grows + half));
    __m256i found = _mm256_loadu_si256((const __m256i *)(const void *)(p + half));
    __m256i expected = _mm256_add_epi8(fixed, _mm256_and_si256(grows, lens));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(found, expected));
}

TARGET TFWI_INLINE bool prefix_is(const tfwi_template *t, const uint8_t *p, size_t len) {
    __m256i lens = _mm256_set1_epi8((char)len);
    uint32_t differences = ~half_is(t, p, 0, lens) & (uint32_t)t->bytes_mask;
    if (t->len > 32) {
        differences |= ~half_is(t, p, 32, lens) & (uint32_t)(t->bytes_mask >> 32);
    }
    return differences == 0;
}

/* Single numbers, by the length of a varint, and a float. */
static const struct {
    uint64_t low[TFWI_NUMBER_ROWS];      /* the bits of its first eight bytes that belong to it */
    uint64_t high[TFWI_NUMBER_ROWS];     /* and of the two after them: the last has only one */
    uint32_t asked[TFWI_NUMBER_ROWS];    /* bit i: byte i belongs to a varint */
    uint32_t followed[TFWI_NUMBER_ROWS]; /* bit i: and is followed by another; row 0: never so */
} numbers = {
    .low = {0, UINT64_C(0x7f), UINT64_C(0x7f7f), UINT64_C(0x7f7f7f), UINT64_C(0x7f7f7f7f),
            UINT64_C(0x7f7f7f7f7f), UINT64_C(0x7f7f7f7f7f7f), UINT64_C(0x7f7f7f7f7f7f7f),
            UINT64_C(0x7f7f7f7f7f7f7f7f), UINT64_C(0x7f7f7f7f7f7f7f7f),
            UINT64_C(0x7f7f7f7f7f7f7f7f), UINT32_MAX},
    .high = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0x17f, 0},
    .asked = {1 << 16, 1, 3, 7, 0xf, 0x1f, 0x3f, 0x7f, 0xff, 0x1ff, 0x3ff, 0},
    .followed = {1 << 16, 0, 1, 3, 7, 0xf, 0x1f, 0x3f, 0x7f, 0xff, 0x1ff, 0},
};

/* The number at p, where 8 bytes can be read, or 16 if wide: then it may be a varint of 9 or 10. */
TARGET TFWI_INLINE int64_t join_bits(const uint8_t *p, size_t row, bool wide) {
    uint64_t value = _pext_u64(tfwi_load64(p), numbers.low[row]);
    if (wide) {
        value |= _pext_u64(tfwi_load64(p + 8), numbers.high[row]) << 56;
    }
    return (int64_t)value;
}

/* Whether a number of this row is at p; its value. 16 bytes can be read. No branch depends on the
 * row: numbers of many lengths follow each other. */
TARGET TFWI_INLINE bool read_number(const uint8_t *p, size_t row, uint64_t *out) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    *out = (uint64_t)join_bits(p, row, true);
    uint32_t followed = (uint32_t)_mm_movemask_epi8(bytes);
    return ((followed ^ numbers.followed[row]) & numbers.asked[row]) == 0;
}

/* The same of a varint of at most ten bytes. */
TARGET TFWI_INLINE bool read_varint(const uint8_t *p, size_t len, int64_t *out) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    *out = join_bits(p, len, true);
    return _bzhi_u32((uint32_t)_mm_movemask_epi8(bytes), (unsigned)len) == numbers.followed[len];
}

#endif /* TFWIRE_MATCH_BMI2_H */
