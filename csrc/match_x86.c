/* Matching with AVX2 and BMI2: x86-64 since 2013. */
#include "columns.h"

#ifdef TFWI_X86

#include "cpu.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))

/* The bytes of half a header that are as expected. */
TARGET TFWI_INLINE uint32_t half_is(const tfwi_template *t, const uint8_t *p, size_t half,
                                    __m256i lens) {
    __m256i fixed = _mm256_loadu_si256((const __m256i *)(const void *)(t->bytes + half));
    __m256i grows = _mm256_loadu_si256((const __m256i *)(const void *)(t->grows + half));
    __m256i found = _mm256_loadu_si256((const __m256i *)(const void *)(p + half));
    __m256i expected = _mm256_add_epi8(fixed, _mm256_and_si256(grows, lens));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(found, expected));
}

TARGET TFWI_INLINE bool header_is(const tfwi_template *t, const uint8_t *p, size_t len) {
    __m256i lens = _mm256_set1_epi8((char)len);
    uint64_t equal = half_is(t, p, 0, lens) | (uint64_t)half_is(t, p, 32, lens) << 32;
    return (~equal & t->bytes_mask) == 0;
}

TARGET TFWI_INLINE uint64_t gather(uint64_t word, uint64_t mask) { return _pext_u64(word, mask); }

TARGET TFWI_INLINE size_t lowest_bit(uint64_t bits) { return (size_t)_tzcnt_u64(bits); }

TARGET TFWI_INLINE uint64_t window_ends(const uint8_t *p) {
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32);
}

#include "varint_window.h"

#include "match_loop.h"

const tfwi_kernel tfwi_kernel_avx2 = {
    .name = "avx2",
    .features = TFWI_CPU_AVX2 | TFWI_CPU_BMI2,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_varints,
};

#endif /* TFWI_X86 */
