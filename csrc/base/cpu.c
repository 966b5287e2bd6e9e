/* SPDX-License-Identifier: Apache-2.0 */
/* CPU features by CPUID, Linux's hwcap, or macOS's sysctl. */
#include "base/cpu.h"

#if defined(TFWI_X86)

/* Whether vectors of 512 bits leave the clock of the CPU alone. On Ice Lake and Tiger Lake they
 * lower it for some time, also for a program that reads records only now and then: libdeflate uses
 * none there. (Skylake, Cascade Lake and Cooper Lake lower it more, but have neither VPCLMULQDQ nor
 * VBMI2, which our kernels need.) */
static bool wide_vectors_are_cheap(void) {
    return !__builtin_cpu_is("icelake-client") && !__builtin_cpu_is("icelake-server") &&
           !__builtin_cpu_is("tigerlake");
}

static unsigned detected_avx512(void) {
    unsigned features = 0;
#ifndef __APPLE__ /* where interrupts have lost the mask registers; libdeflate does without, too */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        features |= TFWI_CPU_AVX512;
        features |= __builtin_cpu_supports("avx512vbmi") ? TFWI_CPU_AVX512_VBMI : 0;
        features |= __builtin_cpu_supports("avx512vbmi2") ? TFWI_CPU_AVX512_VBMI2 : 0;
        features |= wide_vectors_are_cheap() ? TFWI_CPU_AVX512_CHEAP : 0;
    }
#endif
    return features;
}

/* The compiler's run-time library has asked CPUID before main, and XCR0 whether the operating
 * system saves the AVX and AVX-512 registers. */
static unsigned detected(void) {
    unsigned features = detected_avx512();
    features |= __builtin_cpu_supports("sse4.2") ? TFWI_CPU_SSE42 : 0;
    features |= __builtin_cpu_supports("pclmul") ? TFWI_CPU_PCLMUL : 0;
    features |= __builtin_cpu_supports("avx2") ? TFWI_CPU_AVX2 : 0;
    features |= __builtin_cpu_supports("bmi2") ? TFWI_CPU_BMI2 : 0;
    features |= __builtin_cpu_supports("vpclmulqdq") ? TFWI_CPU_VPCLMUL : 0;
    return features;
}

#elif defined(TFWI_ARM64) && defined(__linux__)

#include <sys/auxv.h>

/* Bits of AT_HWCAP: part of the kernel's interface, not in the headers of every libc. */
enum { HWCAP_BIT_ASIMD = 1 << 1, HWCAP_BIT_PMULL = 1 << 4, HWCAP_BIT_CRC32 = 1 << 7 };

static unsigned detected(void) {
    unsigned long hwcap = getauxval(AT_HWCAP);
    unsigned features = 0;
    features |= (hwcap & HWCAP_BIT_CRC32) != 0 ? TFWI_CPU_ARM_CRC32 : 0;
    features |= (hwcap & HWCAP_BIT_PMULL) != 0 ? TFWI_CPU_ARM_PMULL : 0;
    features |= (hwcap & HWCAP_BIT_ASIMD) != 0 ? TFWI_CPU_ARM_NEON : 0;
    return features;
}

#elif defined(TFWI_ARM64) && defined(__APPLE__)

#include <sys/sysctl.h>
#include <sys/types.h>

static bool has(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}

static unsigned detected(void) {
    unsigned features = TFWI_CPU_ARM_NEON;
    features |= has("hw.optional.armv8_crc32") ? TFWI_CPU_ARM_CRC32 : 0;
    features |= has("hw.optional.arm.FEAT_PMULL") ? TFWI_CPU_ARM_PMULL : 0;
    return features;
}

#else

static unsigned detected(void) { return 0; }

#endif

#ifdef TFW_TEST_FAULTS
unsigned tfwi_test_cpu = ~0u; /* a test may hide features */

unsigned tfwi_cpu_features(void) { return detected() & tfwi_test_cpu; }
#else
unsigned tfwi_cpu_features(void) { return detected(); }
#endif
