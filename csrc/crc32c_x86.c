/* CRC-32C on x86-64. */
#include "crc32c.h"

#ifdef TFWI_X86

#include "cpu.h"

#include <immintrin.h>

#define TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))

TARGET_SSE42 static uint32_t sse42_crc(uint32_t crc, const void *data, size_t len) {
    const uint8_t *p = data;
    uint64_t state = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        state = _mm_crc32_u64(state, tfwi_load64(p));
    }
    for (; len > 0; p++, len--) {
        state = _mm_crc32_u8((uint32_t)state, *p);
    }
    return ~(uint32_t)state;
}

TARGET_SSE42 static uint32_t sse42_crc8(const void *data) {
    return ~(uint32_t)_mm_crc32_u64(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_sse42 = {
    "sse42", TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL, sse42_crc, sse42_crc8,
};

#define FEATURES_AVX512 \
    (TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL | TFWI_CPU_BMI2 | TFWI_CPU_AVX512 | TFWI_CPU_VPCLMUL)

const tfwi_crc32c_kernel tfwi_crc32c_avx512 = {"avx512", FEATURES_AVX512, sse42_crc, sse42_crc8};

#endif
