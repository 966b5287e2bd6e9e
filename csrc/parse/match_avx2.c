/* Matching with AVX2 and BMI2: x86-64 since 2013. */
#include "parse/columns.h"

#ifdef TFWI_X86

#include "base/cpu.h"

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

#include "parse/match_bmi2.h"

/* ---- Blocks of varints ---------------------------------------------------------------------- */

/* A branch per value that depends on its length would be mispredicted often. So the ends of varints
 * in 64 bytes are found at once, and values of any length are put together by masks. */
#define WINDOW 64

/* Readable bytes past a window: those of a varint that begins in its last byte, as two words. */
#define WINDOW_SLACK 16

/* Bit i: byte i of the 64 at p ends a varint. */
TARGET TFWI_INLINE uint64_t window_ends(const uint8_t *p) {
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32);
}

/* The first count values of a window; returns their end, or NULL if one is too long. */
TARGET TFWI_INLINE const uint8_t *read_window(const uint8_t *window, uint64_t ends, int64_t *out,
                                              size_t count, bool wide) {
    const uint8_t *p = window;
    for (size_t i = 0; i < count; i++, ends &= ends - 1) {
        const uint8_t *next = window + _tzcnt_u64(ends) + 1;
        size_t len = (size_t)(next - p);
        if (wide && len > TFWI_MAX_VARINT) {
            return NULL;
        }
        out[i] = join_bits(p, len, wide);
        p = next;
    }
    return p;
}

/* A tfwi_varint_reader. */
TARGET static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count) {
    uint8_t tail[WINDOW + WINDOW_SLACK] = {0};
    *out_count = 0;
    while (p != end && *out_count < room) {
        const uint8_t *window = p;
        size_t len = (size_t)(end - p) < WINDOW ? (size_t)(end - p) : WINDOW;
        if (limit - p < WINDOW + WINDOW_SLACK) {
            window = memcpy(tail, p, len);
        }
        uint64_t ends = window_ends(window) & ~UINT64_C(0) >> (WINDOW - len);
        size_t count = (size_t)_mm_popcnt_u64(ends), left = room - *out_count;
        count = count < left ? count : left;
        const uint8_t *next = has_wide(ends)
                                  ? read_window(window, ends, out + *out_count, count, true)
                                  : read_window(window, ends, out + *out_count, count, false);
        if (next == NULL || count == 0) {
            return NULL; /* too long, or cut off */
        }
        p += next - window;
        *out_count += count;
    }
    return p;
}

#include "parse/match_loop.h"

const tfwi_matcher tfwi_matcher_avx2 = {
    .name = "avx2",
    .features = TFWI_CPU_AVX2 | TFWI_CPU_BMI2,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_varints,
};

#endif /* TFWI_X86 */
