/* SPDX-License-Identifier: Apache-2.0 */
/* Finding records in memory. A scanner is the loop over records with the checksum of one CRC-32C
 * kernel inlined. */
#ifndef TFWIRE_SCAN_H
#define TFWIRE_SCAN_H

#include "records/frame.h"

typedef struct tfwi_scanner {
    const tfwi_crc32c_kernel *kernel; /* whose checksums it computes */

    /* As tfwi_scan, with the longest length to accept. */
    int (*scan)(const uint8_t *data, size_t len, uint64_t limit, unsigned flags,
                tfw_span *out_spans, size_t span_capacity, size_t *out_count,
                size_t *out_consumed, tfw_error *error);

    /* The first i < count for which the 12 bytes at data[i] are a header that verifies, with a
     * length of at most limit; count if there is none. */
    size_t (*find_header)(const uint8_t *data, size_t count, uint64_t limit);
} tfwi_scanner;

/* The scanner of the CRC-32C kernel in use. */
const tfwi_scanner *tfwi_scanner_current(void);

/* tfw_scan without checks of arguments and without texts. REQUIRES: error is not NULL. */
int tfwi_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
              tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
              tfw_error *error);

#endif /* TFWIRE_SCAN_H */
