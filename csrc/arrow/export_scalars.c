/* SPDX-License-Identifier: Apache-2.0 */
/* Features that records have once or not at all, as one value for each record: where there is none,
 * it is null. */
#include "arrow/export.h"

bool tfwi_has_one_each(const tfw_column *column, size_t *out_several) {
    bool one_each = true;
    *out_several = SIZE_MAX;
    for (size_t i = 0; i < (size_t)column->cell_count; i++) {
        const int64_t count = column->splits[i + 1] - column->splits[i];
        if (count > 1) {
            *out_several = i;
            return false;
        }
        one_each &= count == 1;
    }
    return one_each;
}

/* The offsets of the strings of cells. */
static void spread_offsets(const tfw_column *column, int64_t *out) {
    for (size_t i = 0; i <= (size_t)column->cell_count; i++) {
        out[i] = column->offsets[column->splits[i]];
    }
}

static void spread_ints(const tfw_column *column, int64_t *out) {
    const int64_t *values = column->values, *splits = column->splits;
    for (size_t i = 0; i < (size_t)column->cell_count; i++) {
        out[i] = splits[i] != splits[i + 1] ? values[splits[i]] : 0;
    }
}

static void spread_floats(const tfw_column *column, float *out) {
    const float *values = column->values;
    const int64_t *splits = column->splits;
    for (size_t i = 0; i < (size_t)column->cell_count; i++) {
        out[i] = splits[i] != splits[i + 1] ? values[splits[i]] : 0;
    }
}

bool tfwi_fill_cells(int32_t kind, const tfwi_exported *column, tfwi_exported *out,
                     tfwi_buffer **out_buffer) {
    const size_t cells = (size_t)column->column.cell_count;
    const size_t size = kind == TFW_FLOAT ? sizeof(float) : sizeof(int64_t);
    tfwi_buffer *buffer = *out_buffer = tfwi_buffer_new((cells + 1) * size);
    if (buffer == NULL) {
        return false;
    }
    *out = *column;
    out->column.value_count = cells;
    out->column.splits = NULL; /* value i is that of cell i */
    if (kind == TFW_BYTES) {
        spread_offsets(&column->column, buffer->memory);
        out->column.offsets = buffer->memory;
        out->offsets = buffer;
        return true;
    }
    if (kind == TFW_INT64) {
        spread_ints(&column->column, buffer->memory);
    } else {
        spread_floats(&column->column, buffer->memory);
    }
    out->column.values = buffer->memory;
    out->values = buffer;
    return true;
}

bool tfwi_mark_empty(const tfw_column *column, struct ArrowArray *array) {
    const size_t cells = (size_t)column->cell_count, size = (cells + 7) / 8;
    tfwi_buffer *bitmap = tfwi_buffer_new(size);
    if (bitmap == NULL) {
        return false;
    }
    uint8_t *bits = bitmap->memory;
    int64_t null_count = 0;
    memset(bits, 0, size);
    for (size_t i = 0; i < cells; i++) {
        const bool filled = column->splits[i] != column->splits[i + 1];
        bits[i / 8] |= (uint8_t)(filled << i % 8);
        null_count += !filled;
    }
    tfwi_array_set_validity(array, bitmap, null_count);
    tfwi_buffer_drop(bitmap);
    return true;
}
