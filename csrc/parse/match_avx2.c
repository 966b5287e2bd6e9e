/* SPDX-License-Identifier: Apache-2.0 */
/* Matching with AVX2 and BMI2: x86-64 since 2013. */
#include "parse/columns.h"

#ifdef TFWI_X86

#include "base/cpu.h"

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

#include "parse/match_bmi2.h"

/* ---- Blocks of varints ---------------------------------------------------------------------- */

/* Bit i: byte i of the 64 at p ends a varint. */
TARGET TFWI_INLINE uint64_t window_ends(const uint8_t *p) {
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32);
}

/* The first count values of a window; returns their end. */
TARGET TFWI_INLINE const uint8_t *read_window(const uint8_t *window, uint64_t ends, int64_t *out,
                                              size_t count, bool wide) {
    const uint8_t *p = window;
    for (size_t i = 0; i < count; i++, ends &= ends - 1) {
        const uint8_t *next = window + _tzcnt_u64(ends) + 1;
        out[i] = join_bits(p, (size_t)(next - p), wide);
        p = next;
    }
    return p;
}

#include "parse/match_window.h"

#include "parse/match_template.h"

const tfwi_matcher tfwi_matcher_avx2 = {
    .name = "avx2",
    .features = TFWI_CPU_AVX2 | TFWI_CPU_BMI2,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_block,
};

#endif /* TFWI_X86 */
