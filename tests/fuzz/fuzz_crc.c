/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels that this machine can run give one answer, at any alignment, whole or in pieces, and
 * it is the one of the definition, bit by bit. */
#include "common/fuzz.h"

#include "base/cpu.h"
#include "crc32c/crc32c.h"

/* A byte as the polynomial says. */
static uint32_t step(uint32_t crc) {
    for (int bit = 0; bit < 8; bit++) {
        crc = crc >> 1 ^ (UINT32_C(0x82f63b78) & (0 - (crc & 1)));
    }
    return crc;
}

/* The definition, with its answer for every byte kept. */
static uint32_t crc_by_bits(uint32_t crc, const uint8_t *data, size_t len) {
    static uint32_t steps[256];
    for (uint32_t i = 0; i < 256 && steps[255] == 0; i++) {
        steps[i] = step(i);
    }
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc = crc >> 8 ^ steps[(crc ^ data[i]) & 0xff];
    }
    return ~crc;
}

static void check_kernel(const tfwi_crc32c_kernel *kernel, uint32_t initial, uint32_t expected,
                         const uint8_t *data, size_t len, size_t cut) {
    CHECK_EQ(TFW_OK, tfw_crc32c_select(kernel->name));
    CHECK_EQ(expected, tfw_crc32c(initial, data, len));
    uint32_t first = tfw_crc32c(initial, data, cut);
    CHECK_EQ(expected, tfw_crc32c(first, data + cut, len - cut));
    CHECK_EQ(expected, tfw_crc32c_combine(first, tfw_crc32c(0, data + cut, len - cut), len - cut));
    if (len >= 8) {
        CHECK_EQ(crc_by_bits(0, data, 8), kernel->crc8(data));
    }
}

static void run(input *in) {
    size_t shift = input_byte(in) % 64, cut = (size_t)input_number(in, 2);
    uint32_t initial = (uint32_t)input_number(in, 4);
    size_t times = (size_t)1 << (input_byte(in) % 8), piece = input_left(in);
    times = piece * times > 1 << 16 ? 1 : times; /* long data without a long input */
    size_t len = piece * times;
    uint8_t *block = fuzz_alloc(shift + len);
    for (size_t i = 0; i < times && piece != 0; i++) {
        memcpy(block + shift + i * piece, in->at, piece);
    }
    uint32_t expected = crc_by_bits(initial, block + shift, len);
    const tfwi_crc32c_kernel *kernel;
    for (size_t i = 0; (kernel = tfwi_crc32c_kernel_at(i)) != NULL; i++) {
        if (tfwi_cpu_has(kernel->features)) {
            check_kernel(kernel, initial, expected, block + shift, len, cut % (len + 1));
        }
    }
    CHECK_EQ(expected, tfw_crc32c_unmask(tfw_crc32c_mask(expected)));
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
    free(block);
}

FUZZ_TARGET(run)
