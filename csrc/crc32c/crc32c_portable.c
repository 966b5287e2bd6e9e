/* The kernel for any CPU. */
#include "crc32c/crc32c_portable.h"

static uint32_t portable_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

static uint32_t portable_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

/* The product without carries, from ordinary products: operands that keep one bit in four leave
 * room for the carries (at most 8 ones add up), and the last mask drops them. */
static uint64_t carryless_product(uint32_t a, uint32_t b) {
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
static uint32_t portable_multiply(uint32_t a, uint32_t b) {
    uint64_t product = carryless_product(a, b) << 1;
    return (uint32_t)(product >> 32) ^ slice4((uint32_t)product, 0);
}

const tfwi_crc32c_kernel tfwi_crc32c_portable = {
    .name = "portable",
    .features = 0,
    .crc = portable_crc,
    .crc8 = portable_crc8,
    .multiply = portable_multiply,
};
