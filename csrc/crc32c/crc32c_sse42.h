/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C with SSE4.2 and PCLMULQDQ: every x86-64 server since 2010.
 * Inline, for the kernel and for the record scanner. */
#ifndef TFWIRE_CRC32C_SSE42_H
#define TFWIRE_CRC32C_SSE42_H

#include "crc32c/crc32c_tables.h"

#include <immintrin.h>

#include "crc32c/crc32c_names_template.h"

#define KERNEL sse42
#define FEATURES (TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL)
#define TARGET __attribute__((target(TFWI_SSE42 ",pclmul")))
#define VEC_SIZE 16
#define BLOCK_ROWS BLOCK_ROWS_16
#define STREAM_WORDS STREAM_WORDS_16
#define BLOCK_FOLD block_fold_16
#define STREAM_FACTORS stream_factors_16

typedef __m128i vec;

TARGET TFWI_INLINE vec vec_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

TARGET TFWI_INLINE vec vec_state(uint32_t state) { return _mm_cvtsi32_si128((int)state); }

TARGET TFWI_INLINE vec vec_product(uint32_t a, uint32_t b) {
    return _mm_clmulepi64_si128(vec_state(a), vec_state(b), 0x00);
}

TARGET TFWI_INLINE uint64_t vec_low(vec x) { return (uint64_t)_mm_cvtsi128_si64(x); }

TARGET TFWI_INLINE vec vec_add(vec x, vec y) { return _mm_xor_si128(x, y); }

TARGET TFWI_INLINE vec vec_factors(const uint64_t *first, const uint64_t *second) {
    return _mm_set_epi64x((int64_t)*second, (int64_t)*first);
}

TARGET TFWI_INLINE vec vec_fold(vec x, vec factors, vec y) {
    vec low = _mm_clmulepi64_si128(x, factors, 0x00);
    vec high = _mm_clmulepi64_si128(x, factors, 0x11);
    return vec_add(vec_add(low, y), high);
}

TARGET TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) {
    return (uint32_t)_mm_crc32_u64(state, word);
}

TARGET TFWI_INLINE uint32_t vec_lane_sum(vec x) {
    uint32_t state = crc_word(0, (uint64_t)_mm_cvtsi128_si64(x));
    return crc_word(state, (uint64_t)_mm_extract_epi64(x, 1));
}

TARGET TFWI_INLINE uint32_t vec_sum(vec a, vec b, vec c, vec d) {
    vec sum = vec_fold(c, vec_factors(FOLD_OVER(16)), d);
    sum = vec_fold(b, vec_factors(FOLD_OVER(32)), sum);
    return vec_lane_sum(vec_fold(a, vec_factors(FOLD_OVER(48)), sum));
}

#include "crc32c/crc32c_fold_template.h"

#include "crc32c/crc32c_words_template.h"

#endif /* TFWIRE_CRC32C_SSE42_H */
