/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C with AVX2 and VPCLMULQDQ, without AVX-512: AMD since Zen 3, Intel since Alder Lake.
 * Inline, for the kernel and for the record scanner. */
#ifndef TFWIRE_CRC32C_AVX2_H
#define TFWIRE_CRC32C_AVX2_H

#include "crc32c/crc32c_tables.h"

#include <immintrin.h>

#include "crc32c/crc32c_names_template.h"

#define KERNEL avx2
#define FEATURES (TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL | TFWI_CPU_AVX2 | TFWI_CPU_VPCLMUL)
#define TARGET __attribute__((target(TFWI_SSE42 ",pclmul,avx2,vpclmulqdq")))
#define VEC_SIZE 32
#define BLOCK_ROWS BLOCK_ROWS_32
#define STREAM_WORDS STREAM_WORDS_32
#define BLOCK_FOLD block_fold_32
#define STREAM_FACTORS stream_factors_32

typedef __m256i vec;

TARGET TFWI_INLINE vec vec_load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

TARGET TFWI_INLINE __m128i lane_of(uint32_t value) { return _mm_cvtsi32_si128((int)value); }

TARGET TFWI_INLINE vec vec_state(uint32_t state) { return _mm256_zextsi128_si256(lane_of(state)); }

TARGET TFWI_INLINE vec vec_product(uint32_t a, uint32_t b) {
    return _mm256_zextsi128_si256(_mm_clmulepi64_si128(lane_of(a), lane_of(b), 0x00));
}

TARGET TFWI_INLINE uint64_t vec_low(vec x) {
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(x));
}

TARGET TFWI_INLINE vec vec_add(vec x, vec y) { return _mm256_xor_si256(x, y); }

TARGET TFWI_INLINE vec vec_factors(const uint64_t *first, const uint64_t *second) {
    return _mm256_broadcastsi128_si256(_mm_set_epi64x((int64_t)*second, (int64_t)*first));
}

TARGET TFWI_INLINE vec vec_fold(vec x, vec factors, vec y) {
    vec low = _mm256_clmulepi64_epi128(x, factors, 0x00);
    vec high = _mm256_clmulepi64_epi128(x, factors, 0x11);
    return vec_add(vec_add(low, y), high);
}

TARGET TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) {
    return (uint32_t)_mm_crc32_u64(state, word);
}

/* Vector i of four, its lanes carried to the end of the last one, plus sum. */
TARGET TFWI_INLINE vec to_end(size_t i, vec x, vec sum) {
    const void *pairs = folds_to_end[8 + 2 * i];
    return vec_fold(x, _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)pairs)), sum);
}

TARGET TFWI_INLINE uint32_t vec_sum(vec a, vec b, vec c, vec d) {
    vec zero = _mm256_setzero_si256();
    vec lanes = vec_add(to_end(1, b, to_end(0, a, zero)), to_end(3, d, to_end(2, c, zero)));
    __m128i sum = _mm_xor_si128(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    uint32_t state = crc_word(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return crc_word(state, (uint64_t)_mm_extract_epi64(sum, 1));
}

#include "crc32c/crc32c_fold_template.h"

#include "crc32c/crc32c_words_template.h"

#endif /* TFWIRE_CRC32C_AVX2_H */
