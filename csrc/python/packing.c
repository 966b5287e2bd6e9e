/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences packed into rows of one length. */
#include "base/common.h"
#include "tfwire_python.h"

/* ---- Fitting -------------------------------------------------------------------------------- */

static bool are_lengths_within(const int64_t *numbers, size_t count, int64_t most) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] > most) {
            return false;
        }
    }
    return true;
}

static bool are_filled_within(const tfw_rows *rows) {
    for (size_t i = 0; i < rows->num_rows * rows->num_parts; i++) {
        if (rows->filled[i] < 0 || rows->filled[i] > rows->widths[i % rows->num_parts]) {
            return false;
        }
    }
    return true;
}

static bool fits_row(const tfw_rows *rows, size_t row, const int64_t *lengths, size_t count) {
    const int64_t *filled = rows->filled + row * rows->num_parts;
    for (size_t p = 0; p < rows->num_parts; p++) {
        if (lengths[p * count] > rows->widths[p] - filled[p]) {
            return false;
        }
    }
    return true;
}

static void put_into_row(const tfw_rows *rows, size_t row, const int64_t *lengths, size_t count,
                         int64_t *places) {
    int64_t *filled = rows->filled + row * rows->num_parts;
    places[0] = (int64_t)row;
    places[count] = ++rows->held[row];
    for (size_t p = 0; p < rows->num_parts; p++) {
        places[(p + 2) * count] = filled[p];
        filled[p] += lengths[p * count];
    }
}

int tfw_first_fit(const tfw_rows *rows, const int64_t *lengths, size_t count, size_t first,
                  int64_t *places, size_t *out_end, tfw_error *error) {
    bool valid = first <= count && are_filled_within(rows);
    for (size_t p = 0; valid && p < rows->num_parts; p++) {
        valid = are_lengths_within(lengths + p * count + first, count - first, rows->widths[p]);
    }
    if (!valid) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a part is longer than its row");
    }
    size_t i = first;
    for (; i < count; i++) {
        size_t row = 0;
        while (row < rows->num_rows && !fits_row(rows, row, lengths + i, count)) {
            row++;
        }
        if (row == rows->num_rows) {
            break;
        }
        put_into_row(rows, row, lengths + i, count, places + i);
    }
    *out_end = i;
    return TFW_OK;
}

/* ---- Copying -------------------------------------------------------------------------------- */

static bool is_part(int64_t begin, int64_t length, size_t count) {
    return begin >= 0 && length >= 0 && (uint64_t)begin <= count &&
           (uint64_t)length <= count - (uint64_t)begin;
}

int tfw_copy_segments(const tfw_segments *segments, const void *values, size_t value_count,
                      size_t value_size, size_t num_rows, size_t width, void *out, int32_t *ids,
                      int32_t *positions, tfw_error *error) {
    for (size_t i = 0; i < segments->count; i++) {
        const int64_t begin = segments->begins[i], length = segments->lengths[i];
        const int64_t row = segments->rows[i], start = segments->starts[i];
        if (!is_part(begin, length, value_count) || !is_part(start, length, width) || row < 0 ||
            (uint64_t)row >= num_rows) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a segment leaves its values or its row");
        }
        const size_t at = (size_t)row * width + (size_t)start, size = (size_t)length;
        if (values != NULL && size * value_size != 0) {
            memcpy((uint8_t *)out + at * value_size,
                   (const uint8_t *)values + (size_t)begin * value_size, size * value_size);
        }
        const int32_t number = (int32_t)segments->numbers[i];
        for (size_t k = 0; k < size; k++) {
            ids[at + k] = number;
            positions[at + k] = (int32_t)k;
        }
    }
    return TFW_OK;
}
