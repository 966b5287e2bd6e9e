/* Ranges and sums of values, for surveys. */
#ifndef TFWIRE_RANGE_H
#define TFWIRE_RANGE_H

#include "base/common.h"

extern const tfw_kind_survey tfwi_no_values;

/* The values of a Feature. Integers are summed exactly, in two halves: the sum is that of their
 * values, however they are encoded. */
typedef struct tfwi_range {
    tfw_kind_survey of; /* its sum is that of floats */
    int64_t high;
    uint64_t low;
} tfwi_range;

void tfwi_range_add_ints(tfwi_range *range, const int64_t *values, size_t count);

/* NaN is neither less nor more than a number. */
void tfwi_range_add_floats(tfwi_range *range, const float *values, size_t count);

#endif /* TFWIRE_RANGE_H */
