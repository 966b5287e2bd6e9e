/* The kernel for SSE4.2 and PCLMULQDQ: every x86-64 server since 2010. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_sse42.h"

TARGET static uint32_t sse42_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

TARGET static uint32_t sse42_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_sse42 = {
    .name = "sse42",
    .features = TFWI_CPU_SSE42 | TFWI_CPU_PCLMUL,
    .crc = sse42_crc,
    .crc8 = sse42_crc8,
    .multiply = multiply,
};

#endif
