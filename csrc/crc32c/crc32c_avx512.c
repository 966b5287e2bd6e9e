/* The kernel for AVX-512 and VPCLMULQDQ: Intel since Ice Lake, AMD since Zen 4. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_avx512.h"

TARGET static uint32_t avx512_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

TARGET static uint32_t avx512_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_avx512 = {
    .name = "avx512",
    .features = TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL | TFWI_CPU_BMI2 | TFWI_CPU_AVX512 |
                TFWI_CPU_VPCLMUL,
    .crc = avx512_crc,
    .crc8 = avx512_crc8,
    .multiply = multiply,
};

#endif
