/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and sums, of any number of values, beside those of a plain loop. */
#include "check.h"

#include "parse/range.h"

#include <math.h>

enum { MOST = 100 };

/* Sums of small whole numbers are exact in any order. */
static float chosen(uint64_t *state) { return (float)(check_random(state) % 2001) - 1000; }

static void check_floats(const float *values, size_t count) {
    tfwi_range range = tfwi_empty_range;
    double least = INFINITY, most = -INFINITY, sum = 0;
    size_t nans = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i])) {
            nans++;
            continue;
        }
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
        sum += values[i];
    }
    tfwi_range_add_floats(&range, values, count / 3);
    tfwi_range_add_floats(&range, values + count / 3, count - count / 3);
    CHECK_EQ(count, range.of.values);
    CHECK_EQ(nans, range.of.nans);
    CHECK(range.of.least_float <= least && range.of.least_float >= least);
    CHECK(range.of.most_float <= most && range.of.most_float >= most);
    const double found = tfwi_range_sum(&range, TFW_FLOAT);
    CHECK(sum != sum ? found != found : found <= sum && found >= sum);
}

static void floats_of_every_number(void) {
    uint64_t state = 1;
    float values[MOST];
    for (size_t count = 0; count <= MOST; count++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = chosen(&state);
        }
        check_floats(values, count);
    }
}

/* NaN and both infinities, alone and in pairs, at every place. */
static void floats_that_are_no_numbers(void) {
    const float odd[] = {NAN, INFINITY, -INFINITY, -0.0F};
    uint64_t state = 2;
    float values[MOST];
    for (size_t count = 1; count <= 40; count++) {
        for (size_t at = 0; at < count; at++) {
            for (size_t i = 0; i < count; i++) {
                values[i] = chosen(&state);
            }
            for (size_t i = 0; i < 4; i++) {
                values[at] = odd[i];
                check_floats(values, count);
                values[count - 1 - at] = odd[(i + at) % 4];
                check_floats(values, count);
            }
        }
    }
    for (size_t i = 0; i < MOST; i++) {
        values[i] = NAN;
    }
    check_floats(values, MOST);
}

/* A message may have its values in one block, in several or one by one. */
static void sums_do_not_depend_on_blocks(void) {
    uint64_t state = 3;
    float values[MOST];
    for (size_t i = 0; i < MOST; i++) {
        values[i] = (i % 17 == 9) ? NAN : chosen(&state) / 7 + 1e12F * (float)(i % 5 == 1);
    }
    tfwi_range whole = tfwi_empty_range;
    tfwi_range_add_floats(&whole, values, MOST);
    const double sum = tfwi_range_sum(&whole, TFW_FLOAT);
    for (size_t first = 0; first <= MOST; first++) {
        for (size_t rest = 1; rest <= 20; rest++) {
            tfwi_range range = tfwi_empty_range;
            tfwi_range_add_floats(&range, values, first);
            for (size_t i = first; i < MOST; i += rest) {
                tfwi_range_add_floats(&range, values + i, i + rest < MOST ? rest : MOST - i);
            }
            const double found = tfwi_range_sum(&range, TFW_FLOAT);
            CHECK(memcmp(&range.of, &whole.of, sizeof whole.of) == 0);
            CHECK(memcmp(&found, &sum, sizeof sum) == 0);
        }
    }
}

static void integers_are_summed_exactly(void) {
    const int64_t values[] = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 5, -7, 0, INT64_MAX};
    tfwi_range range = tfwi_empty_range;
    tfwi_range_add_ints(&range, values, 8);
    CHECK(range.of.values == 8 && range.of.least == INT64_MIN && range.of.most == INT64_MAX);
    /* In all 2^63 - 5. */
    CHECK_EQ(INT64_MAX >> 32, range.high + (int64_t)(range.low >> 32));
    CHECK_EQ(UINT32_MAX - 4, range.low & UINT32_MAX);
}

int main(void) {
    RUN(floats_of_every_number);
    RUN(floats_that_are_no_numbers);
    RUN(sums_do_not_depend_on_blocks);
    RUN(integers_are_summed_exactly);
    return check_report("range");
}
