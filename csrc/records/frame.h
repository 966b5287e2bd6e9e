/* The TFRecord frame, shared by the scanner, the reader and the search behind damage.
 *
 * A record is a 12-byte header (uint64 length, uint32 masked CRC of those 8 bytes), the payload,
 * and a 4-byte footer (uint32 masked CRC of the payload); all little-endian.
 */
#ifndef TFWIRE_FRAME_H
#define TFWIRE_FRAME_H

#include "crc32c/crc32c.h"

enum {
    TFWI_LENGTH_SIZE = 8,
    TFWI_FRAME_SIZE = TFW_HEADER_SIZE + TFW_FOOTER_SIZE /* what a record takes beside its payload */
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

/* Writes header and footer around a payload, which has been copied from data, or is that. What was
 * just copied cannot be loaded before it has reached the cache; what it was copied from can. */
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

/* tfw_scan without argument checks and texts; error must not be NULL. */
int tfwi_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
              tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
              tfw_error *error);

/* For a kernel's scan: notes why it stops; returns status. */
int tfwi_stop(tfw_error *error, int status, uint64_t expected, uint64_t found);

/* Puts into words what tfwi_scan found wrong with the record that begins here; error says where
 * that is. At the beginning of a file: what else the file looks like. */
void tfwi_describe(const uint8_t *record, tfw_error *error);

/* ---- Search for the next record behind damage (resync.c) ------------------------------------ */

/* Checksums of every prefix of the searched bytes, a stride apart: with them any candidate's
 * payload is verified at a cost that does not depend on its length. Zeroed at the beginning. */
typedef struct tfwi_resync {
    uint32_t *prefixes; /* prefixes[i]: CRC of the i strides from base on */
    size_t count;
    size_t capacity;
    size_t base; /* index in the window */
} tfwi_resync;

/* Finds the first record, whole and verified, that begins at data[*at] or later.
 *
 * data[0, end) is the window, available the bytes from data[0] to the end of the input as far as
 * known (UINT64_MAX: not known). *at advances over everything that cannot begin a record.
 * TFW_OK: a record begins at *at. TFW_NEED_INPUT: more bytes are needed to decide about *at.
 * TFW_E_MEMORY: nothing is lost, call again. */
int tfwi_resync_find(tfwi_resync *resync, const uint8_t *data, size_t end, uint64_t available,
                     uint64_t max_record_size, size_t *at);

/* Whether the payload data[begin, end) agrees with the footer behind it; TFW_OK or TFW_E_MEMORY.
 * begin must not lie before what was asked about earlier. */
int tfwi_resync_verify(tfwi_resync *resync, const uint8_t *data, size_t begin, size_t end,
                       bool *out_verifies);

/* To be called when the window's bytes have moved. */
void tfwi_resync_moved(tfwi_resync *resync);
void tfwi_resync_free(tfwi_resync *resync);

#endif /* TFWIRE_FRAME_H */
