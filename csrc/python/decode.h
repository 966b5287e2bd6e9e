/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a schema: what they hold, as flat arrays, before it becomes objects. */
#ifndef TFWIRE_DECODE_H
#define TFWIRE_DECODE_H

#include "parse/parse.h"
#include "tfwire_python.h"
#include "wire/message.h"

#define TFWI_STEPS (TFW_INT64 + 1) /* the kind of a feature list */

/* An entry of a map, or a step of a feature list, which follows its entry. Where its values are, in
 * the array of its kind; of a feature list, its steps in the array of values. */
typedef struct tfwi_value {
    const uint8_t *key; /* in the message */
    size_t key_len;
    int32_t kind; /* TFW_NONE: a Feature without one */
    size_t begin;
    size_t end;
} tfwi_value;

/* Decoded messages. All zeros at first; later calls use the memory again. */
typedef struct tfwi_decoded {
    TFWI_ARRAY(tfwi_value) values;
    TFWI_ARRAY(tfw_span) strings; /* addresses in the messages */
    TFWI_ARRAY(float) floats;
    tfwi_int64s int64s;
    TFWI_ARRAY(size_t) ends; /* of each message in values; with TFW_SEQUENCE also of its context */
    /* While a message is decoded: */
    tfwi_value value;
    tfwi_blocks blocks;
    tfwi_fault fault;
} tfwi_decoded;

/* Decodes every feature of every message. Flags: TFW_ADDRESSES, TFW_SEQUENCE. A key may occur
 * several times: the last one counts. TFW_E_WIRE, TFW_E_MEMORY. */
int tfwi_decode(tfwi_decoded *d, const tfwi_messages *messages, size_t count, unsigned flags,
                tfw_error *error);

/* Frees the memory. */
void tfwi_decoded_clear(tfwi_decoded *d);

#endif /* TFWIRE_DECODE_H */
