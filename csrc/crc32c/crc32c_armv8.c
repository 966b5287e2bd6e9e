/* The kernel for ARMv8's CRC32 and PMULL. */
#include "base/common.h"

#ifdef TFWI_ARM64

#include "crc32c/crc32c_armv8.h"

TARGET static uint32_t armv8_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

TARGET static uint32_t armv8_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_armv8 = {
    .name = "armv8",
    .features = TFWI_CPU_ARM_CRC32 | TFWI_CPU_ARM_PMULL,
    .crc = armv8_crc,
    .crc8 = armv8_crc8,
    .multiply = multiply,
};

#endif
