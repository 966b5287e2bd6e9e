/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of different lengths as the rows of one dense array. */
#include "base/common.h"

/* Zeros, the usual padding, can be written faster than value by value. */
static void fill(uint8_t *out, size_t count, const uint8_t *padding, size_t size, bool zero) {
    if (zero) {
        memset(out, 0, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(out + i * size, padding, size);
    }
}

static bool is_zero(const uint8_t *bytes, size_t size) {
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

int tfw_pad(const void *values, size_t value_count, const int64_t *splits, size_t rows,
            size_t width, size_t value_size, const void *padding, void *out, tfw_error *error) {
    const volatile int64_t *once = splits; /* what is checked is what is used */
    const uint8_t *from = values;
    uint8_t *to = out;
    const bool zero = is_zero(padding, value_size);
    uint64_t begin = (uint64_t)once[0]; /* negative ones are large */
    if (begin > value_count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "rows exceed their values");
    }
    for (size_t i = 1; i <= rows; i++) {
        const uint64_t end = (uint64_t)once[i];
        if (end < begin || end > value_count || end - begin > width) {
            return tfwi_fail(error, TFW_E_ARGUMENT,
                             "a row leaves the values, or is longer than the width");
        }
        const size_t count = (size_t)(end - begin), missing = width - count;
        if (count * value_size != 0) {
            memcpy(to, from + (size_t)begin * value_size, count * value_size);
        }
        if (missing * value_size != 0) {
            fill(to + count * value_size, missing, padding, value_size, zero);
        }
        if (width * value_size != 0) {
            to += width * value_size;
        }
        begin = end;
    }
    return TFW_OK;
}
