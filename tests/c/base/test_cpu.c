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

int main(void) {
    RUN(test_the_best_kernels_can_run);
    RUN(test_wide_vectors_that_cost_are_left_to_those_who_ask);
    return check_report("cpu");
}
