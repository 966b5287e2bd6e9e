/* SPDX-License-Identifier: Apache-2.0 */
/* Packed floats, in and out. */
#include "proto.h"
#include "wire/floats.h"

static void test_floats_keep_their_bits(void) {
    const uint32_t bits[] = {0x3f800000, 0x7fc12345, 0xff800001, 0x80000000, 0};
    uint8_t block[1 + sizeof bits];
    uint32_t out[COUNT(bits)];
    for (size_t i = 0; i < COUNT(bits); i++) {
        tfwi_store32(block + 1 + 4 * i, bits[i]);
    }
    tfwi_load_floats(out, block + 1, COUNT(bits));
    CHECK(memcmp(bits, out, sizeof bits) == 0);
    tfwi_load_floats(NULL, NULL, 0);
    uint8_t stored[1 + sizeof bits] = {0};
    tfwi_store_floats(stored + 1, out, COUNT(bits));
    CHECK(memcmp(block + 1, stored + 1, sizeof bits) == 0);
}

int main(void) {
    RUN(test_floats_keep_their_bits);
    return check_report("floats");
}
