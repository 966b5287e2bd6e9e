/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and sums of values, for surveys. */
#ifndef TFWIRE_RANGE_H
#define TFWIRE_RANGE_H

#include "base/common.h"

enum { TFWI_FLOAT_LANES = 8 };

/* The values of a Feature, however they are encoded: its sum is theirs, to the last bit. Integers
 * are summed exactly, in two halves; of floats each lane has every eighth. */
typedef struct tfwi_range {
    tfw_kind_survey of; /* without the sum */
    int64_t high;
    uint64_t low;
    double lanes[TFWI_FLOAT_LANES];
} tfwi_range;

extern const tfwi_range tfwi_empty_range;

void tfwi_range_add_ints(tfwi_range *range, const int64_t *values, size_t count);

/* NaN is neither less nor more than a number, and adds nothing. */
void tfwi_range_add_floats(tfwi_range *range, const float *values, size_t count);

/* The sum of values of this kind; of bytes: of their lengths. */
double tfwi_range_sum(const tfwi_range *range, int32_t kind);

#endif /* TFWIRE_RANGE_H */
