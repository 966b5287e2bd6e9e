/* Correction of a single flipped bit, for the reader. */
#ifndef TFWIRE_CORRECT_H
#define TFWIRE_CORRECT_H

#include "records/resync.h"

/* A damaged record: it begins at data[begin] in the window data[0, end), behind which the input
 * has available - (end - begin) more bytes as far as known (UINT64_MAX: not known). */
typedef struct tfwi_damaged {
    const uint8_t *data;
    size_t begin;
    size_t end;
    uint64_t available; /* from data[begin] on */
    uint64_t max_record_size;
    tfwi_resync *resync; /* of the window */
} tfwi_damaged;

/* As tfw_correct, which describes the results; TFW_NEED_INPUT: *needed bytes from the record's
 * beginning on tell more. */
int tfwi_correct(const tfwi_damaged *damaged, tfw_flip *out_flip, uint64_t *needed);

#endif /* TFWIRE_CORRECT_H */
