/* SPDX-License-Identifier: Apache-2.0 */
/* Template: CRC-32C by folding, for vectors of any width. A kernel's header includes it once, after
 * it has defined
 *
 *     TARGET                     the function attribute that allows its instructions
 *     vec, VEC_SIZE              lanes of 16 bytes side by side; bytes in all
 *     vec_load(p)                VEC_SIZE bytes
 *     vec_state(state)           in the first 4 bytes the register, the others 0
 *     vec_product(a, b)          in the first lane the carry-less product, the others 0
 *     vec_add(x, y)              x + y, which is XOR
 *     vec_factors(first, second) two factors of crc32c_tables.h, in every lane
 *     vec_fold(x, factors, y)    every lane of x carried over the factors' distance, plus y
 *     vec_low(x)                 the first 8 bytes
 *     vec_sum(a, b, c, d)        what four vectors do to a register of 0
 *     crc_word(state, word)      the register after 8 more bytes
 *     BLOCK_ROWS, STREAM_WORDS, BLOCK_FOLD, STREAM_FACTORS    from crc32c_tables.h
 *
 * A row is four vectors. What precedes a row is carried to it: multiplied by the power of x for
 * the distance, reduced until it fits, and added. Odd bytes come before the rows, so that the rows
 * end where the data end and there is no tail.
 *
 * A block, which pays for long data, is
 *
 *     | BLOCK_ROWS rows | stream | stream | stream |     each stream STREAM_WORDS words per row
 *
 * whose rows are folded while the streams go through the crc32 instruction, which many CPUs run
 * in parallel with carry-less products. At the end of a block, the results of the streams are added
 * to its last row, times the negative power of x that cancels what the next fold multiplies by when
 * it carries the row over the streams.
 */

enum {
    ROW_SIZE = 4 * VEC_SIZE,
    ROWS_SIZE = BLOCK_ROWS * ROW_SIZE,
    STREAM_SIZE = BLOCK_ROWS * STREAM_WORDS * 8,
    BLOCK_SIZE = ROWS_SIZE + 3 * STREAM_SIZE
};

typedef struct row {
    vec a, b, c, d;
} row;

/* The row at p, to which x is carried. */
TARGET TFWI_INLINE row next_row(row x, vec factors, const uint8_t *p) {
    x.a = vec_fold(x.a, factors, vec_load(p));
    x.b = vec_fold(x.b, factors, vec_load(p + VEC_SIZE));
    x.c = vec_fold(x.c, factors, vec_load(p + 2 * VEC_SIZE));
    x.d = vec_fold(x.d, factors, vec_load(p + 3 * VEC_SIZE));
    return x;
}

/* The last row of the block at p, streams included; x is carried to the first by factors. */
TARGET TFWI_INLINE row next_block(row x, vec factors, const uint8_t *p) {
    const vec to_next = vec_factors(FOLD_OVER(ROW_SIZE));
    const uint8_t *words = p + ROWS_SIZE;
    uint32_t s0 = 0, s1 = 0, s2 = 0;
    for (size_t i = 0; i < BLOCK_ROWS; i++, p += ROW_SIZE) {
        x = next_row(x, factors, p);
        factors = to_next;
        for (size_t k = 0; k < STREAM_WORDS; k++, words += 8) {
            s0 = crc_word(s0, tfwi_load64(words));
            s1 = crc_word(s1, tfwi_load64(words + STREAM_SIZE));
            s2 = crc_word(s2, tfwi_load64(words + 2 * STREAM_SIZE));
        }
    }
    x.a = vec_add(x.a, vec_product(s0, STREAM_FACTORS[0]));
    x.a = vec_add(x.a, vec_product(s1, STREAM_FACTORS[1]));
    x.a = vec_add(x.a, vec_product(s2, STREAM_FACTORS[2]));
    return x;
}

/* The register after x, which is carried to p by factors, num_blocks blocks at p and num_rows rows.
 * REQUIRES: num_rows >= 1. */
TARGET TFWI_INLINE uint32_t fold(row x, vec factors, const uint8_t *p, size_t num_blocks,
                                 size_t num_rows) {
    for (; num_blocks > 0; num_blocks--, p += BLOCK_SIZE) {
        x = next_block(x, factors, p);
        factors = vec_factors(&BLOCK_FOLD[0], &BLOCK_FOLD[1]);
    }
    x = next_row(x, factors, p);
    factors = vec_factors(FOLD_OVER(ROW_SIZE));
    for (num_rows--, p += ROW_SIZE; num_rows > 0; num_rows--, p += ROW_SIZE) {
        x = next_row(x, factors, p);
    }
    return vec_sum(x.a, x.b, x.c, x.d);
}

/* Of the product, whose 63 bits one shift aligns, the low half holds the high powers: 4 message
 * bytes, before which zeros change nothing. */
TARGET TFWI_INLINE uint32_t multiply_mod(uint32_t a, uint32_t b) {
    uint64_t product = vec_low(vec_product(a, b)) << 1;
    return (uint32_t)(product >> 32) ^ crc_word(0, product << 32);
}
