/* Template: finding the records in memory, with the checksums inlined: for short records the two
 * calls each would take a quarter of the time. A scanner's file includes it once, after the header
 * of a CRC-32C kernel, which defines
 *
 *     TARGET                      the function attribute that allows its instructions
 *     crc_word(state, word)       the register after 8 more bytes
 *     crc_bytes(state, p, len)    the register after len more bytes
 *
 * and after it has defined LENGTH_FIRST: true where a checksum costs more than a branch that is
 * predicted badly.
 */
#ifndef TFWIRE_SCAN_TEMPLATE_H
#define TFWIRE_SCAN_TEMPLATE_H

#include "records/scan.h"

/* Checks the record at data, which may be incomplete. TFW_OK: *out_length is its payload's. */
TARGET TFWI_INLINE int check_record(const uint8_t *data, size_t len, uint64_t limit,
                                    unsigned flags, uint64_t *out_length, tfw_error *error) {
    if (TFWI_UNLIKELY(len < TFW_HEADER_SIZE)) {
        return tfwi_stop(error, TFW_NEED_INPUT, TFW_HEADER_SIZE, len);
    }
    const uint64_t length = tfwi_load64(data);
    uint32_t stored = tfwi_load32(data + TFWI_LENGTH_SIZE);
    uint32_t computed = tfwi_crc32c_mask(~crc_word(UINT32_MAX, length));
    if (TFWI_UNLIKELY(stored != computed)) {
        return tfwi_stop(error, TFW_E_LENGTH_CRC, stored, computed);
    }
    if (TFWI_UNLIKELY(length > limit)) {
        return tfwi_stop(error, TFW_E_TOO_LARGE, limit, length);
    }
    if (TFWI_UNLIKELY(length + TFWI_FRAME_SIZE > len)) {
        return tfwi_stop(error, TFW_NEED_INPUT, length + TFWI_FRAME_SIZE, len);
    }
    if ((flags & TFW_NO_DATA_CRC) == 0) {
        const uint8_t *payload = data + TFW_HEADER_SIZE;
        stored = tfwi_load32(payload + length);
        computed = tfwi_crc32c_mask(~crc_bytes(UINT32_MAX, payload, (size_t)length));
        if (TFWI_UNLIKELY(stored != computed)) {
            return tfwi_stop(error, TFW_E_DATA_CRC, stored, computed);
        }
    }
    *out_length = length;
    return TFW_OK;
}

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

#endif /* TFWIRE_SCAN_TEMPLATE_H */
