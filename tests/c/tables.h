/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Examples and SequenceExamples, and the columns that must come of them. */
#ifndef TFWIRE_TESTS_TABLES_H
#define TFWIRE_TESTS_TABLES_H

#include "proto.h"
#include "records.h"

enum { RECORDS = 40, LONGEST = 3000 };

/* The number of the record, as many times 5 as it says, if any, and a string of any length. */
static blob example_of(uint64_t *state, size_t number) {
    uint8_t text[LONGEST];
    size_t len = (size_t)(check_random(state) % (number % 5 == 0 ? LONGEST : 40));
    memset(text, (int)number, sizeof text);
    const blob n = entry("n", INTS((int64_t)number));
    const blob s = entry("s", field(1, field(1, raw(text, len))));
    return number % 7 == 6 ? EXAMPLE(n, s)
                           : EXAMPLE(n, s, entry("v", number % 7 == 5   ? raw("", 0)
                                                      : number % 3 != 0 ? INTS(5, 5)
                                                                        : INTS(5)));
}

static file file_of_examples(uint64_t seed, size_t count, bool sequence) {
    file f = {0};
    uint64_t state = 2 * seed + 1;
    file_append(&f, "", 0);
    for (size_t i = 0; i < count; i++) {
        blob message = example_of(&state, i);
        if (sequence) { /* the context is an Example; a list whose steps are two Features */
            blob step = NO_INTS;
            message = JOIN(message, field(2, entry("l", JOIN(field(1, INTS(1)), field(1, step)))));
        }
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    return f;
}

typedef struct table {
    tfw_schema *schema, *list_schema;
    tfw_columns *context, *lists;
    int64_t numbers[RECORDS + 1];
    tfw_column taken[3], list;
} table;

static void table_begin(table *t) {
    void *memory[3] = {t->numbers, NULL, NULL};
    const size_t sizes[3] = {0};
    CHECK_EQ(TFW_OK, tfw_columns_begin(t->context, memory, sizes, RECORDS + 1, NULL));
    if (t->lists != NULL) {
        CHECK_EQ(TFW_OK, tfw_columns_begin(t->lists, memory + 1, sizes, 0, NULL));
    }
}

static table table_new(bool sequence) {
    const tfw_feature features[] = {
        {.name = "n", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 1},
        {.name = "s", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_DENSE, .count = 1},
        {.name = "v", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE},
    };
    const tfw_feature list = {
        .name = "l", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE};
    table t = {0};
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 3, SEED, &t.schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(t.schema, 0, &t.context, NULL));
    if (sequence) {
        CHECK_EQ(TFW_OK, tfw_schema_create(&list, 1, SEED, &t.list_schema, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_create(t.list_schema, TFW_FEATURE_LISTS, &t.lists, NULL));
    }
    return t;
}

static void column_free(tfw_column *column) {
    tfw_free(column->values);
    tfw_free(column->offsets);
    tfw_free(column->splits);
    tfw_free(column->steps);
}

static void table_take(table *t) {
    CHECK_EQ(TFW_OK, tfw_columns_finish(t->context, NULL, t->taken, NULL));
    CHECK(t->taken[0].values == NULL);
    if (t->lists != NULL) {
        CHECK_EQ(TFW_OK, tfw_columns_finish(t->lists, NULL, &t->list, NULL));
    }
}

static void table_free(table *t) {
    for (size_t i = 0; i < 3; i++) {
        column_free(&t->taken[i]);
    }
    column_free(&t->list);
    tfw_columns_free(t->context);
    tfw_columns_free(t->lists);
    tfw_schema_free(t->schema);
    tfw_schema_free(t->list_schema);
}

static void check_column(const tfw_column *a, const tfw_column *b) {
    CHECK_EQ(a->value_count, b->value_count);
    CHECK_EQ(a->byte_count, b->byte_count);
    CHECK_EQ(a->cell_count, b->cell_count);
    CHECK(memcmp(a->values, b->values, (size_t)a->byte_count) == 0);
    if (a->splits != NULL) {
        CHECK(memcmp(a->splits, b->splits, (size_t)(a->cell_count + 1) * 8) == 0);
    }
}

/* The first count records of f are in the columns. */
static void check_table(table *t, const file *f, size_t count) {
    table expected = table_new(t->lists != NULL);
    tfw_span spans[RECORDS];
    for (size_t i = 0; i < count; i++) {
        size_t begin = file_begin(f, i) + TFW_HEADER_SIZE;
        spans[i] = (tfw_span){begin, f->ends[i] - TFW_FOOTER_SIZE - begin};
    }
    table_begin(&expected);
    int status = t->lists != NULL
                     ? tfw_parse_sequence(expected.context, expected.lists, f->data, f->len, spans,
                                          count, 0, NULL, NULL)
                     : tfw_parse(expected.context, f->data, f->len, spans, count, 0, NULL, NULL);
    CHECK_EQ(TFW_OK, status);
    CHECK_EQ(count, tfw_columns_records(t->context));
    table_take(&expected);
    table_take(t);
    CHECK(memcmp(expected.numbers, t->numbers, count * sizeof t->numbers[0]) == 0);
    check_column(&expected.taken[1], &t->taken[1]);
    check_column(&expected.taken[2], &t->taken[2]);
    if (t->lists != NULL) {
        check_column(&expected.list, &t->list);
    }
    table_free(&expected);
}

#endif
