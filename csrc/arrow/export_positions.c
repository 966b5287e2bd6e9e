/* SPDX-License-Identifier: Apache-2.0 */
/* Where records come from, as columns: the path by a dictionary, the number and the offset. */
#include "arrow/export.h"

static bool export_paths(const tfwi_positions *positions, struct ArrowArray *out) {
    size_t size = 0;
    for (size_t i = 0; i < positions->path_count; i++) {
        size += strlen(positions->paths[i]);
    }
    tfwi_buffer *offsets = tfwi_buffer_new((positions->path_count + 1) * sizeof(int64_t));
    tfwi_buffer *data = tfwi_buffer_new(size);
    bool good = offsets != NULL && data != NULL;
    if (good) {
        int64_t *ends = offsets->memory;
        ends[0] = 0;
        for (size_t i = 0; i < positions->path_count; i++) {
            const size_t len = strlen(positions->paths[i]);
            memcpy((uint8_t *)data->memory + ends[i], positions->paths[i], len);
            ends[i + 1] = ends[i] + (int64_t)len;
        }
        tfwi_buffer *const buffers[3] = {NULL, offsets, data};
        good = tfwi_array_init(out, (int64_t)positions->path_count, buffers, 3, 0, false);
    }
    tfwi_buffer_drop(offsets);
    tfwi_buffer_drop(data);
    return good;
}

static bool export_copy(const void *numbers, size_t count, size_t size, bool has_dictionary,
                        struct ArrowArray *out) {
    tfwi_buffer *const buffers[2] = {NULL, tfwi_buffer_new(count * size)};
    bool good = buffers[1] != NULL;
    if (good) {
        if (count != 0) {
            memcpy(buffers[1]->memory, numbers, count * size);
        }
        good = tfwi_array_init(out, (int64_t)count, buffers, 2, 0, has_dictionary);
    }
    tfwi_buffer_drop(buffers[1]);
    return good;
}

bool tfwi_export_positions(const tfwi_positions *positions, size_t count,
                           struct ArrowArray **out) {
    return export_copy(positions->files, count, sizeof(int32_t), true, out[0]) &&
           export_paths(positions, out[0]->dictionary) &&
           export_copy(positions->numbers, count, sizeof(int64_t), false, out[1]) &&
           export_copy(positions->offsets, count, sizeof(int64_t), false, out[2]);
}
