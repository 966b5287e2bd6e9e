/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and sums of values. */
#include "parse/range.h"

#include <math.h>

const tfwi_range tfwi_empty_range = {.of = {.least = INT64_MAX, .most = INT64_MIN,
                                            .least_float = INFINITY, .most_float = -INFINITY}};

void tfwi_range_add_ints(tfwi_range *range, const int64_t *values, size_t count) {
    tfw_kind_survey *k = &range->of;
    int64_t least = k->least, most = k->most;
    for (size_t i = 0; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
        range->high += values[i] >> 32;
        range->low += (uint64_t)values[i] & UINT32_MAX;
    }
    k->values += count;
    k->least = least;
    k->most = most;
}

static void add_each(tfwi_range *range, const float *values, size_t count) {
    tfw_kind_survey *k = &range->of;
    double least = k->least_float, most = k->most_float;
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        const float v = values[i];
        const bool number = v == v;
        least = v < least ? v : least;
        most = v > most ? v : most;
        numbers += number;
        range->lanes[(k->values + i) % TFWI_FLOAT_LANES] += number ? v : 0;
    }
    k->values += count;
    k->nans += count - numbers;
    k->least_float = least;
    k->most_float = most;
}

static double sum_of_lanes(const double *lanes) {
    double sum = 0;
    for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
        sum += lanes[j];
    }
    return sum;
}

/* Adds floats to all lanes, from the first on; false, and none: one is NaN, or a sum would be. No
 * step waits for the one before; a loop for each result is what compilers make vector code of. */
static bool add_by_lanes(tfwi_range *range, const float *values, size_t count) {
    float least[TFWI_FLOAT_LANES], most[TFWI_FLOAT_LANES];
    double lanes[TFWI_FLOAT_LANES];
    for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
        least[j] = INFINITY;
        most[j] = -INFINITY;
        lanes[j] = range->lanes[j];
    }
    for (size_t i = 0; i < count; i += TFWI_FLOAT_LANES) {
        for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
            lanes[j] += values[i + j];
        }
    }
    const double sum = sum_of_lanes(lanes);
    if (sum != sum) { /* isnan of MinGW takes a float */
        return false;
    }
    for (size_t i = 0; i < count; i += TFWI_FLOAT_LANES) {
        for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
            least[j] = values[i + j] < least[j] ? values[i + j] : least[j];
        }
    }
    for (size_t i = 0; i < count; i += TFWI_FLOAT_LANES) {
        for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
            most[j] = values[i + j] > most[j] ? values[i + j] : most[j];
        }
    }
    tfw_kind_survey *k = &range->of;
    for (size_t j = 0; j < TFWI_FLOAT_LANES; j++) {
        range->lanes[j] = lanes[j];
        k->least_float = least[j] < k->least_float ? least[j] : k->least_float;
        k->most_float = most[j] > k->most_float ? most[j] : k->most_float;
    }
    k->values += count;
    return true;
}

void tfwi_range_add_floats(tfwi_range *range, const float *values, size_t count) {
    size_t before = (size_t)(-range->of.values % TFWI_FLOAT_LANES); /* until the first lane */
    before = before < count ? before : count;
    add_each(range, values, before);
    values += before;
    count -= before;
    size_t done = count - count % TFWI_FLOAT_LANES;
    if (done == 0 || !add_by_lanes(range, values, done)) {
        done = 0;
    }
    add_each(range, values + done, count - done);
}

double tfwi_range_sum(const tfwi_range *range, int32_t kind) {
    return kind == TFW_FLOAT ? sum_of_lanes(range->lanes)
                             : (double)range->high * 0x1p32 + (double)range->low;
}
