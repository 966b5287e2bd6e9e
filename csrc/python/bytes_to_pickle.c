/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings to Python, thousands at a time: a pickle (protocol 4) of a tuple of bytes objects,
 *
 *     PROTO 4, MARK, then per string SHORT_BINBYTES, BINBYTES or BINBYTES8, TUPLE, STOP
 *
 * which pickle.loads turns into objects at the price of a list display. No memo, no frames: both
 * are optional.
 */
#include "tfwire_python.h"

#include "base/copy.h"
#include "python/opcodes.h"

enum { PICKLE_PROTOCOL = 4, PICKLE_FRAME = 5 /* PROTO 4 MARK ... TUPLE STOP */ };

static const uint64_t LONGEST_BINBYTES = UINT32_MAX;

uint64_t tfw_pickle_bound(uint64_t count, uint64_t payload_bytes) {
    /* BINBYTES takes 5 bytes, and only strings of 4 GiB need the 4 more of BINBYTES8. */
    if (count > UINT64_MAX / 16 || payload_bytes > UINT64_MAX / 2) {
        return UINT64_MAX;
    }
    uint64_t opcodes = count * 5 + (payload_bytes >> 32) * 4;
    return PICKLE_FRAME + opcodes + payload_bytes + TFWI_COPY_SLACK;
}

static uint8_t *put_begin(uint8_t *out) {
    out[0] = OP_PROTO;
    out[1] = PICKLE_PROTOCOL;
    out[2] = OP_MARK;
    return out + 3;
}

static uint8_t *put_end(uint8_t *out) {
    out[0] = OP_TUPLE;
    out[1] = OP_STOP;
    return out + 2;
}

/* Writes one string; out has TFWI_COPY_SLACK bytes more than the string takes. */
TFWI_INLINE uint8_t *put_pickle_string(uint8_t *out, const uint8_t *data, uint64_t len,
                                       bool roomy) {
    if (TFWI_UNLIKELY(len > LONGEST_BINBYTES)) {
        out[0] = OP_BINBYTES8;
        tfwi_store64(out + 1, len);
        out += 9;
    } else { /* one store and no branch, as lengths around 256 are not rare */
        bool is_short = len < 256;
        tfwi_store64(out, (len << 8) | (is_short ? OP_SHORT_BINBYTES : OP_BINBYTES));
        out += is_short ? 2 : 5;
    }
    tfwi_copy(out, data, (size_t)len, roomy);
    return out + len;
}

/* The sum of the lengths, UINT64_MAX where a number is so large that sums might overflow. */
static uint64_t add_lengths(const tfw_span *spans, size_t count) {
    uint64_t sum = 0, any = 0;
    for (size_t i = 0; i < count; i++) {
        sum += spans[i].length;
        any |= spans[i].offset | spans[i].length;
    }
    return any >> 62 == 0 && any < UINT64_MAX / 2 / (count + 1) ? sum : UINT64_MAX;
}

int tfw_pickle_spans(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
                     uint8_t *out, size_t capacity, size_t *out_len) {
    const uint64_t payload_bytes = add_lengths(spans, count);
    *out_len = 0;
    if (payload_bytes == UINT64_MAX) {
        return TFW_E_ARGUMENT;
    }
    if (capacity < tfw_pickle_bound(count, payload_bytes)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *p = put_begin(out);
    for (size_t i = 0; i < count; i++) {
        const tfw_span span = spans[i];
        const int64_t left = (int64_t)(data_len - span.offset);
        if (TFWI_UNLIKELY(left < (int64_t)span.length)) {
            return TFW_E_ARGUMENT;
        }
        p = put_pickle_string(p, data + span.offset, span.length, left >= TFWI_COPY_SLACK);
    }
    *out_len = (size_t)(put_end(p) - out);
    return TFW_OK;
}

int tfw_pickle_offsets(const uint8_t *data, size_t data_len, const int64_t *offsets, size_t count,
                       uint8_t *out, size_t capacity, size_t *out_len) {
    /* Negative ones are large. Every offset is read once, and the bounds follow from the first. */
    const volatile int64_t *once = offsets;
    const uint64_t first = count != 0 ? (uint64_t)once[0] : 0;
    const uint64_t last = count != 0 ? (uint64_t)once[count] : 0;
    *out_len = 0;
    if (first > last || last > data_len) {
        return TFW_E_ARGUMENT;
    }
    if (capacity < tfw_pickle_bound(count, last - first)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *p = put_begin(out);
    for (uint64_t i = 1, begin = first, end; i <= count; i++, begin = end) {
        end = (uint64_t)once[i];
        if (TFWI_UNLIKELY(begin > end || end > last)) {
            return TFW_E_ARGUMENT;
        }
        p = put_pickle_string(p, data + begin, end - begin, data_len - begin >= TFWI_COPY_SLACK);
    }
    *out_len = (size_t)(put_end(p) - out);
    return TFW_OK;
}

int tfw_pickle_frame(uint8_t *data, size_t len, const tfw_span *spans, size_t count) {
    size_t at = TFW_PICKLE_HEAD;
    if (len < TFW_PICKLE_HEAD + TFW_PICKLE_TAIL) {
        return TFW_E_ARGUMENT;
    }
    const size_t end = len - TFW_PICKLE_TAIL;
    put_begin(data);
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = spans[i].length;
        if (TFWI_UNLIKELY(end - at < TFW_PICKLE_ROOM || length > end - at - TFW_PICKLE_ROOM ||
                          spans[i].offset != at + TFW_PICKLE_ROOM - TFW_PICKLE_HEAD ||
                          length > LONGEST_BINBYTES)) {
            return TFW_E_ARGUMENT;
        }
        data[at] = OP_BINBYTES;
        tfwi_store32(data + at + 1, (uint32_t)length);
        at += TFW_PICKLE_ROOM + (size_t)length;
    }
    put_end(data + at);
    return at == end ? TFW_OK : TFW_E_ARGUMENT;
}
