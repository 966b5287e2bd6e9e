/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of different lengths as rows of one. */
#include "check.h"
#include "base/common.h"

static const int64_t values[6] = {1, 2, 3, 4, 5, 6};

static int pad(const int64_t *splits, uint64_t rows, uint64_t width, int64_t padding,
               int64_t *out) {
    return tfw_pad(values, 6, splits, rows, width, sizeof *values, &padding, out, NULL);
}

static void expect(const int64_t *expected, const int64_t *actual, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(expected[i], actual[i]);
    }
}

static void test_rows_are_padded_at_their_ends(void) {
    const int64_t splits[5] = {0, 2, 2, 5, 6};
    const int64_t zeros[12] = {1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 0, 0};
    const int64_t nines[12] = {1, 2, -9, -9, -9, -9, 3, 4, 5, 6, -9, -9};
    guarded page = guarded_new(sizeof zeros, true);
    int64_t *out = (int64_t *)(void *)page.data;
    CHECK_EQ(TFW_OK, pad(splits, 4, 3, 0, out));
    expect(zeros, out, 12);
    CHECK_EQ(TFW_OK, pad(splits, 4, 3, -9, out));
    expect(nines, out, 12);
    guarded_free(page);
}

static void test_values_of_four_bytes(void) {
    const float floats[3] = {0.5f, 1.5f, 2.5f}, padding = -1;
    const int64_t splits[3] = {0, 1, 3};
    float out[4];
    CHECK_EQ(TFW_OK, tfw_pad(floats, 3, splits, 2, 2, sizeof *out, &padding, out, NULL));
    const float expected[4] = {0.5f, -1, 1.5f, 2.5f};
    CHECK(memcmp(expected, out, sizeof out) == 0);
}

static void test_no_rows_and_no_width_write_nothing(void) {
    const int64_t splits[3] = {6, 6, 6};
    CHECK_EQ(TFW_OK, pad(splits, 0, 3, 0, NULL));
    CHECK_EQ(TFW_OK, pad(splits, 2, 0, 0, NULL));
}

static void test_splits_are_checked(void) {
    const int64_t wrong[][3] = {{-1, 0, 1}, {0, 2, 1}, {0, 1, 7}, {0, 3, 4}};
    int64_t out[4];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(TFW_E_ARGUMENT, pad(wrong[i], 2, 2, 0, out));
    }
}

int main(void) {
    RUN(test_rows_are_padded_at_their_ends);
    RUN(test_values_of_four_bytes);
    RUN(test_no_rows_and_no_width_write_nothing);
    RUN(test_splits_are_checked);
    return check_report("pad");
}
