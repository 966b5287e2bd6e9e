/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, verifying and parsing the records of a stretch, a piece at a time. */
#ifndef TFWIRE_READ_COLUMNS_H
#define TFWIRE_READ_COLUMNS_H

#include "base/memory.h"
#include "parse/columns.h"

#include <stdatomic.h>

typedef TFWI_ARRAY(uint64_t) tfwi_offsets;
typedef TFWI_ARRAY(tfw_span) tfwi_spans;

/* What becomes of the records of a stretch, each where it is not NULL. */
typedef struct tfwi_reading {
    tfw_stretch *s;
    tfw_columns *context; /* neither, and no TFW_SEQUENCE: the records are verified only */
    tfw_columns *lists;
    unsigned flags; /* of tfw_read_columns */
    tfw_tally *tally;
    uint64_t *lengths;     /* of the shortest and the longest */
    tfwi_offsets *offsets; /* where each begins in the file */
    tfwi_spans *spans;     /* of the buffer, in which all of them stay */
    tfwi_bytes *first;     /* the payload of the first record, if none is done yet */
    const atomic_bool *stop; /* reading ends before the next piece */
    size_t piece; /* bytes read at a time; 0: what stays in the cache while it is parsed */
    size_t done;
} tfwi_reading;

/* As tfw_read_columns, up to max_records done. With spans TFW_NEED_SPACE also says that the buffer
 * is full. TFW_NEED_INPUT: it was stopped. REQUIRES: the stretch and the flags are valid. */
int tfwi_read_records(tfwi_reading *r, size_t max_records, tfw_error *error);

/* Reports that the file ends within the record at begin, which takes needed bytes and of which
 * there are so many. */
int tfwi_report_cut(const tfw_stretch *s, uint64_t needed, uint64_t there, size_t record,
                    tfw_error *error);

#endif /* TFWIRE_READ_COLUMNS_H */
