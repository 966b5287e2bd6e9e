/* Byte strings to Python, thousands at a time: a pickle (protocol 4) of a tuple of bytes objects,
 *
 *     PROTO 4, MARK, then per string SHORT_BINBYTES, BINBYTES or BINBYTES8, TUPLE, STOP
 *
 * which pickle.loads turns into objects at the price of a list display. No memo, no frames: both
 * are optional.
 */
#include "base/copy.h"
#include "python/opcodes.h"

enum { PICKLE_PROTOCOL = 4, PICKLE_FRAME = 5 /* PROTO 4 MARK ... TUPLE STOP */ };

static const uint64_t LONGEST_BINBYTES = UINT32_MAX;

uint64_t tfw_pickle_bound(uint64_t count, uint64_t payload_bytes) {
    /* BINBYTES takes 5 bytes, and only strings of 4 GiB need the 4 more of BINBYTES8. */
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
TFWI_INLINE uint8_t *put_string(uint8_t *out, const uint8_t *data, uint64_t len, bool roomy) {
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

int tfw_pickle_spans(const uint8_t *data, const tfw_span *spans, size_t count, uint8_t *out,
                     size_t capacity, size_t *out_len) {
    uint64_t payload_bytes = 0;
    *out_len = 0;
    for (size_t i = 0; i < count; i++) {
        payload_bytes += spans[i].length;
    }
    if (capacity < tfw_pickle_bound(count, payload_bytes)) {
        return TFW_NEED_SPACE;
    }
    /* All spans lie in one buffer, so that bytes up to the end of the last may be read. */
    uint64_t readable = count != 0 ? spans[count - 1].offset + spans[count - 1].length : 0;
    uint8_t *p = put_begin(out);
    for (size_t i = 0; i < count; i++) {
        const tfw_span span = spans[i];
        p = put_string(p, data + span.offset, span.length,
                       span.offset + TFWI_COPY_SLACK <= readable);
    }
    *out_len = (size_t)(put_end(p) - out);
    return TFW_OK;
}

/* True when the offsets begin at 0 or more and never decrease. */
static bool ascending(const int64_t *offsets, size_t count) {
    bool fine = offsets[0] >= 0;
    for (size_t i = 0; i < count; i++) {
        fine &= offsets[i] <= offsets[i + 1];
    }
    return fine;
}

int tfw_pickle_offsets(const uint8_t *data, const int64_t *offsets, size_t count, uint8_t *out,
                       size_t capacity, size_t *out_len) {
    *out_len = 0;
    uint64_t first = 0;
    uint64_t readable = 0;
    if (count != 0) {
        if (!ascending(offsets, count)) {
            return TFW_E_ARGUMENT;
        }
        first = (uint64_t)offsets[0];
        readable = (uint64_t)offsets[count];
    }
    if (capacity < tfw_pickle_bound(count, readable - first)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *p = put_begin(out);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = (uint64_t)offsets[i];
        uint64_t end = (uint64_t)offsets[i + 1];
        p = put_string(p, data + begin, end - begin, begin + TFWI_COPY_SLACK <= readable);
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
