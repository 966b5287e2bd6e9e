/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers on the wire with NEON: every ARM64. */
#include "encode/numbers.h"

#ifdef TFWI_ARM64

#include "base/cpu.h"

#include <arm_neon.h>

#define TARGET
#define put_varint tfwi_put_varint

TFWI_INLINE void put_template(uint8_t *p, const tfwi_scalar *s, size_t len) {
    const uint8_t *template = (const uint8_t *)s->template, *to_add = (const uint8_t *)s->to_add;
    const uint8_t *end = template + s->template_size;
    uint8x16_t add = vdupq_n_u8((uint8_t)len);
    for (; template < end; template += 32, to_add += 32, p += 32) {
        uint8x16_t low = vandq_u8(vld1q_u8(to_add), add);
        uint8x16_t high = vandq_u8(vld1q_u8(to_add + 16), add);
        low = vaddq_u8(vld1q_u8(template), low);
        high = vaddq_u8(vld1q_u8(template + 16), high);
        vst1q_u8(p, low);
        vst1q_u8(p + 16, high);
    }
}

#include "encode/numbers_template.h"

/* The low 56 bits of two values, seven to a byte. As tfwi_spread_sevens, but bits that were moved
 * too far are cleared only at the end. */
TFWI_INLINE uint64x2_t spread_two(uint64x2_t v) {
    v = vbslq_u64(vdupq_n_u64(UINT64_C(0xffffffff)), v, vshlq_n_u64(v, 4));
    v = vbslq_u64(vdupq_n_u64(UINT64_C(0x0000ffff0000ffff)), v, vshlq_n_u64(v, 2));
    v = vbslq_u64(vdupq_n_u64(UINT64_C(0x00ff00ff00ff00ff)), v, vshlq_n_u64(v, 1));
    return vandq_u64(v, vdupq_n_u64(UINT64_C(0x7f7f7f7f7f7f7f7f)));
}

/* Writes a varint of which the first eight bytes are spread. */
TFWI_INLINE uint8_t *put_spread(uint8_t *p, uint64_t v, uint64_t spread) {
    return tfwi_put_spread(p, v, tfwi_varint_size(v), spread);
}

TFWI_INLINE uint8_t *put_two(uint8_t *p, uint64x2_t v) {
    uint64x2_t spread = spread_two(v);
    p = put_spread(p, vgetq_lane_u64(v, 0), vgetq_lane_u64(spread, 0));
    return put_spread(p, vgetq_lane_u64(v, 1), vgetq_lane_u64(spread, 1));
}

/* Whether each of eight values takes one byte. */
TFWI_INLINE bool are_short(const uint64x2_t v[4]) {
    uint64x2_t any = vorrq_u64(vorrq_u64(v[0], v[1]), vorrq_u64(v[2], v[3]));
    return (vgetq_lane_u64(any, 0) | vgetq_lane_u64(any, 1)) < 0x80;
}

/* Values below 2^32, eight at once: a byte of each. */
TFWI_INLINE uint8_t *put_short(uint8_t *p, const uint64x2_t v[4]) {
    uint32x4_t low = vcombine_u32(vmovn_u64(v[0]), vmovn_u64(v[1]));
    uint32x4_t high = vcombine_u32(vmovn_u64(v[2]), vmovn_u64(v[3]));
    vst1_u8(p, vmovn_u16(vcombine_u16(vmovn_u32(low), vmovn_u32(high))));
    return p + 8;
}

static uint8_t *put_blocks(const void *values, size_t count, uint8_t *p) {
    const uint8_t *from = values;
    for (; count >= 8; count -= 8, from += 64) {
        uint64x2_t v[4];
        memcpy(v, from, sizeof v);
        if (are_short(v)) {
            p = put_short(p, v);
            continue;
        }
        for (size_t i = 0; i < 4; i++) {
            p = put_two(p, v[i]);
        }
    }
    return put_int64s(from, count, p);
}

const tfwi_writer tfwi_writer_neon = {
    .name = "neon",
    .features = TFWI_CPU_ARM_NEON,
    .scalars = put_scalars,
    .int64s = put_blocks,
};

#endif /* TFWI_ARM64 */
