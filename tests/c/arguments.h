/* SPDX-License-Identifier: Apache-2.0 */
/* What functions are called with at the edges: buffers of an exact size, and numbers. */
#ifndef TFWIRE_TESTS_ARGUMENTS_H
#define TFWIRE_TESTS_ARGUMENTS_H

#include "proto.h"

#include "records/frame.h"

enum { PAYLOAD = 40, FRAMED = PAYLOAD + TFWI_FRAME_SIZE };

static const uint64_t EDGES[] = {
    0, 1, 2, 4, 11, 12, 13, 16, PAYLOAD, FRAMED - 1, FRAMED, FRAMED + 1, INT32_MAX, UINT32_MAX,
    (uint64_t)INT32_MAX + 1, (uint64_t)UINT32_MAX + 1, INT64_MAX - 16, INT64_MAX,
    (uint64_t)INT64_MAX + 1, UINT64_MAX - FRAMED, UINT64_MAX - 16, UINT64_MAX - 1, UINT64_MAX};

enum { NUM_EDGES = sizeof EDGES / sizeof EDGES[0] };

/* Sizes of 32 bits: the largest for all that are larger. */
static inline size_t size_edge(size_t i) {
    return EDGES[i] < SIZE_MAX ? (size_t)EDGES[i] : SIZE_MAX;
}

#define FOR_EDGES(i) for (size_t i = 0; i < NUM_EDGES; i++)

static inline uint8_t *exactly(const void *data, size_t len) {
    uint8_t *copy = malloc(len != 0 ? len : 1);
    if (len != 0) {
        memcpy(copy, data, len);
    }
    return copy;
}

/* A record of PAYLOAD bytes in its frame. */
static inline uint8_t *framed_record(void) {
    uint8_t *data = malloc(FRAMED);
    const tfw_span span = {TFW_HEADER_SIZE, PAYLOAD};
    for (size_t i = 0; i < FRAMED; i++) {
        data[i] = (uint8_t)i;
    }
    CHECK_EQ(TFW_OK, tfw_frame(data, FRAMED, &span, 1, NULL));
    return data;
}

static inline blob example(void) {
    return EXAMPLE(entry("i", INTS(7)), entry("s", field(TFW_BYTES, field(1, RAW("text")))));
}

/* Dense: a number and a string; of a feature list: numbers. */
typedef struct table {
    tfw_schema *schema, *list_schema;
    tfw_columns *columns, *lists;
    int64_t number;
} table;

static inline void table_open(table *t) {
    const tfw_feature features[] = {
        {.name = "i", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 1},
        {.name = "s", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_DENSE, .count = 1},
    };
    const tfw_feature list = {
        .name = "l", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE};
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 2, SEED, &t->schema, NULL));
    CHECK_EQ(TFW_OK, tfw_schema_create(&list, 1, SEED, &t->list_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(t->schema, 0, &t->columns, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(t->list_schema, TFW_FEATURE_LISTS, &t->lists, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_bind(t->columns, 0, &t->number, 1, NULL));
}

static inline void table_close(table *t) {
    tfw_columns_free(t->columns);
    tfw_columns_free(t->lists);
    tfw_schema_free(t->schema);
    tfw_schema_free(t->list_schema);
}

#endif
