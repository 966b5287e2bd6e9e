/* SPDX-License-Identifier: Apache-2.0 */
/* Template: finding the records in memory, with the checksums inlined: for short records the two
 * calls each would take a quarter of the time. A file includes it after the header of each CRC-32C
 * kernel, and after it has defined LENGTH_FIRST: true where a checksum costs more than a branch
 * that is predicted badly.
 */
#include "records/frame_template.h"

#define scan_records OF_KERNEL(scan_records)
#define search_header OF_KERNEL(search_header)

TARGET static int scan_records(const uint8_t *data, size_t len, uint64_t limit, unsigned flags,
                               tfw_span *out_spans, size_t span_capacity, size_t *out_count,
                               size_t *out_consumed, tfw_error *error) {
    size_t count = 0;
    size_t at = 0;
    int status = TFW_OK;
    while (count < span_capacity && at < len) {
        uint64_t length = 0;
        status = check_record(data + at, len - at, limit, flags, &length, error);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            break;
        }
        out_spans[count++] = (tfw_span){.offset = at + TFW_HEADER_SIZE, .length = length};
        at += (size_t)length + TFWI_FRAME_SIZE;
    }
    *out_count = count;
    *out_consumed = at;
    return status;
}

/* The checksums do not depend on each other, so that several are computed at a time. Where they are
 * fast, lengths are looked at last: in arbitrary bytes they make unpredictable branches. Where
 * checksums are slow, the length alone rules out most places. */
TARGET static size_t search_header(const uint8_t *data, size_t count, uint64_t limit) {
    for (size_t i = 0; i < count; i++) {
        uint64_t length = tfwi_load64(data + i);
        if (LENGTH_FIRST && TFWI_LIKELY(length > limit)) {
            continue;
        }
        uint32_t crc = ~crc_word(UINT32_MAX, length);
        if (TFWI_UNLIKELY(tfwi_crc32c_mask(crc) == tfwi_load32(data + i + 8)) && length <= limit) {
            return i;
        }
    }
    return count;
}

static const tfwi_scanner OF_KERNEL(scanner) = {&kernel_of_name, scan_records, search_header};
