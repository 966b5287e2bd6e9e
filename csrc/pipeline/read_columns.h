/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, verifying and parsing the records of a stretch, a piece at a time. */
#ifndef TFWIRE_READ_COLUMNS_H
#define TFWIRE_READ_COLUMNS_H

#include "base/memory.h"
#include "parse/columns.h"
#include "tfwire_pipeline.h"

#include <stdatomic.h>

typedef TFWI_ARRAY(uint64_t) tfwi_offsets;
typedef TFWI_ARRAY(tfw_span) tfwi_spans;
typedef TFWI_ARRAY(tfw_place) tfwi_record_places;

/* Which records are kept, and copies of them. */
typedef struct tfwi_selection {
    tfw_select select;
    const void *wanted;
    tfwi_bytes data;
    tfwi_spans spans;   /* of the data */
    tfwi_record_places places; /* where they begin; their file is not set */
} tfwi_selection;

/* Records that lie without gaps in a file, and the memory through which they pass. */
typedef struct tfwi_stretch {
    int32_t fd;
    uint32_t flags;           /* TFW_NO_DATA_CRC */
    uint64_t max_record_size; /* 0: no limit */
    uint64_t offset;          /* in the file: where the next record begins */
    uint64_t stop;            /* in the file: nothing from there on is read */
    uint8_t *buffer;
    size_t capacity; /* TFW_HEADER_SIZE or more; some 300 KiB serve best */
    size_t begin;    /* of what the buffer holds of the file, from offset on */
    size_t end;
} tfwi_stretch;

/* What becomes of the records of a stretch, each where it is not NULL. */
typedef struct tfwi_reading {
    tfwi_stretch *s;
    tfw_columns *context; /* neither, and no TFW_SEQUENCE: the records are verified only */
    tfw_columns *lists;
    unsigned flags; /* TFW_SEQUENCE: as tfw_parse_sequence, with those of tfw_parse */
    tfw_tally *tally;
    uint64_t *lengths;     /* of the shortest and the longest */
    tfwi_offsets *offsets; /* where each begins in the file */
    tfwi_spans *spans;     /* of the buffer, in which all of them stay */
    tfwi_bytes *first;     /* the payload of the first record, if none is done yet */
    tfwi_selection *selection;
    const atomic_bool *stop; /* reading ends before the next piece */
    size_t piece; /* bytes read at a time; 0: what stays in the cache while it is parsed */
    size_t done;
} tfwi_reading;

/* Reads, verifies and parses records, up to max_records done, and goes past them; those done were
 * appended and noted, also on failure.
 * TFW_OK: max_records. TFW_END: the stretch ends there. TFW_NEED_INPUT: it was stopped.
 * TFW_NEED_SPACE: the next record takes error->expected bytes, more than the buffer has; with
 * spans, more than it has left. TFW_E_LENGTH_CRC, TFW_E_DATA_CRC, TFW_E_TOO_LARGE,
 * TFW_E_TRUNCATED: it is damaged, error->offset in the file. What tfw_parse reports: it does not
 * fit, and lies whole at begin. error->record is how many are done.
 * REQUIRES: the stretch and the flags are valid; bound columns have room. */
int tfwi_read_records(tfwi_reading *r, size_t max_records, tfw_error *error);

/* Reports that the file ends within the record at begin, which takes needed bytes and of which
 * there are so many. */
int tfwi_report_cut(const tfwi_stretch *s, uint64_t needed, uint64_t there, size_t record,
                    tfw_error *error);

#endif /* TFWIRE_READ_COLUMNS_H */
