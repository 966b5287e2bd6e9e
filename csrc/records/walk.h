/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over headers, which are verified. Payloads are not, and those longer than a page are not
 * even read. */
#ifndef TFWIRE_WALK_H
#define TFWIRE_WALK_H

#include "base/common.h"

enum { TFWI_LEAPT_RECORD = 4096 }; /* from this size on a read costs less than the bytes it saves */

typedef struct tfwi_walk {
    int fd;
    uint64_t end;             /* the file's */
    uint64_t limit;           /* no record is looked for from there on */
    uint64_t max_record_size; /* 0: no limit */
    uint64_t offset;          /* of the next record */
    uint64_t first;           /* number of offsets[0] */
    uint8_t *buffer;
    size_t buffer_len; /* TFW_HEADER_SIZE at least */
    int64_t *offsets;  /* where records begin: count of them are written */
    size_t capacity;
    size_t count;
    uint64_t last_size; /* bytes of the last record that its window did not hold whole */
} tfwi_walk;

/* As tfw_walk; TFW_END: offset is limit or more. REQUIRES: offset <= limit <= end <= INT64_MAX. */
int tfwi_walk_on(tfwi_walk *walk, tfw_error *error);

#endif /* TFWIRE_WALK_H */
