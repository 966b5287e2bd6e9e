/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C with ARMv8's CRC32 and PMULL.
 * Inline, for the kernel and for the record scanner. */
#ifndef TFWIRE_CRC32C_ARMV8_H
#define TFWIRE_CRC32C_ARMV8_H

#include "crc32c/crc32c_tables.h"

#include <arm_acle.h>
#include <arm_neon.h>

#include "crc32c/crc32c_names_template.h"

#define KERNEL armv8
#define FEATURES (TFWI_CPU_ARM_CRC32 | TFWI_CPU_ARM_PMULL)
#ifdef __clang__
#define TARGET __attribute__((target("crc,aes")))
#define CRC32CD __builtin_arm_crc32cd /* an old arm_acle.h has it only if all CPUs do */
#else
#define TARGET __attribute__((target("+crc+crypto")))
#define CRC32CD __crc32cd
#endif
#define VEC_SIZE 16
#define BLOCK_ROWS BLOCK_ROWS_16
#define STREAM_WORDS STREAM_WORDS_16
#define BLOCK_FOLD block_fold_16
#define STREAM_FACTORS stream_factors_16

typedef uint64x2_t vec;

TARGET TFWI_INLINE vec vec_load(const uint8_t *p) { return vreinterpretq_u64_u8(vld1q_u8(p)); }

TARGET TFWI_INLINE vec vec_state(uint32_t state) {
    return vcombine_u64(vcreate_u64(state), vcreate_u64(0));
}

TARGET TFWI_INLINE vec vec_product(uint32_t a, uint32_t b) {
    return vreinterpretq_u64_p128(vmull_p64(a, b));
}

TARGET TFWI_INLINE uint64_t vec_low(vec x) { return vgetq_lane_u64(x, 0); }

TARGET TFWI_INLINE vec vec_add(vec x, vec y) { return veorq_u64(x, y); }

TARGET TFWI_INLINE vec vec_factors(const uint64_t *first, const uint64_t *second) {
    return vcombine_u64(vld1_u64(first), vld1_u64(second));
}

TARGET TFWI_INLINE vec vec_fold(vec x, vec factors, vec y) {
    poly64x2_t px = vreinterpretq_p64_u64(x), pf = vreinterpretq_p64_u64(factors);
    poly128_t low = vmull_p64(vgetq_lane_p64(px, 0), vgetq_lane_p64(pf, 0));
    poly128_t high = vmull_high_p64(px, pf);
    return vec_add(vec_add(vreinterpretq_u64_p128(low), y), vreinterpretq_u64_p128(high));
}

TARGET TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) {
    return CRC32CD(state, word);
}

TARGET TFWI_INLINE uint32_t vec_lane_sum(vec x) {
    return crc_word(crc_word(0, vgetq_lane_u64(x, 0)), vgetq_lane_u64(x, 1));
}

TARGET TFWI_INLINE uint32_t vec_sum(vec a, vec b, vec c, vec d) {
    vec sum = vec_fold(c, vec_factors(FOLD_OVER(16)), d);
    sum = vec_fold(b, vec_factors(FOLD_OVER(32)), sum);
    return vec_lane_sum(vec_fold(a, vec_factors(FOLD_OVER(48)), sum));
}

#include "crc32c/crc32c_fold_template.h"

#include "crc32c/crc32c_words_template.h"

#endif /* TFWIRE_CRC32C_ARMV8_H */
