/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the next record after damage.
 *
 * TFRecord has no magic number, but a header checks itself: a place whose 12 bytes verify, whose
 * length is plausible and whose payload verifies too is a record, or a copy of one inside another
 * record's payload; the two cannot be distinguished.
 *
 * Hostile input may hold a header that verifies every 12 bytes, each claiming all that follows as
 * its payload. Checksumming each of them would take quadratic time. But the CRC of [a, b) follows
 * from those of [base, a) and [base, b). So the CRC from base on is kept every STRIDE bytes; each
 * byte is checksummed once for these, and a candidate costs two partial strides and one
 * combination.
 */
#include "records/resync.h"

#include "records/scan.h"

enum { STRIDE = 64 };

#ifdef TFW_TEST_FAULTS
/* Test builds count the bytes that the search checksums. */
uint64_t tfwi_test_hashed;
#define COUNT_HASHED(len) ((void)__atomic_fetch_add(&tfwi_test_hashed, (len), __ATOMIC_RELAXED))
#else
#define COUNT_HASHED(len) ((void)0)
#endif

/* Completes the checksums of all whole strides within [base, end). */
static int checksum_up_to(tfwi_resync *resync, const uint8_t *data, size_t end) {
    size_t needed = (end - resync->base) / STRIDE + 1; /* number 0 is that of nothing */
    if (!TFWI_RESERVE(resync->crcs, needed)) {
        return TFW_E_MEMORY;
    }
    size_t count = resync->crcs.count;
    uint32_t crc = count != 0 ? resync->crcs.of[count - 1] : 0;
    for (size_t i = count; i < needed; i++) {
        if (i != 0) {
            COUNT_HASHED(STRIDE);
            crc = tfw_crc32c(crc, data + resync->base + (i - 1) * STRIDE, STRIDE);
        }
        resync->crcs.of[i] = crc;
    }
    if (needed > resync->crcs.count) {
        resync->crcs.count = needed;
    }
    return TFW_OK;
}

/* CRC of [base, at). */
static uint32_t crc_up_to(const tfwi_resync *resync, const uint8_t *data, size_t at) {
    size_t strides = (at - resync->base) / STRIDE;
    size_t rest = (at - resync->base) % STRIDE;
    COUNT_HASHED(rest);
    return tfwi_crc32c_current()->crc(resync->crcs.of[strides], data + at - rest, rest);
}

int tfwi_resync_verify(tfwi_resync *resync, const uint8_t *data, size_t begin, size_t end,
                       bool *out_verifies) {
    uint32_t crc;
    if (end - begin <= 2 * STRIDE) { /* cheaper than the detour */
        COUNT_HASHED(end - begin);
        crc = tfw_crc32c(0, data + begin, end - begin);
    } else {
        if (resync->crcs.count == 0) {
            resync->base = begin;
        }
        int status = checksum_up_to(resync, data, end);
        if (status != TFW_OK) {
            return status;
        }
        /* Combining is a sum in GF(2), so it also subtracts. */
        crc = tfw_crc32c_combine(crc_up_to(resync, data, begin), crc_up_to(resync, data, end),
                                 end - begin);
    }
    *out_verifies = tfwi_crc32c_mask(crc) == tfwi_load32(data + end);
    return TFW_OK;
}

int tfwi_resync_find(tfwi_resync *resync, const uint8_t *data, size_t end, uint64_t available,
                     uint64_t max_record_size, size_t *at) {
    const tfwi_scanner *scanner = tfwi_scanner_current();
    const uint64_t limit = tfwi_length_limit(max_record_size);
    for (size_t p = *at; p + TFWI_FRAME_SIZE <= end; p++) {
        const uint64_t most = available - p - TFWI_FRAME_SIZE;
        p += scanner->find_header(data + p, end - p - TFWI_FRAME_SIZE + 1,
                                  limit < most ? limit : most);
        if (p + TFWI_FRAME_SIZE > end) {
            break;
        }
        const uint64_t length = tfwi_load64(data + p);
        if (length > available - p - TFWI_FRAME_SIZE) {
            continue;
        }
        *at = p;
        if (length > end - p - TFWI_FRAME_SIZE) {
            return TFW_NEED_INPUT;
        }
        bool verifies = false;
        size_t payload = p + TFW_HEADER_SIZE;
        int status =
            tfwi_resync_verify(resync, data, payload, payload + (size_t)length, &verifies);
        if (status != TFW_OK || verifies) {
            return status;
        }
    }
    if (end - *at >= TFWI_FRAME_SIZE) {
        *at = end - TFWI_FRAME_SIZE + 1;
    }
    return TFW_NEED_INPUT;
}

void tfwi_resync_moved(tfwi_resync *resync) { resync->crcs.count = 0; }

void tfwi_resync_free(tfwi_resync *resync) { tfw_free(resync->crcs.of); }
