/* CRC-32C on ARMv8. */
#include "crc32c.h"

#ifdef TFWI_ARM64

#include "cpu.h"

#include <arm_acle.h>

#ifdef __clang__
#define TARGET_ARMV8 __attribute__((target("crc,aes")))
#else
#define TARGET_ARMV8 __attribute__((target("+crc+crypto")))
#endif

TARGET_ARMV8 static uint32_t armv8_crc(uint32_t crc, const void *data, size_t len) {
    const uint8_t *p = data;
    uint32_t state = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        state = __crc32cd(state, tfwi_load64(p));
    }
    for (; len > 0; p++, len--) {
        state = __crc32cb(state, *p);
    }
    return ~state;
}

TARGET_ARMV8 static uint32_t armv8_crc8(const void *data) {
    return ~__crc32cd(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel tfwi_crc32c_armv8 = {
    "armv8", TFWI_CPU_ARM_CRC32 | TFWI_CPU_ARM_PMULL, armv8_crc, armv8_crc8,
};

#endif
