/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the sequential reader. window.c gets its input, damage.c applies the policy, and
 * reader.c, above both, goes from record to record. */
#ifndef TFWIRE_READER_STATE_H
#define TFWIRE_READER_STATE_H

#include "records/resync.h"

enum {
    TFWI_HEADROOM = 64,
    TFWI_PADDING = 64
};

struct tfw_reader {
    size_t buffer_size;
    uint64_t max_record_size;
    int fd; /* -1: fed */
    unsigned flags;
    enum tfw_on_corrupt on_corrupt;

    uint8_t *memory; /* headroom, capacity, padding */
    size_t capacity;
    size_t begin;
    size_t end;
    size_t reserved; /* bytes after end that the caller may be filling */
    uint64_t offset; /* file offset of data[0] */
    uint64_t needed; /* bytes that the incomplete record at begin takes, as far as known */
    bool ended;      /* no more input will come */
    uint64_t input_end; /* known end of the input; 0: not asked yet */

    tfw_span *spans; /* found by the last scan, relative to data + scanned */
    size_t span_count;
    size_t span_next; /* first one not yet delivered */
    size_t scanned;
    uint64_t record; /* number of the next record to deliver; with gaps: of the next to be found */
    uint64_t *numbers; /* skipping, with gaps: of the spans */
    bool has_gaps;     /* there is damage between the spans */

    tfw_error damage;  /* of the record at begin; TFW_OK: no damage is known */
    bool examined;     /* checked for a flipped bit */
    tfw_error outcome; /* once status is not TFW_OK, the answer to every further call */

    bool searching;    /* for the next record after damage; the last region is still open */
    uint64_t doubtful; /* records with a wrong length claim bytes up to this file offset */
    tfwi_resync resync;
    TFWI_ARRAY(tfw_region) regions;
    uint64_t skipped_regions; /* in all, also those that were not kept */
    uint64_t skipped_bytes;
    TFWI_ARRAY(tfw_flip) flips;
    uint64_t flips_found; /* in all, also those that were not kept */
    uint64_t flips_applied;
};

TFWI_INLINE uint8_t *tfwi_window(const tfw_reader *reader) {
    return reader->memory + TFWI_HEADROOM;
}

TFWI_INLINE uint64_t tfwi_file_offset(const tfw_reader *reader, size_t at) {
    return reader->offset + at;
}

TFWI_INLINE int tfwi_fail_here(const tfw_reader *reader, tfw_error *error, int status,
                               const char *text) {
    tfwi_fail(error, status, text);
    TFWI_SET(error, record, (int64_t)reader->record);
    TFWI_SET(error, offset, (int64_t)tfwi_file_offset(reader, reader->begin));
    return status;
}

TFWI_INLINE bool tfwi_spans_pending(const tfw_reader *reader) {
    return reader->span_next < reader->span_count;
}

#endif /* TFWIRE_READER_STATE_H */
