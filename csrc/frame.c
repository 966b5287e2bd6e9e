/* Records in memory: finding, framing and packing them. Nothing here keeps state. */
#include "frame.h"

#include "copy.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Scanning ------------------------------------------------------------------------------- */

static int64_t saturated(uint64_t value) {
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int stop(tfw_error *error, int status, uint64_t expected, uint64_t found) {
    tfwi_fail(error, status, "");
    error->expected = saturated(expected);
    error->found = saturated(found);
    return status;
}

/* Looks at the record at data, which is perhaps not whole. TFW_OK: *out_length is its payload's. */
TFWI_INLINE int check_record(const tfwi_crc32c_kernel *kernel, const uint8_t *data, size_t len,
                             uint64_t limit, unsigned flags, uint64_t *out_length,
                             tfw_error *error) {
    if (TFWI_UNLIKELY(len < TFW_HEADER_SIZE)) {
        return stop(error, TFW_NEED_INPUT, TFW_HEADER_SIZE, len);
    }
    uint32_t stored = tfwi_load32(data + TFWI_LENGTH_SIZE);
    uint32_t computed = tfwi_length_crc(kernel, data);
    if (TFWI_UNLIKELY(stored != computed)) {
        return stop(error, TFW_E_LENGTH_CRC, stored, computed);
    }
    uint64_t length = tfwi_load64(data);
    if (TFWI_UNLIKELY(length > limit)) {
        return stop(error, TFW_E_TOO_LARGE, limit, length);
    }
    if (TFWI_UNLIKELY(length + TFWI_FRAME_SIZE > len)) {
        return stop(error, TFW_NEED_INPUT, length + TFWI_FRAME_SIZE, len);
    }
    if ((flags & TFW_NO_DATA_CRC) == 0) {
        const uint8_t *payload = data + TFW_HEADER_SIZE;
        stored = tfwi_load32(payload + length);
        computed = tfwi_payload_crc(kernel, payload, length);
        if (TFWI_UNLIKELY(stored != computed)) {
            return stop(error, TFW_E_DATA_CRC, stored, computed);
        }
    }
    *out_length = length;
    return TFW_OK;
}

int tfwi_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
              tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
              tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    const uint64_t limit = tfwi_length_limit(max_record_size);
    size_t count = 0;
    size_t at = 0;
    int status = TFW_OK;
    while (count < span_capacity && at < len) {
        uint64_t length = 0;
        status = check_record(kernel, data + at, len - at, limit, flags, &length, error);
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

void tfwi_describe(const uint8_t *record, tfw_error *error) {
    char *text = error->text;
    unsigned expected = (unsigned)error->expected;
    unsigned found = (unsigned)error->found;
    switch (error->status) {
    case TFW_E_LENGTH_CRC:
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "length checksum is 0x%08x but the header says 0x%08x", found, expected);
        break;
    case TFW_E_DATA_CRC:
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "payload checksum is 0x%08x but the footer says 0x%08x", found, expected);
        break;
    case TFW_E_TOO_LARGE: /* the length itself: it may not fit error->found */
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "record of %" PRIu64 " bytes, above the limit of %" PRId64, tfwi_load64(record),
                 error->expected);
        break;
    case TFW_E_TRUNCATED:
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "record takes %" PRId64 " bytes but only %" PRId64 " are left", error->expected,
                 error->found);
        break;
    default: break;
    }
}

int tfw_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
             tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
             tfw_error *error) {
    tfw_error found;
    *out_count = 0;
    *out_consumed = 0;
    if ((flags & ~(unsigned)TFW_NO_DATA_CRC) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "unknown flags");
    }
    int status = tfwi_scan(data, len, max_record_size, flags, out_spans, span_capacity, out_count,
                           out_consumed, &found);
    if (status != TFW_OK && error != NULL) {
        found.offset = saturated(*out_consumed);
        found.record = saturated(*out_count);
        tfwi_describe(data + *out_consumed, &found);
        *error = found;
    }
    return status;
}

/* ---- Framing -------------------------------------------------------------------------------- */

/* Writes header and footer around a payload. */
TFWI_INLINE void put_frame(const tfwi_crc32c_kernel *kernel, uint8_t *payload, size_t length) {
    uint8_t *header = payload - TFW_HEADER_SIZE;
    tfwi_store64(header, length);
    tfwi_store32(header + TFWI_LENGTH_SIZE, tfwi_length_crc(kernel, header));
    tfwi_store32(payload + length, tfwi_payload_crc(kernel, payload, length));
}

static bool inside(const tfw_span *span, size_t len) {
    return span->length <= len && span->offset <= len - span->length;
}

static int bad_span(tfw_error *error, size_t i, const char *text) {
    tfwi_fail(error, TFW_E_ARGUMENT, text);
    if (error != NULL) {
        error->record = saturated(i);
    }
    return TFW_E_ARGUMENT;
}

int tfw_frame(uint8_t *data, size_t len, const tfw_span *spans, size_t count, tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    for (size_t i = 0; i < count; i++) {
        const tfw_span *span = &spans[i];
        if (!inside(span, len) || span->offset < TFW_HEADER_SIZE ||
            len - span->offset - span->length < TFW_FOOTER_SIZE) {
            return bad_span(error, i, "no room for the frame around a payload");
        }
        put_frame(kernel, data + span->offset, (size_t)span->length);
    }
    return TFW_OK;
}

int tfw_pack(const uint8_t *data, size_t len, const tfw_span *spans, size_t count, uint8_t *out,
             size_t capacity, size_t *out_len, tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    size_t at = 0;
    *out_len = 0;
    for (size_t i = 0; i < count; i++) {
        if (TFWI_UNLIKELY(!inside(&spans[i], len))) {
            return bad_span(error, i, "a payload lies outside the data");
        }
        size_t offset = (size_t)spans[i].offset;
        size_t length = (size_t)spans[i].length;
        size_t room = capacity - at;
        if (TFWI_UNLIKELY(room < TFWI_FRAME_SIZE || room - TFWI_FRAME_SIZE < length)) {
            return bad_span(error, i, "the output is too small for the records");
        }
        uint8_t *payload = out + at + TFW_HEADER_SIZE;
        bool roomy = len - offset >= TFWI_COPY_SLACK && room >= TFW_HEADER_SIZE + TFWI_COPY_SLACK;
        tfwi_copy(payload, data + offset, length, roomy);
        put_frame(kernel, payload, length);
        at += length + TFWI_FRAME_SIZE;
    }
    *out_len = at;
    return TFW_OK;
}
