/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, written around payloads and verified. Nothing here keeps state. */
#include "records/frame.h"

#include "base/copy.h"
#include "base/spans.h"
#include "records/describe.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Writing -------------------------------------------------------------------------------- */

int tfw_frame(uint8_t *data, size_t len, const tfw_span *spans, size_t count, tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    for (size_t i = 0; i < count; i++) {
        const tfw_span *span = &spans[i];
        if (!tfwi_span_fits(span, len, TFW_HEADER_SIZE, TFW_FOOTER_SIZE)) {
            return tfwi_fail_span(error, i, "no room for the frame around a payload");
        }
        uint8_t *payload = data + span->offset;
        tfwi_put_frame(kernel, payload, payload, (size_t)span->length);
    }
    return TFW_OK;
}

int tfw_pack(const uint8_t *data, size_t len, const tfw_span *spans, size_t count, uint8_t *out,
             size_t capacity, size_t *out_len, tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    size_t at = 0;
    *out_len = 0;
    for (size_t i = 0; i < count; i++) {
        if (TFWI_UNLIKELY(!tfwi_span_fits(&spans[i], len, 0, 0))) {
            return tfwi_fail_span(error, i, "a payload lies outside the data");
        }
        size_t offset = (size_t)spans[i].offset;
        size_t length = (size_t)spans[i].length;
        size_t room = capacity - at;
        if (TFWI_UNLIKELY(room < TFWI_FRAME_SIZE || room - TFWI_FRAME_SIZE < length)) {
            return tfwi_fail_span(error, i, "the output is too small for the records");
        }
        uint8_t *payload = out + at + TFW_HEADER_SIZE;
        bool roomy = len - offset >= TFWI_COPY_SLACK && room >= TFW_HEADER_SIZE + TFWI_COPY_SLACK;
        const uint8_t *from = length != 0 ? data + offset : payload; /* data may be NULL */
        tfwi_copy(payload, from, length, roomy);
        tfwi_put_frame(kernel, payload, from, length);
        at += length + TFWI_FRAME_SIZE;
    }
    *out_len = at;
    return TFW_OK;
}

/* ---- Verifying ------------------------------------------------------------------------------ */

int tfwi_stop(tfw_error *error, int status, uint64_t expected, uint64_t found) {
    tfwi_fail(error, status, "");
    error->expected = tfwi_saturated(expected);
    error->found = tfwi_saturated(found);
    return status;
}

int tfwi_stop_at_length(tfw_error *error, uint64_t expected, uint64_t found) {
    tfwi_fail(error, TFW_E_INDEX, "");
    snprintf(error->text, sizeof error->text,
             "record of %" PRIu64 " bytes where the index says %" PRIu64, found, expected);
    return TFW_E_INDEX;
}

int tfw_verify_record(const uint8_t *header, const uint8_t *payload, uint64_t length,
                      const uint8_t *footer, tfw_error *error) {
    tfw_error found;
    int status = tfwi_verify_pieces(header, payload, length, footer, &found);
    if (status != TFW_OK && error != NULL) {
        tfwi_describe(header, &found);
        *error = found;
    }
    return status;
}
