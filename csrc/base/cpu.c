/* SPDX-License-Identifier: Apache-2.0 */
/* CPU features by CPUID, or what Linux, macOS and Windows say of ARM. */
#include "base/cpu.h"

#if defined(TFWI_X86)

#include <cpuid.h>

/* Registers that the operating system saves: bits of XCR0. */
enum { XCR0_AVX = 0x06, XCR0_AVX512 = 0xe6 };

/* Bits of CPUID: leaf 1 in ECX, leaf 7 in EBX and in ECX. */
enum { LEAF1_PCLMUL = 1 << 1, LEAF1_SSE42 = 1 << 20, LEAF1_OSXSAVE = 1 << 27 };
enum { LEAF7_AVX2 = 1 << 5, LEAF7_BMI2 = 1 << 8 };
#define LEAF7_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
enum { LEAF7_VBMI = 1 << 1, LEAF7_VBMI2 = 1 << 6, LEAF7_VPCLMUL = 1 << 10 };

static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Whether vectors of 512 bits leave the clock of the CPU alone. On Ice Lake and Tiger Lake they
 * lower it for some time, also for a program that reads records only now and then: libdeflate uses
 * none there. (Skylake, Cascade Lake and Cooper Lake lower it more, but have neither VPCLMULQDQ nor
 * VBMI2, which our kernels need.) */
static bool wide_vectors_are_cheap(unsigned signature) {
    static const unsigned char models[] = {0x6a, 0x6c, 0x7d, 0x7e, 0x9d, 0x8c, 0x8d};
    const unsigned family = signature >> 8 & 15;
    const unsigned model = (signature >> 4 & 15) | (signature >> 12 & 0xf0);
    for (size_t i = 0; family == 6 && i < sizeof models; i++) {
        if (model == models[i]) {
            return false;
        }
    }
    return true;
}

/* By CPUID itself: __builtin_cpu_supports finds nothing with the run-time library of zig. */
static unsigned asked(void) {
    unsigned signature, eax, ebx, ecx, edx, features = 0;
    if (!__get_cpuid(1, &signature, &ebx, &ecx, &edx)) {
        return 0;
    }
    const unsigned saved = (ecx & LEAF1_OSXSAVE) != 0 ? saved_registers() : 0;
    features |= (ecx & LEAF1_SSE42) != 0 ? TFWI_CPU_SSE42 : 0;
    features |= (ecx & LEAF1_PCLMUL) != 0 ? TFWI_CPU_PCLMUL : 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        return features;
    }
    features |= (ebx & LEAF7_BMI2) != 0 ? TFWI_CPU_BMI2 : 0;
    if ((saved & XCR0_AVX) == XCR0_AVX) {
        features |= (ebx & LEAF7_AVX2) != 0 ? TFWI_CPU_AVX2 : 0;
        features |= (ecx & LEAF7_VPCLMUL) != 0 ? TFWI_CPU_VPCLMUL : 0;
    }
#ifndef __APPLE__ /* where interrupts have lost the mask registers; libdeflate does without, too */
    if ((saved & XCR0_AVX512) == XCR0_AVX512 && (ebx & LEAF7_AVX512) == LEAF7_AVX512) {
        features |= TFWI_CPU_AVX512;
        features |= (ecx & LEAF7_VBMI) != 0 ? TFWI_CPU_AVX512_VBMI : 0;
        features |= (ecx & LEAF7_VBMI2) != 0 ? TFWI_CPU_AVX512_VBMI2 : 0;
        features |= wide_vectors_are_cheap(signature) ? TFWI_CPU_AVX512_CHEAP : 0;
    }
#endif
    return features;
}

/* Asked once, before main or while the library is loaded: a virtual machine takes microseconds. */
static unsigned found;

__attribute__((constructor)) static void ask(void) { found = asked(); }

static unsigned detected(void) { return found; }

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

#elif defined(TFWI_ARM64) && defined(_WIN32)

#include <windows.h>

/* PF_ARM_V8_CRYPTO_INSTRUCTIONS_AVAILABLE and the next, which older headers lack. */
enum { FEATURE_CRYPTO = 30, FEATURE_CRC32 = 31 };

static unsigned detected(void) {
    unsigned features = TFWI_CPU_ARM_NEON;
    features |= IsProcessorFeaturePresent(FEATURE_CRC32) ? TFWI_CPU_ARM_CRC32 : 0;
    features |= IsProcessorFeaturePresent(FEATURE_CRYPTO) ? TFWI_CPU_ARM_PMULL : 0;
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
