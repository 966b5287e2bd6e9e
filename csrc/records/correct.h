/* SPDX-License-Identifier: Apache-2.0 */
/* Correction of a single flipped bit, for the reader. */
#ifndef TFWIRE_CORRECT_H
#define TFWIRE_CORRECT_H

#include "records/resync.h"

/* A damaged record: it begins at data[begin] in the window data[0, end). */
typedef struct tfwi_damaged {
    const uint8_t *data;
    size_t begin;
    size_t end;
    uint64_t available; /* bytes of the input from data[begin] on; UINT64_MAX: not known */
    uint64_t max_record_size;
    tfwi_resync *resync; /* of the window */
} tfwi_damaged;

/* As tfw_correct. TFW_NEED_INPUT: call again with *needed bytes from the record's beginning on. */
int tfwi_correct(const tfwi_damaged *damaged, tfw_flip *out_flip, uint64_t *needed);

#endif /* TFWIRE_CORRECT_H */
