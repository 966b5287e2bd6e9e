/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a CPU runs, and which of them it is given. */
#include "check.h"

#include "base/cpu.h"
#include "crc32c/crc32c.h"
#include "encode/numbers.h"
#include "parse/match.h"

static bool needs_wide_vectors(unsigned features) { return (features & TFWI_CPU_AVX512) != 0; }

/* The features of the best kernels. */
static unsigned best_features(void) {
    return tfwi_crc32c_kernel_best()->features | tfwi_matcher_best()->features |
           tfwi_writer_best()->features;
}

static void test_the_best_kernels_can_run(void) {
    const unsigned before = tfwi_test_cpu;
    for (unsigned hidden = 0; hidden < 2 * TFWI_CPU_AVX512_CHEAP; hidden++) {
        tfwi_test_cpu = before & ~hidden;
        CHECK(tfwi_cpu_has(best_features()));
    }
    tfwi_test_cpu = before;
}

/* Where vectors of 512 bits lower the clock, they are used only if somebody asks for them. */
static void test_wide_vectors_that_cost_are_left_to_those_who_ask(void) {
    const unsigned before = tfwi_test_cpu;
    const bool runs = tfwi_cpu_has(TFWI_CPU_AVX512 | TFWI_CPU_VPCLMUL | TFWI_CPU_BMI2);
    const bool cheap = tfwi_cpu_has(TFWI_CPU_AVX512_CHEAP);
    CHECK_EQ(runs && cheap, needs_wide_vectors(tfwi_crc32c_kernel_best()->features));
    tfwi_test_cpu &= ~(unsigned)TFWI_CPU_AVX512_CHEAP;
    CHECK(!needs_wide_vectors(best_features()));
    int status = tfw_crc32c_select("avx512");
    CHECK_EQ(runs, status == TFW_OK);
    CHECK_EQ(runs, strcmp("avx512", tfw_crc32c_kernel()) == 0);
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
    CHECK(strcmp("avx512", tfw_crc32c_kernel()) != 0);
    tfwi_test_cpu = before;
}

#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
static unsigned bit(int has, unsigned feature) { return has != 0 ? feature : 0; }

/* libgcc asks CPUID, too. */
static void test_the_compilers_library_finds_the_same(void) {
    unsigned known = 0;
    known |= bit(__builtin_cpu_supports("sse4.2"), TFWI_CPU_SSE42);
    known |= bit(__builtin_cpu_supports("pclmul"), TFWI_CPU_PCLMUL);
    known |= bit(__builtin_cpu_supports("avx2"), TFWI_CPU_AVX2);
    known |= bit(__builtin_cpu_supports("bmi2"), TFWI_CPU_BMI2);
    known |= bit(__builtin_cpu_supports("vpclmulqdq"), TFWI_CPU_VPCLMUL);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        known |= TFWI_CPU_AVX512;
        known |= bit(__builtin_cpu_supports("avx512vbmi"), TFWI_CPU_AVX512_VBMI);
        known |= bit(__builtin_cpu_supports("avx512vbmi2"), TFWI_CPU_AVX512_VBMI2);
        const bool lowers = __builtin_cpu_is("icelake-client") ||
                            __builtin_cpu_is("icelake-server") || __builtin_cpu_is("tigerlake");
        known |= bit(!lowers, TFWI_CPU_AVX512_CHEAP);
    }
    CHECK_EQ(known & tfwi_test_cpu, tfwi_cpu_features());
}
#endif

int main(void) {
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
    RUN(test_the_compilers_library_finds_the_same);
#endif
    RUN(test_the_best_kernels_can_run);
    RUN(test_wide_vectors_that_cost_are_left_to_those_who_ask);
    return check_report("cpu");
}
