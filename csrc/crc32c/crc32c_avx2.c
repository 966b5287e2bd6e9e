/* The kernel for AVX2 and VPCLMULQDQ without AVX-512: AMD since Zen 3, Intel since Alder Lake. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_avx2.h"

TARGET static uint32_t avx2_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

TARGET static uint32_t avx2_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_avx2 = {
    .name = "avx2",
    .features = TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL | TFWI_CPU_AVX2 | TFWI_CPU_VPCLMUL,
    .crc = avx2_crc,
    .crc8 = avx2_crc8,
    .multiply = multiply,
};

#endif
