/* SPDX-License-Identifier: Apache-2.0 */
/* Where records lie by the offsets of an index, which anybody may change, and which may lie. */
#ifndef TFWIRE_INDEXED_H
#define TFWIRE_INDEXED_H

#include "records/frame.h"

enum {
    TFWI_GAP = 4096,              /* between two records that are read at once: a read costs more */
    TFWI_LONGEST_GROUP = 1 << 18, /* bytes of records read at once, to be verified in the cache */
};

/* A record by the offsets. */
typedef struct tfwi_extent {
    int64_t begin;
    int64_t size; /* with its frame; 0: the offsets cannot be those of a record */
} tfwi_extent;

/* Loads both offsets once: another thread may change them. */
TFWI_INLINE tfwi_extent tfwi_extent_of(const int64_t *offsets, int64_t number) {
    const volatile int64_t *once = offsets + number;
    const int64_t begin = once[0];
    const int64_t end = once[1];
    const bool possible = begin >= 0 && end > begin && end - begin >= TFWI_FRAME_SIZE;
    return (tfwi_extent){begin, possible ? end - begin : 0};
}

/* What is wrong with a record of which the file has fewer bytes than expected. */
TFWI_INLINE tfw_error tfwi_cut(int64_t expected, uint64_t found) {
    tfw_error error;
    tfwi_fail(&error, TFW_E_TRUNCATED, "");
    error.expected = expected;
    error.found = (int64_t)found;
    return error;
}

/* Whether bytes, of which the file had so many, are a record of this size. */
TFWI_INLINE int tfwi_verify_extent(const uint8_t *record, int64_t size, uint64_t have,
                                   tfw_error *found) {
    const uint64_t length = (uint64_t)(size - TFWI_FRAME_SIZE);
    if (TFWI_UNLIKELY(have < (uint64_t)size)) {
        *found = tfwi_cut(size, have);
        return TFW_E_TRUNCATED;
    }
    return tfwi_verify_pieces(record, record + TFW_HEADER_SIZE, length,
                              record + TFW_HEADER_SIZE + length, found);
}

#endif /* TFWIRE_INDEXED_H */
