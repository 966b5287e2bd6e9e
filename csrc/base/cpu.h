/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU and its operating system can do. */
#ifndef TFWIRE_CPU_H
#define TFWIRE_CPU_H

#include "base/common.h"

enum {
    TFWI_CPU_SSE42 = 1u << 0, /* SSE4.2 with its CRC-32C instruction */
    TFWI_CPU_PCLMUL = 1u << 1,
    TFWI_CPU_AVX2 = 1u << 2,
    TFWI_CPU_BMI2 = 1u << 3,
    TFWI_CPU_AVX512 = 1u << 4, /* F, BW, DQ and VL */
    TFWI_CPU_AVX512_VBMI = 1u << 5,
    TFWI_CPU_AVX512_VBMI2 = 1u << 6,
    TFWI_CPU_VPCLMUL = 1u << 7,
    TFWI_CPU_ARM_CRC32 = 1u << 8,
    TFWI_CPU_ARM_PMULL = 1u << 9,
    TFWI_CPU_ARM_NEON = 1u << 10,
    TFWI_CPU_AVX512_CHEAP = 1u << 11 /* its vectors of 512 bits do not lower the clock */
};

/* The TFWI_CPU_ bits that may be used. A few loads; call it once per batch, not once per value. */
unsigned tfwi_cpu_features(void);

/* Whether all of these may be used. */
TFWI_INLINE bool tfwi_cpu_has(unsigned features) {
    return (features & ~tfwi_cpu_features()) == 0;
}

/* The same, and that they should be. */
TFWI_INLINE bool tfwi_cpu_prefers(unsigned features) {
    const bool wide = (features & TFWI_CPU_AVX512) != 0;
    return tfwi_cpu_has(features | (wide ? TFWI_CPU_AVX512_CHEAP : 0));
}

#endif /* TFWIRE_CPU_H */
