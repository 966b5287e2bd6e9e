/* SPDX-License-Identifier: Apache-2.0 */
/* Features to ask for, and columns to free. */
#ifndef TFWIRE_TESTS_COLUMNS_H
#define TFWIRE_TESTS_COLUMNS_H

#include "proto.h"

static inline tfw_feature feature(const char *name, int32_t kind, int32_t layout, uint64_t count) {
    return (tfw_feature){.name = name, .name_len = strlen(name), .kind = kind, .layout = layout,
                         .count = count};
}

static inline void free_column(tfw_column *column) {
    tfw_free(column->values);
    tfw_free(column->offsets);
    tfw_free(column->splits);
    tfw_free(column->steps);
    tfw_free(column->absent);
}

#endif
