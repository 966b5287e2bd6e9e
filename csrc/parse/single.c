/* SPDX-License-Identifier: Apache-2.0 */
/* One Example at a time: a single call clears, parses, and lays the strings side by side. */
#include "parse/columns.h"

/* Copies the strings of dense columns one after the other; false when they take more than
 * capacity bytes. */
static bool collect_strings(const tfw_columns *columns, uint8_t *out, size_t capacity,
                            int64_t *out_ends) {
    size_t end = 0;
    for (size_t i = 0; i < columns->count; i++) {
        const tfwi_column *column = &columns->columns[i];
        if (column->kind != TFW_BYTES || column->variable) {
            continue;
        }
        const int64_t *offsets = column->offsets.of;
        size_t size = (size_t)offsets[column->count];
        if (size > capacity - end) {
            return false;
        }
        if (size != 0) {
            memcpy(out + end, column->values.of, size);
        }
        for (size_t k = 1; k <= (size_t)column->count; k++) {
            *out_ends++ = (int64_t)end + offsets[k];
        }
        end += size;
    }
    return true;
}

int tfw_parse_one(tfw_columns *columns, const uint8_t *data, size_t len, unsigned flags,
                  uint8_t *out_strings, size_t capacity, int64_t *out_ends, tfw_error *error) {
    tfw_span span = {.offset = 0, .length = len};
    if ((flags & TFW_ADDRESSES) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a message has no spans to hold addresses");
    }
    tfw_columns_clear(columns);
    int status = tfw_parse(columns, data, len, &span, 1, flags | TFW_SINGLE, NULL, error);
    if (status == TFW_OK && !collect_strings(columns, out_strings, capacity, out_ends)) {
        return TFW_NEED_SPACE;
    }
    return status;
}
