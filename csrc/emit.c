/* Byte strings to and from Python, thousands at a time.
 *
 * To Python: a pickle (protocol 4) of a tuple of bytes objects,
 *
 *     PROTO 4, MARK, then per string SHORT_BINBYTES, BINBYTES or BINBYTES8, TUPLE, STOP
 *
 * which pickle.loads turns into objects at the price of a list display. No memo, no frames: both
 * are optional. From Python: the objects themselves, where they lie.
 */
#include "copy.h"
#include "frame.h"

enum {
    PROTO = 0x80,
    MARK = '(',
    SHORT_BINBYTES = 'C', /* uint8 length */
    BINBYTES = 'B',       /* uint32 length */
    BINBYTES8 = 0x8e,     /* uint64 length */
    TUPLE = 't',
    STOP = '.',

    PICKLE_PROTOCOL = 4,
    PICKLE_FRAME = 5 /* PROTO 4 MARK ... TUPLE STOP */
};

static const uint64_t LONGEST_BINBYTES = UINT32_MAX;

/* ---- Pickle --------------------------------------------------------------------------------- */

uint64_t tfw_pickle_bound(uint64_t count, uint64_t payload_bytes) {
    /* BINBYTES takes 5 bytes, and only strings of 4 GiB need the 4 more of BINBYTES8. */
    uint64_t opcodes = count * 5 + (payload_bytes >> 32) * 4;
    return PICKLE_FRAME + opcodes + payload_bytes + TFWI_COPY_SLACK;
}

static uint8_t *put_begin(uint8_t *out) {
    out[0] = PROTO;
    out[1] = PICKLE_PROTOCOL;
    out[2] = MARK;
    return out + 3;
}

static uint8_t *put_end(uint8_t *out) {
    out[0] = TUPLE;
    out[1] = STOP;
    return out + 2;
}

/* Writes one string; out has TFWI_COPY_SLACK bytes more than the string takes. */
TFWI_INLINE uint8_t *put_string(uint8_t *out, const uint8_t *data, uint64_t len, bool roomy) {
    if (TFWI_UNLIKELY(len > LONGEST_BINBYTES)) {
        out[0] = BINBYTES8;
        tfwi_store64(out + 1, len);
        out += 9;
    } else { /* one store and no branch, as lengths around 256 are not rare */
        bool is_short = len < 256;
        tfwi_store64(out, (len << 8) | (is_short ? SHORT_BINBYTES : BINBYTES));
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
        data[at] = BINBYTES;
        tfwi_store32(data + at + 1, (uint32_t)length);
        at += TFW_PICKLE_ROOM + (size_t)length;
    }
    put_end(data + at);
    return at == end ? TFW_OK : TFW_E_ARGUMENT;
}

/* ---- Objects -------------------------------------------------------------------------------- */

static uintptr_t word_at(uintptr_t object, size_t offset) {
    uintptr_t word;
    memcpy(&word, (const uint8_t *)object + offset, sizeof word);
    return word;
}

int tfw_object_spans(const uintptr_t *objects, size_t count, const tfw_object_layout *layout,
                     tfw_span *out_spans) {
    for (size_t i = 0; i < count; i++) {
        if (TFWI_UNLIKELY(word_at(objects[i], layout->type_at) != layout->type)) {
            return TFW_E_UNSUPPORTED;
        }
        out_spans[i] = (tfw_span){.offset = objects[i] + layout->data_at,
                                  .length = word_at(objects[i], layout->length_at)};
    }
    return TFW_OK;
}

int tfw_pack_objects(const uintptr_t *objects, size_t count, const tfw_object_layout *layout,
                     uint8_t *out, size_t capacity, size_t *out_done, size_t *out_len) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    size_t at = 0, i = 0;
    int status = TFW_OK;
    for (; i < count; i++) {
        const uintptr_t object = objects[i];
        if (TFWI_UNLIKELY(word_at(object, layout->type_at) != layout->type)) {
            status = TFW_E_UNSUPPORTED;
            break;
        }
        const size_t length = word_at(object, layout->length_at);
        const size_t room = capacity - at;
        if (TFWI_UNLIKELY(room < TFWI_FRAME_SIZE || room - TFWI_FRAME_SIZE < length)) {
            status = TFW_NEED_SPACE;
            break;
        }
        uint8_t *payload = out + at + TFW_HEADER_SIZE;
        const uint8_t *data = (const uint8_t *)object + layout->data_at;
        memcpy(payload, data, length);
        tfwi_put_frame(kernel, payload, data, length);
        at += length + TFWI_FRAME_SIZE;
    }
    *out_done = i;
    *out_len = at;
    return status;
}
