/* SPDX-License-Identifier: Apache-2.0 */
/* Matching with AVX-512 and VBMI2 (Rocket Lake, Zen 4): eight varints are put together at once. */
#include "parse/columns.h"

#ifdef TFWI_X86

#include "base/cpu.h"

#define TARGET                                                                                    \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi," \
                          "bmi2,popcnt,lzcnt")))

#include "parse/match_bmi2.h"

/* ---- Blocks of varints ---------------------------------------------------------------------- */

#define LANES 8   /* values that are put together at once */

/* 64 bytes of varints. */
typedef struct window {
    __m512i sevens; /* the bytes without the bit that says whether another one follows */
    __m512i firsts; /* byte j: where value j begins */
    __m512i lasts;  /* byte j: where it ends */
} window;

TARGET TFWI_INLINE __m512i iota(void) {
    return _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928,
                            0x2726252423222120, 0x1f1e1d1c1b1a1918, 0x1716151413121110,
                            0x0f0e0d0c0b0a0908, 0x0706050403020100);
}

TARGET TFWI_INLINE window window_of(__m512i bytes, uint64_t ends) {
    const __m512i one = _mm512_set1_epi8(1);
    __m512i lasts = _mm512_maskz_compress_epi8(ends, iota());
    __m512i nexts = _mm512_add_epi8(lasts, one); /* where the next one begins */
    __m512i before = _mm512_sub_epi8(iota(), one);
    return (window){
        .sevens = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7f)),
        .firsts = _mm512_maskz_permutexvar_epi8(~UINT64_C(1), before, nexts),
        .lasts = lasts,
    };
}

/* Whether one of the first count values has more than ten bytes. */
TARGET TFWI_INLINE bool has_too_long(const window *w, size_t count) {
    __m512i lengths = _mm512_sub_epi8(w->lasts, w->firsts); /* less one */
    uint64_t long_ones = _mm512_cmpge_epu8_mask(lengths, _mm512_set1_epi8(TFWI_MAX_VARINT));
    return _bzhi_u64(long_ones, (unsigned)count) != 0;
}

/* Sevens of bits side by side: 8 of them to 56 bits in each lane. */
TARGET TFWI_INLINE __m512i join_sevens(__m512i lanes) {
    const __m512i low = _mm512_set1_epi64(0x0fffffff);
    lanes = _mm512_maddubs_epi16(_mm512_set1_epi16((int16_t)0x8001), lanes); /* pairs to 14 bits */
    lanes = _mm512_madd_epi16(lanes, _mm512_set1_epi32(1 << 14 << 16 | 1)); /* and to 28 */
    __m512i high = _mm512_srli_epi64(lanes, 4);
    return _mm512_ternarylogic_epi64(low, lanes, high, 0xca); /* low ? lanes : high */
}

/* The values from number first on, as many as there are lanes. */
TARGET TFWI_INLINE __m512i join(const window *w, size_t first, bool wide) {
    const __m512i in_lane = _mm512_set1_epi64(0x0706050403020100);
    /* Byte 8 of a varint goes to byte 7 of its lane, byte 9 to byte 6. */
    const __m512i tail = _mm512_set1_epi64(0x0809000000000000);
    const __m512i lane = _mm512_set_epi64(
        0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
        0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    __m512i number = _mm512_add_epi8(lane, _mm512_set1_epi8((char)first));
    __m512i begin = _mm512_permutexvar_epi8(number, w->firsts);
    __m512i last = _mm512_permutexvar_epi8(number, w->lasts);
    __m512i from = _mm512_add_epi8(begin, in_lane);
    __mmask64 present = _mm512_cmple_epu8_mask(from, last);
    __m512i value = join_sevens(_mm512_maskz_permutexvar_epi8(present, from, w->sevens));
    if (wide) {
        from = _mm512_add_epi8(begin, tail);
        present = _mm512_cmple_epu8_mask(from, last) & UINT64_C(0xc0c0c0c0c0c0c0c0);
        __m512i high = _mm512_maskz_permutexvar_epi8(present, from, w->sevens);
        __m512i top = _mm512_slli_epi64(high, 15); /* the lowest bit of byte 6 to the top */
        value = _mm512_or_si512(
            value, _mm512_and_si512(high, _mm512_set1_epi64(0x7f00000000000000)));
        value = _mm512_or_si512(value, _mm512_and_si512(top, _mm512_set1_epi64(INT64_MIN)));
    }
    return value;
}

/* The first count values of a window. */
TARGET TFWI_INLINE void read_window(const window *w, size_t count, int64_t *out, bool wide) {
    for (size_t i = 0; i < count; i += LANES) {
        __mmask8 lanes = (__mmask8)_bzhi_u32(0xff, (unsigned)(count - i));
        _mm512_mask_storeu_epi64(out + i, lanes, join(w, i, wide));
    }
}

/* Bytes that are a value each. */
TARGET TFWI_INLINE void widen(__m512i bytes, size_t count, int64_t *out) {
    for (size_t i = 0; i < count; i += LANES) {
        __mmask8 lanes = (__mmask8)_bzhi_u32(0xff, (unsigned)(count - i));
        _mm512_mask_storeu_epi64(out + i, lanes,
                                 _mm512_cvtepu8_epi64(_mm512_castsi512_si128(bytes)));
        bytes = _mm512_alignr_epi64(bytes, bytes, 1);
    }
}

/* A tfwi_varint_reader; it reads nothing beyond end. */
TARGET static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count) {
    (void)limit;
    *out_count = 0;
    while (p != end && *out_count < room) {
        size_t len = (size_t)(end - p) < TFWI_WINDOW ? (size_t)(end - p) : TFWI_WINDOW;
        uint64_t bytes_mask = ~UINT64_C(0) >> (TFWI_WINDOW - len);
        __m512i bytes = _mm512_maskz_loadu_epi8(bytes_mask, p);
        uint64_t ends = ~_mm512_movepi8_mask(bytes) & bytes_mask;
        size_t left = room - *out_count;
        if ((size_t)_mm_popcnt_u64(ends) > left) {
            ends = _pdep_u64(_bzhi_u64(~UINT64_C(0), (unsigned)left), ends);
        }
        size_t count = (size_t)_mm_popcnt_u64(ends), used = TFWI_WINDOW - (size_t)_lzcnt_u64(ends);
        if (count == used && count != 0) {
            widen(bytes, count, out + *out_count);
        } else {
            window w = window_of(bytes, ends);
            if (count == 0 || has_too_long(&w, count)) {
                return NULL; /* or cut off */
            }
            read_window(&w, count, out + *out_count, tfwi_has_eight(ends | ~bytes_mask));
        }
        p += used;
        *out_count += count;
    }
    return p;
}

#include "parse/match_template.h"

const tfwi_matcher tfwi_matcher_avx512 = {
    .name = "avx512",
    .features = TFWI_CPU_AVX512 | TFWI_CPU_AVX512_VBMI | TFWI_CPU_AVX512_VBMI2 | TFWI_CPU_AVX2 |
                TFWI_CPU_BMI2,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_block,
};

#endif /* TFWI_X86 */
