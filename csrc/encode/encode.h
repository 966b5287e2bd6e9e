/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages, in several calls that share what was prepared for the columns. */
#ifndef TFWIRE_ENCODE_H
#define TFWIRE_ENCODE_H

#include "encode/plans.h"

typedef struct tfwi_encoding {
    tfwi_section sections[2];
    size_t section_count;
    void *memory; /* of the plans, or NULL */
} tfwi_encoding;

/* Which records: first, first + stride, ...; and where their messages go. */
typedef struct tfwi_messages {
    size_t first;
    size_t stride;
    size_t count;
    size_t headroom;
    size_t tailroom;
    uint8_t *out;
    size_t capacity;
    tfw_span *spans;
} tfwi_messages;

/* Prepares to encode count of the first so many records as Examples. TFW_E_ARGUMENT, TFW_E_MEMORY.
 * The encoding is to be ended in any case. */
int tfwi_encoding_begin(tfwi_encoding *e, const tfw_input *inputs, size_t input_count,
                        size_t records, size_t count, tfw_error *error);
void tfwi_encoding_end(tfwi_encoding *e);

/* As tfw_encode. REQUIRES: the records are among those that were prepared for. */
int tfwi_encode(tfwi_encoding *e, const tfwi_messages *messages, size_t *out_done, size_t *out_len,
                tfw_error *error);

#endif /* TFWIRE_ENCODE_H */
