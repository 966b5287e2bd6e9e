/* SPDX-License-Identifier: Apache-2.0 */
/* The TFRecord frame.
 *
 * A record is a 12-byte header (uint64 length, uint32 masked CRC of those 8 bytes), the payload,
 * and a 4-byte footer (uint32 masked CRC of the payload); all little-endian. It is written and
 * verified here; frame_template.h verifies it for scans.
 */
#ifndef TFWIRE_FRAME_H
#define TFWIRE_FRAME_H

#include "crc32c/crc32c.h"

enum {
    TFWI_LENGTH_SIZE = 8,
    TFWI_FRAME_SIZE = TFW_HEADER_SIZE + TFW_FOOTER_SIZE /* of a record without its payload */
};

/* The checksum that a header should hold for the length that it holds. */
TFWI_INLINE uint32_t tfwi_length_crc(const tfwi_crc32c_kernel *kernel, const uint8_t *header) {
    return tfwi_crc32c_mask(kernel->crc8(header));
}

TFWI_INLINE bool tfwi_header_verifies(const tfwi_crc32c_kernel *kernel, const uint8_t *header) {
    return tfwi_length_crc(kernel, header) == tfwi_load32(header + TFWI_LENGTH_SIZE);
}

/* The checksum that a footer should hold. */
TFWI_INLINE uint32_t tfwi_payload_crc(const tfwi_crc32c_kernel *kernel, const uint8_t *payload,
                                      uint64_t length) {
    return tfwi_crc32c_mask(kernel->crc(0, payload, (size_t)length));
}

/* For readers of frames: notes why a record is not one; returns status. */
int tfwi_stop(tfw_error *error, int status, uint64_t expected, uint64_t found);

/* The same for a header with another length than expected. */
int tfwi_stop_at_length(tfw_error *error, uint64_t expected, uint64_t found);

/* Whether three pieces are a record of the length expected; found says what is wrong, in words only
 * for TFW_E_INDEX. */
TFWI_INLINE int tfwi_verify_pieces(const uint8_t *header, const uint8_t *payload, uint64_t length,
                                   const uint8_t *footer, tfw_error *found) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    const uint32_t length_crc = tfwi_length_crc(kernel, header);
    uint32_t stored = tfwi_load32(header + TFWI_LENGTH_SIZE);
    if (TFWI_UNLIKELY(length_crc != stored)) {
        return tfwi_stop(found, TFW_E_LENGTH_CRC, stored, length_crc);
    }
    if (TFWI_UNLIKELY(tfwi_load64(header) != length)) {
        return tfwi_stop_at_length(found, length, tfwi_load64(header));
    }
    const uint32_t payload_crc = tfwi_payload_crc(kernel, payload, length);
    stored = tfwi_load32(footer);
    return TFWI_LIKELY(payload_crc == stored)
               ? TFW_OK
               : tfwi_stop(found, TFW_E_DATA_CRC, stored, payload_crc);
}

/* Writes header and footer around a payload that is data, or was copied from it. The checksum reads
 * data: a copy just made cannot be loaded before it has reached the cache. */
TFWI_INLINE void tfwi_put_frame(const tfwi_crc32c_kernel *kernel, uint8_t *payload,
                                const uint8_t *data, size_t length) {
    uint8_t *header = payload - TFW_HEADER_SIZE;
    tfwi_store64(header, length);
    tfwi_store32(header + TFWI_LENGTH_SIZE, tfwi_length_crc(kernel, header));
    tfwi_store32(payload + length, tfwi_payload_crc(kernel, data, length));
}

/* The longest payload to accept: the caller's limit (0: none), but never so long that adding a
 * frame to it could overflow a size_t or an int64_t. */
TFWI_INLINE uint64_t tfwi_length_limit(uint64_t max_record_size) {
    const uint64_t most = (SIZE_MAX < INT64_MAX ? SIZE_MAX : INT64_MAX) - TFWI_FRAME_SIZE;
    return max_record_size != 0 && max_record_size < most ? max_record_size : most;
}

#endif /* TFWIRE_FRAME_H */
