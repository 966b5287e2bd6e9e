/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C with AVX-512 and VPCLMULQDQ: Intel since Rocket Lake, AMD since Zen 4; Ice Lake if asked.
 * Inline, for the kernel and for the record scanner. */
#ifndef TFWIRE_CRC32C_AVX512_H
#define TFWIRE_CRC32C_AVX512_H

#include "crc32c/crc32c_tables.h"

#include <immintrin.h>

#include "crc32c/crc32c_names_template.h"

#define KERNEL avx512
#define FEATURES                                                                       \
    (TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL | TFWI_CPU_BMI2 | TFWI_CPU_AVX512 | TFWI_CPU_VPCLMUL)
#define TARGET \
    __attribute__((target(TFWI_SSE42 ",pclmul,bmi2,avx512f,avx512bw,avx512dq,avx512vl,vpclmulqdq")))
#define VEC_SIZE 64
#define BLOCK_ROWS BLOCK_ROWS_64
#define STREAM_WORDS STREAM_WORDS_64
#define BLOCK_FOLD block_fold_64
#define STREAM_FACTORS stream_factors_64

typedef __m512i vec;

TARGET TFWI_INLINE vec vec_load(const uint8_t *p) { return _mm512_loadu_si512(p); }

TARGET TFWI_INLINE __m128i lane_of(uint32_t value) { return _mm_cvtsi32_si128((int)value); }

TARGET TFWI_INLINE __m128i lane_product(uint32_t a, uint32_t b) {
    return _mm_clmulepi64_si128(lane_of(a), lane_of(b), 0x00);
}

TARGET TFWI_INLINE vec vec_state(uint32_t state) { return _mm512_zextsi128_si512(lane_of(state)); }

TARGET TFWI_INLINE vec vec_product(uint32_t a, uint32_t b) {
    return _mm512_zextsi128_si512(lane_product(a, b));
}

TARGET TFWI_INLINE uint64_t vec_low(vec x) {
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(x));
}

TARGET TFWI_INLINE vec vec_add(vec x, vec y) { return _mm512_xor_si512(x, y); }

TARGET TFWI_INLINE vec vec_factors(const uint64_t *first, const uint64_t *second) {
    return _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)*second, (int64_t)*first));
}

TARGET TFWI_INLINE vec vec_fold(vec x, vec factors, vec y) {
    vec low = _mm512_clmulepi64_epi128(x, factors, 0x00);
    vec high = _mm512_clmulepi64_epi128(x, factors, 0x11);
    return _mm512_ternarylogic_epi64(low, high, y, 0x96); /* the sum of three */
}

TARGET TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) {
    return (uint32_t)_mm_crc32_u64(state, word);
}

/* Vector i of four, its lanes carried to the end of the last one, plus sum. */
TARGET TFWI_INLINE vec to_end(size_t i, vec x, vec sum) {
    __m256i pairs = _mm256_loadu_si256((const __m256i *)folds_to_end[4 * i]);
    return vec_fold(x, _mm512_cvtepu32_epi64(pairs), sum);
}

/* What lanes that are already carried to the end do to a register of 0. */
TARGET TFWI_INLINE uint32_t lanes_sum(vec lanes, __m128i extra) {
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(lanes),
                                    _mm512_extracti64x4_epi64(lanes, 1));
    __m128i sum = _mm_ternarylogic_epi64(_mm256_castsi256_si128(half),
                                         _mm256_extracti128_si256(half, 1), extra, 0x96);
    uint32_t state = crc_word(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return crc_word(state, (uint64_t)_mm_extract_epi64(sum, 1));
}

TARGET TFWI_INLINE uint32_t vec_sum(vec a, vec b, vec c, vec d) {
    vec zero = _mm512_setzero_si512();
    vec sum = vec_add(to_end(1, b, to_end(0, a, zero)), to_end(3, d, to_end(2, c, zero)));
    return lanes_sum(sum, _mm_setzero_si128());
}

#include "crc32c/crc32c_fold_template.h"

/* ---- Masked loads: bytes whose bit is 0 are not read --------------------------------------- */

