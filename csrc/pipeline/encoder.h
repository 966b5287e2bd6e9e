/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages by several threads: what its files share. */
#ifndef TFWIRE_ENCODER_H
#define TFWIRE_ENCODER_H

#include "encode/encode.h"
#include "pipeline/pool.h"

enum { TFWI_ENCODE_RANGE = 1 << 20 }; /* bytes of a block, about */

/* Records of columns. */
typedef struct tfwi_rows {
    const tfw_input *inputs;
    size_t input_count;
    size_t records; /* that the inputs have */
    size_t first;   /* of those that are wanted */
    size_t stride;
    size_t count;
} tfwi_rows;

/* Adds records to a block, in pieces that stay in the second-level cache while frames and totals
 * are made of them. It ends early when the block has most bytes; *out_done records were added. */
int tfwi_block_encode(tfwi_block *block, const tfwi_rows *rows, size_t most, unsigned flags,
                      size_t *out_done, tfw_error *error);

/* A chunk of a block, which it takes over; NULL: out of memory, and the block is the caller's. */
tfw_chunk *tfwi_chunk_of(tfwi_block *block);

#endif /* TFWIRE_ENCODER_H */
