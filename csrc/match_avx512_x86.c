/* Matching with AVX-512: a header is one comparison. */
#include "columns.h"

#ifdef TFWI_X86

#include "cpu.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2")))

TARGET TFWI_INLINE bool header_is(const tfwi_template *t, const uint8_t *p, size_t len) {
    __m512i fixed = _mm512_loadu_si512(t->bytes);
    __m512i lens = _mm512_set1_epi8((char)len);
    __m512i expected = _mm512_mask_add_epi8(fixed, t->grows_mask, fixed, lens);
    return _mm512_mask_cmpneq_epi8_mask(t->bytes_mask, _mm512_loadu_si512(p), expected) == 0;
}

TARGET TFWI_INLINE uint64_t gather(uint64_t word, uint64_t mask) { return _pext_u64(word, mask); }

TARGET TFWI_INLINE size_t lowest_bit(uint64_t bits) { return (size_t)_tzcnt_u64(bits); }

TARGET TFWI_INLINE uint64_t window_ends(const uint8_t *p) {
    return ~_mm512_movepi8_mask(_mm512_loadu_si512(p));
}

#include "varint_window.h"

#include "match_loop.h"

const tfwi_kernel tfwi_kernel_avx512 = {
    .name = "avx512",
    .features = TFWI_CPU_AVX512 | TFWI_CPU_AVX2 | TFWI_CPU_BMI2,
    .entries = match_entries,
    .steps = match_steps,
    .varints = read_varints,
};

#endif /* TFWI_X86 */
