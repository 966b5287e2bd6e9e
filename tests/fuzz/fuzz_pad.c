/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_pad against a plain loop: rows of any splits, also those that lie. */
#include "common/fuzz.h"

enum { MAX_ROWS = 32, MAX_WIDTH = 64 };

static bool fits(const int64_t *splits, size_t rows, uint64_t width, uint64_t values) {
    bool fine = splits[0] >= 0 && splits[rows] >= 0 && (uint64_t)splits[rows] <= values;
    for (size_t i = 0; fine && i < rows; i++) {
        fine = splits[i] <= splits[i + 1] && (uint64_t)(splits[i + 1] - splits[i]) <= width;
    }
    return fine;
}

static void check_rows(const uint8_t *values, const int64_t *splits, size_t rows, size_t width,
                       size_t size, const uint8_t *padding, const uint8_t *out) {
    for (size_t i = 0; i < rows; i++) {
        size_t count = (size_t)(splits[i + 1] - splits[i]);
        for (size_t k = 0; k < width; k++) {
            const uint8_t *expected = k < count ? values + ((size_t)splits[i] + k) * size : padding;
            CHECK(memcmp(expected, out + (i * width + k) * size, size) == 0);
        }
    }
}

/* rows, width, size of a value, number of values; splits; padding; values. */
static void run(input *in) {
    static const size_t sizes[4] = {1, 4, 8, 3};
    int64_t splits[MAX_ROWS + 1];
    size_t rows = input_byte(in) % (MAX_ROWS + 1), width = input_byte(in) % (MAX_WIDTH + 1);
    uint8_t choice = input_byte(in);
    size_t size = sizes[choice & 3], count = input_byte(in);
    splits[0] = (choice & 4) != 0 ? input_byte(in) : 0;
    for (size_t i = 0; i < rows; i++) {
        splits[i + 1] = splits[i] + input_byte(in) % (int64_t)(width + 1);
    }
    if ((choice & 8) != 0) {
        splits[input_byte(in) % (rows + 1)] = (int64_t)input_number(in, 8);
    }
    uint8_t *padding = fuzz_alloc(size), *values = fuzz_alloc(count * size);
    uint8_t *out = fuzz_alloc(rows * width * size);
    for (size_t i = 0; i < size; i++) {
        padding[i] = input_byte(in);
    }
    for (size_t i = 0; i < count * size; i++) {
        values[i] = input_byte(in);
    }
    int status = tfw_pad(values, count, splits, rows, width, size, padding, out, NULL);
    CHECK_EQ(fits(splits, rows, width, count) ? TFW_OK : TFW_E_ARGUMENT, status);
    if (status == TFW_OK) {
        check_rows(values, splits, rows, width, size, padding, out);
    }
    free(padding);
    free(values);
    free(out);
}

FUZZ_TARGET(run)
