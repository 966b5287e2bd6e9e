/* SPDX-License-Identifier: Apache-2.0 */
/* Matching with NEON: every ARM64. */
#include "parse/columns.h"

#ifdef TFWI_ARM64

#include "base/cpu.h"

#include <arm_neon.h>

#define TARGET

#include "parse/match_words.h"

/* ---- Prefixes ------------------------------------------------------------------------------- */

/* Sixteen bytes of a prefix: 0 where a byte is as expected. */
TFWI_INLINE uint8x16_t differences(const tfwi_template *t, const uint8_t *p, size_t i,
                                   uint8x16_t lens) {
    uint8x16_t grown = vandq_u8(vld1q_u8(t->grows + i), lens);
    return veorq_u8(vld1q_u8(p + i), vaddq_u8(vld1q_u8(t->bytes + i), grown));
}

/* 32 bytes, of which those from byte len on count as 0. REQUIRES: len <= 32. */
TFWI_INLINE uint8x16_t first_differences(const tfwi_template *t, const uint8_t *p, size_t i,
                                         size_t len, uint8x16_t lens) {
    static const uint8_t kept[64] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t *mask = kept + 32 - len;
    return vorrq_u8(vandq_u8(differences(t, p, i, lens), vld1q_u8(mask)),
                    vandq_u8(differences(t, p, i + 16, lens), vld1q_u8(mask + 16)));
}

TFWI_INLINE bool prefix_is(const tfwi_template *t, const uint8_t *p, size_t len) {
    uint8x16_t lens = vdupq_n_u8((uint8_t)len), found;
    if (TFWI_LIKELY(t->len <= 32)) {
        found = first_differences(t, p, 0, t->len, lens);
    } else {
        found = vorrq_u8(differences(t, p, 0, lens), differences(t, p, 16, lens));
        found = vorrq_u8(found, first_differences(t, p, 32, t->len - 32u, lens));
    }
    uint32x4_t words = vreinterpretq_u32_u8(found);
    return vgetq_lane_u64(vreinterpretq_u64_u32(vpmaxq_u32(words, words)), 0) == 0;
}

/* ---- Blocks of varints ---------------------------------------------------------------------- */

/* Which of 16 bytes end a varint; each is the bit of its place among eight. */
TFWI_INLINE uint8x16_t end_bits(const uint8_t *p) {
    const uint8x16_t places = vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201)));
    return vandq_u8(vcgezq_s8(vreinterpretq_s8_u8(vld1q_u8(p))), places);
}

TFWI_INLINE uint64_t window_ends(const uint8_t *p) {
    uint8x16_t low = vpaddq_u8(end_bits(p), end_bits(p + 16));
    uint8x16_t high = vpaddq_u8(end_bits(p + 32), end_bits(p + 48));
    uint8x16_t sums = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
}

/* Two words at once, each the next eight bytes of a varint. */
TFWI_INLINE uint64x2_t load_two(const uint8_t *p, const uint8_t *q) {
    return vcombine_u64(vreinterpret_u64_u8(vld1_u8(p)), vreinterpret_u64_u8(vld1_u8(q)));
}

/* The sevens of bits up to the first byte that ends a varint; all if there is none. */
TFWI_INLINE uint64x2_t sevens_of(uint64x2_t words) {
    uint64x2_t ends = vbicq_u64(vdupq_n_u64(EIGHTHS), words);
    uint64x2_t to_end = veorq_u64(ends, vaddq_u64(ends, vdupq_n_u64(UINT64_MAX)));
    return vandq_u64(vandq_u64(words, to_end), vdupq_n_u64(SEVENS));
}

TFWI_INLINE uint16x8_t join_pairs(uint64x2_t sevens) {
    uint16x8_t pairs = vreinterpretq_u16_u64(sevens);
    return vsliq_n_u16(pairs, vshrq_n_u16(pairs, 8), 7);
}

TFWI_INLINE uint64x2_t join_two(uint64x2_t words) {
    uint32x4_t fours = vreinterpretq_u32_u16(join_pairs(sevens_of(words)));
    uint64x2_t eights = vreinterpretq_u64_u32(vsliq_n_u32(fours, vshrq_n_u32(fours, 16), 14));
    return vsliq_n_u64(eights, vshrq_n_u64(eights, 32), 28);
}

/* The varints at p and q, of at most ten bytes if wide, else of eight. */
TFWI_INLINE int64x2_t read_two(const uint8_t *p, const uint8_t *q, bool wide) {
    uint64x2_t words = load_two(p, q), values = join_two(words);
    if (wide) { /* the next two bytes are the highest eight bits, if none of the first ends it */
        uint64x2_t high = vreinterpretq_u64_u16(join_pairs(sevens_of(load_two(p + 8, q + 8))));
        uint64x2_t done = vtstq_u64(vbicq_u64(vdupq_n_u64(EIGHTHS), words), vdupq_n_u64(EIGHTHS));
        values = vorrq_u64(values, vbicq_u64(vshlq_n_u64(high, 56), done));
    }
    return vreinterpretq_s64_u64(values);
}

/* The end of the first varint of those that end in a window. */
TFWI_INLINE const uint8_t *first_end(const uint8_t *window, uint64_t ends) {
    return window + __builtin_ctzll(ends) + 1;
}

TFWI_INLINE const uint8_t *read_window(const uint8_t *window, uint64_t ends, int64_t *out,
                                       size_t count, bool wide) {
    const uint8_t *p = window;
    for (size_t i = 0; i + 2 <= count; i += 2, ends &= ends - 1) {
        const uint8_t *second = first_end(window, ends);
        ends &= ends - 1;
        vst1q_s64(out + i, read_two(p, second, wide));
        p = first_end(window, ends);
    }
    if (count % 2 != 0) {
        out[count - 1] = vgetq_lane_s64(read_two(p, p, wide), 0);
        p = first_end(window, ends);
    }
    return p;
}

#include "parse/match_window.h"

#include "parse/match_template.h"

const tfwi_matcher tfwi_matcher_neon = {
    .name = "neon",
    .features = TFWI_CPU_ARM_NEON,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_block,
};

#endif /* TFWI_ARM64 */
