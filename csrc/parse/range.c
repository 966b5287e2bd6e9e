/* Ranges and sums of values. */
#include "parse/range.h"

#include <math.h>

enum { FLOAT_LANES = 8 };

const tfw_kind_survey tfwi_no_values = {
    .least = INT64_MAX, .most = INT64_MIN, .least_float = INFINITY, .most_float = -INFINITY};

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

static void add_each(tfw_kind_survey *k, const float *values, size_t count) {
    float least = INFINITY, most = -INFINITY;
    double sum = 0;
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        const float v = values[i];
        const bool number = v == v;
        least = v < least ? v : least;
        most = v > most ? v : most;
        numbers += number;
        sum += number ? v : 0;
    }
    k->values += count;
    k->nans += count - numbers;
    k->sum += sum;
    k->least_float = least < k->least_float ? least : k->least_float;
    k->most_float = most > k->most_float ? most : k->most_float;
}

/* Adds a multiple of FLOAT_LANES of floats; false, and none: one is NaN, or the sum is. Each lane
 * has a result of its own, so that no step waits for the one before; a loop for each is what
 * compilers make vector code of. */
static bool add_by_lanes(tfw_kind_survey *k, const float *values, size_t count) {
    float least[FLOAT_LANES], most[FLOAT_LANES];
    double sums[FLOAT_LANES] = {0}, sum = 0;
    for (size_t j = 0; j < FLOAT_LANES; j++) {
        least[j] = INFINITY;
        most[j] = -INFINITY;
    }
    for (size_t i = 0; i < count; i += FLOAT_LANES) {
        for (size_t j = 0; j < FLOAT_LANES; j++) {
            sums[j] += values[i + j];
        }
    }
    for (size_t j = 0; j < FLOAT_LANES; j++) {
        sum += sums[j];
    }
    if (sum != sum) { /* isnan of MinGW takes a float */
        return false;
    }
    for (size_t i = 0; i < count; i += FLOAT_LANES) {
        for (size_t j = 0; j < FLOAT_LANES; j++) {
            least[j] = values[i + j] < least[j] ? values[i + j] : least[j];
        }
    }
    for (size_t i = 0; i < count; i += FLOAT_LANES) {
        for (size_t j = 0; j < FLOAT_LANES; j++) {
            most[j] = values[i + j] > most[j] ? values[i + j] : most[j];
        }
    }
    for (size_t j = 0; j < FLOAT_LANES; j++) {
        k->least_float = least[j] < k->least_float ? least[j] : k->least_float;
        k->most_float = most[j] > k->most_float ? most[j] : k->most_float;
    }
    k->values += count;
    k->sum += sum;
    return true;
}

void tfwi_range_add_floats(tfwi_range *range, const float *values, size_t count) {
    size_t done = count - count % FLOAT_LANES;
    if (done == 0 || !add_by_lanes(&range->of, values, done)) {
        done = 0;
    }
    add_each(&range->of, values + done, count - done);
}
