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

static int check_rows(uint64_t value_count, const int64_t *splits, uint64_t rows, uint64_t width,
                      tfw_error *error) {
    if (splits[0] < 0 || (uint64_t)splits[rows] > value_count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "rows leave their values");
    }
    for (uint64_t i = 0; i < rows; i++) {
        if (splits[i] > splits[i + 1] || (uint64_t)(splits[i + 1] - splits[i]) > width) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a row is longer than the width");
        }
    }
    return TFW_OK;
}

int tfw_pad(const void *values, uint64_t value_count, const int64_t *splits, uint64_t rows,
            uint64_t width, size_t value_size, const void *padding, void *out, tfw_error *error) {
    int status = check_rows(value_count, splits, rows, width, error);
    if (status != TFW_OK || width == 0) {
        return status;
    }
    const uint8_t *from = values;
    uint8_t *to = out;
    bool zero = is_zero(padding, value_size);
    for (uint64_t i = 0; i < rows; i++) {
        size_t count = (size_t)(splits[i + 1] - splits[i]);
        if (count != 0) {
            memcpy(to, from + (size_t)splits[i] * value_size, count * value_size);
        }
        fill(to + count * value_size, (size_t)width - count, padding, value_size, zero);
        to += (size_t)width * value_size;
    }
    return TFW_OK;
}
