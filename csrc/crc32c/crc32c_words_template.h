/* SPDX-License-Identifier: Apache-2.0 */
/* Template: CRC-32C with an instruction that takes in 8 bytes, for x86-64 and ARMv8. A kernel's
 * header includes it after crc32c_fold_template.h, with the same definitions.
 *
 * The instruction has a latency of about 3 cycles, but one can begin in every cycle. With short
 * data the checksums of several records overlap. Longer data are three streams, joined at the end;
 * still longer data are folded as well. */

enum {
    SERIAL_LIMIT = 192, /* from here on, three streams */
    FOLD_LIMIT = 1120 /* from here on, blocks: one of them alone takes longer than three streams */
};

_Static_assert(FOLD_LIMIT >= ROW_SIZE + BLOCK_SIZE, "streams_and_blocks needs a row and a block");
_Static_assert(FOLD_LIMIT / 24 * 2 < NUM_WORD_FACTORS, "three_streams needs larger factors");

/* At most 7 bytes as a word. */
TFWI_INLINE uint64_t load_part(const uint8_t *p, size_t len) {
    if (len >= 4) {
        return tfwi_load32(p) | (uint64_t)tfwi_load32(p + len - 4) << (8 * (len - 4));
    }
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++) {
        word |= (uint64_t)p[i] << (8 * i);
    }
    return word;
}

/* The register after the first len bytes of a word. REQUIRES: len < 8. They are moved to its end,
 * as zeros before them change nothing; the part of the register that they do not reach remains. */
TARGET TFWI_INLINE uint32_t crc_part(uint32_t state, uint64_t word, size_t len) {
    uint64_t moved = (word ^ state) << (63 - 8 * len) << 1;
    return crc_word(0, moved) ^ (uint32_t)((uint64_t)state >> (8 * len));
}

TARGET TFWI_INLINE uint32_t serial(uint32_t state, const uint8_t *p, size_t len) {
    const uint8_t *end = p + len;
    size_t odd = len % 8;
    state = crc_part(state, len >= 8 ? tfwi_load64(p) : load_part(p, odd), odd);
    for (p += odd; p != end; p += 8) {
        state = crc_word(state, tfwi_load64(p));
    }
    return state;
}

/* REQUIRES: len < FOLD_LIMIT. */
TARGET TFWI_NOINLINE static uint32_t three_streams(uint32_t state, const uint8_t *p, size_t len) {
    size_t num_words = len / 24, size = 8 * num_words, odd = len % 24;
    uint32_t s0 = serial(state, p, odd), s1 = 0, s2 = 0;
    p += odd;
    for (const uint8_t *end = p + size; p != end; p += 8) {
        s0 = crc_word(s0, tfwi_load64(p));
        s1 = crc_word(s1, tfwi_load64(p + size));
        s2 = crc_word(s2, tfwi_load64(p + 2 * size));
    }
    vec carried = vec_add(vec_product(s0, word_factors[2 * num_words]),
                          vec_product(s1, word_factors[num_words]));
    return crc_word(0, vec_low(carried)) ^ s2;
}

/* Odd bytes first, then whole blocks, then the one row that folding ends with. */
TARGET TFWI_NOINLINE static uint32_t streams_and_blocks(uint32_t state, const uint8_t *p,
                                                        size_t len) {
    size_t odd = (len - ROW_SIZE) % BLOCK_SIZE;
    state = three_streams(state, p, odd);
    vec zero = vec_state(0);
    row x = {vec_state(state), zero, zero, zero};
    return fold(x, vec_factors(FOLD_OVER(0)), p + odd, (len - ROW_SIZE) / BLOCK_SIZE, 1);
}

TARGET TFWI_INLINE uint32_t crc_bytes(uint32_t state, const uint8_t *p, size_t len) {
    if (len < SERIAL_LIMIT) {
        return serial(state, p, len);
    }
    return len < FOLD_LIMIT ? three_streams(state, p, len) : streams_and_blocks(state, p, len);
}