/* a - b, or 0 where that is negative. */
TFWI_INLINE size_t excess(size_t a, size_t b) { return a > b ? a - b : 0; }

/* Bits [0, n) of 64. REQUIRES: n < 256. */
TARGET TFWI_INLINE __mmask64 first_bits(size_t n) { return _bzhi_u64(UINT64_MAX, (unsigned)n); }

/* The first len bytes at p, then zeros. */
TARGET TFWI_INLINE vec load_first(const uint8_t *p, size_t len) {
    return _mm512_maskz_loadu_epi8(first_bits(len), p);
}

/* The 64 bytes that end at end, the first of them as zeros. The address is an integer because it
 * may lie before the object. */
TARGET TFWI_INLINE vec load_last(uintptr_t end, size_t zeros) {
    return _mm512_maskz_loadu_epi8(~first_bits(zeros), (const void *)(end - 64));
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* At most 64 bytes, loaded from the end backwards with zeros before them; these change nothing, as
 * the register begins with 0. The first register itself is carried over the whole length. */
TARGET TFWI_INLINE uint32_t one_vector(uint32_t state, const uint8_t *p, size_t len) {
    __m128i carried = lane_product(state, (uint32_t)FACTOR_OVER(len - 8));
    vec x = load_last((uintptr_t)p + len, 64 - len);
    return lanes_sum(to_end(3, x, _mm512_setzero_si512()), carried);
}

/* 64 to 128 bytes: the odd ones are carried to the last 64. */
TARGET TFWI_INLINE uint32_t two_vectors(uint32_t state, const uint8_t *p, size_t len) {
    size_t odd = len - 64;
    vec x = vec_add(load_first(p, odd), vec_state(state));
    x = vec_fold(x, vec_factors(FOLD_OVER(odd)), vec_load(p + odd));
    return lanes_sum(to_end(3, x, _mm512_setzero_si512()), _mm_setzero_si128());
}

/* 128 to 256 bytes: the odd ones are carried to the last 128. */
TARGET TFWI_INLINE uint32_t four_vectors(uint32_t state, const uint8_t *p, size_t len) {
    size_t odd = len - 128;
    vec factors = vec_factors(FOLD_OVER(odd));
    vec x = vec_add(load_first(p, odd), vec_state(state));
    vec y = load_first(p + 64, excess(odd, 64));
    x = vec_fold(x, factors, vec_load(p + odd));
    y = vec_fold(y, factors, vec_load(p + odd + 64));
    return lanes_sum(to_end(3, y, to_end(2, x, _mm512_setzero_si512())), _mm_setzero_si128());
}

/* The odd bytes make a row, of which only they are loaded. REQUIRES: len >= ROW_SIZE. */
TARGET TFWI_NOINLINE static uint32_t many_vectors(uint32_t state, const uint8_t *p, size_t len) {
    size_t num_blocks = (len - ROW_SIZE) / BLOCK_SIZE;
    size_t num_rows = (len - num_blocks * BLOCK_SIZE) / ROW_SIZE;
    size_t odd = (len - num_blocks * BLOCK_SIZE) % ROW_SIZE;
    row x = {load_first(p, odd), load_first(p + 64, excess(odd, 64)),
             load_first(p + 128, excess(odd, 128)), load_first(p + 192, excess(odd, 192))};
    x.a = vec_add(x.a, vec_state(state));
    return fold(x, vec_factors(FOLD_OVER(odd)), p + odd, num_blocks, num_rows);
}

/* Lengths of records are unpredictable, and a mispredicted branch costs more than all the
 * arithmetic on short data: so there are few classes. */
TARGET TFWI_INLINE uint32_t crc_bytes(uint32_t state, const uint8_t *p, size_t len) {
    if (len <= 64) {
        return one_vector(state, p, len);
    }
    if (len <= 128) {
        return two_vectors(state, p, len);
    }
    return len <= ROW_SIZE ? four_vectors(state, p, len) : many_vectors(state, p, len);
}

#endif /* TFWIRE_CRC32C_AVX512_H */
