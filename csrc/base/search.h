/* SPDX-License-Identifier: Apache-2.0 */
/* Searching in offsets. */
#ifndef TFWIRE_SEARCH_H
#define TFWIRE_SEARCH_H

#include "base/common.h"

/* The row that holds an item: the last that does not begin after it. splits has rows + 1 entries,
 * which do not decrease. */
TFWI_INLINE size_t tfwi_row_of(const int64_t *splits, size_t rows, int64_t item) {
    size_t low = 0, high = rows; /* it is in [low, high) */
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (splits[middle] <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* How many of count increasing numbers are below a limit. */
TFWI_INLINE size_t tfwi_count_below(const int64_t *numbers, size_t count, int64_t limit) {
    return count == 0 || numbers[0] >= limit ? 0 : tfwi_row_of(numbers, count, limit - 1) + 1;
}

#endif /* TFWIRE_SEARCH_H */
