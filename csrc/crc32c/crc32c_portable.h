/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C on any CPU: 16 bytes at a time by table ("slicing"). Inline, for the kernel and for the
 * record scanner. */
#ifndef TFWIRE_CRC32C_PORTABLE_H
#define TFWIRE_CRC32C_PORTABLE_H

#include "crc32c/crc32c_names_template.h"
#include "crc32c/crc32c_tables.h"

#define KERNEL portable
#define FEATURES 0u
#define TARGET

/* What four bytes do to the register when k more follow them. */
TFWI_INLINE uint32_t slice4(uint32_t bytes, size_t k) {
    return slices[k + 3][bytes & 0xff] ^ slices[k + 2][(bytes >> 8) & 0xff] ^
           slices[k + 1][(bytes >> 16) & 0xff] ^ slices[k][bytes >> 24];
}

/* What eight bytes do when k more follow them. */
TFWI_INLINE uint32_t slice8(uint32_t state, uint64_t bytes, size_t k) {
    return slice4(state ^ (uint32_t)bytes, k + 4) ^ slice4((uint32_t)(bytes >> 32), k);
}

TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) { return slice8(state, word, 0); }

TFWI_INLINE uint32_t crc_bytes(uint32_t state, const uint8_t *p, size_t len) {
    for (; len >= 16; p += 16, len -= 16) {
        state = slice8(state, tfwi_load64(p), 8) ^ slice8(0, tfwi_load64(p + 8), 0);
    }
    if (len >= 8) {
        state = crc_word(state, tfwi_load64(p));
        p += 8;
        len -= 8;
    }
    for (; len > 0; p++, len--) {
        state = (state >> 8) ^ slices[0][(state ^ *p) & 0xff];
    }
    return state;
}

/* The product without carries, from ordinary products: operands that keep one bit in four leave
 * room for the carries (at most 8 ones add up), and the last mask drops them. */
TFWI_INLINE uint64_t carryless_product(uint32_t a, uint32_t b) {
    const uint64_t every_fourth = UINT64_C(0x1111111111111111);
    uint64_t product = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < 4; i++) {
            sum ^= (a & (every_fourth << i)) * (b & (every_fourth << ((k - i) & 3)));
        }
        product |= sum & (every_fourth << k);
    }
    return product;
}

/* a * b mod P. The product has 63 bits, reflected: one shift aligns it. Its high powers, in the
 * low half, are reduced as four message bytes would be. */
TFWI_INLINE uint32_t multiply_mod(uint32_t a, uint32_t b) {
    uint64_t product = carryless_product(a, b) << 1;
    return (uint32_t)(product >> 32) ^ slice4((uint32_t)product, 0);
}

#endif /* TFWIRE_CRC32C_PORTABLE_H */
