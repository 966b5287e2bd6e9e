/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers on the wire with AVX2 and BMI2: x86-64 since 2013. */
#include "encode/numbers.h"

#ifdef TFWI_X86

#include "base/cpu.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))

/* One instruction spreads the groups of seven bits, another sets the continuation bits. */
TARGET TFWI_INLINE uint8_t *put_varint(uint8_t *p, uint64_t v, size_t size) {
    uint64_t low = _pdep_u64(v, UINT64_C(0x7f7f7f7f7f7f7f7f));
    uint64_t more = _bzhi_u64(UINT64_C(0x8080808080808080), (unsigned)(8 * (size - 1)));
    uint64_t high = v >> 56;
    uint16_t last = (uint16_t)(high | high >> 7 << 8); /* bit 7 says that there is a tenth byte */
    tfwi_store64(p, low | more);
    memcpy(p + 8, &last, sizeof last);
    return p + size;
}

TARGET TFWI_INLINE void put_template(uint8_t *p, const tfwi_scalar *s, size_t len) {
    __m256i add = _mm256_set1_epi8((char)len);
    for (size_t i = 0; i < s->template_size; i += 32) {
        const void *template = (const uint8_t *)s->template + i;
        const void *to_add = (const uint8_t *)s->to_add + i;
        __m256i added = _mm256_and_si256(_mm256_loadu_si256(to_add), add);
        added = _mm256_add_epi8(_mm256_loadu_si256(template), added);
        _mm256_storeu_si256((__m256i *)(void *)(p + i), added);
    }
}

#include "encode/numbers_template.h"

const tfwi_writer tfwi_writer_avx2 = {
    .name = "avx2",
    .features = TFWI_CPU_AVX2 | TFWI_CPU_BMI2,
    .scalars = put_scalars,
    .int64s = put_int64s,
};

#endif /* TFWI_X86 */
