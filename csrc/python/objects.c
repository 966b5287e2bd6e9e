/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings from Python, thousands at a time: read in place, from the objects themselves. */
#include "tfwire_python.h"

#include "records/frame.h"

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
