/* SPDX-License-Identifier: Apache-2.0 */
/* Many Examples to many columns: any order of keys, failures that leave no trace, arguments. */
#include "columns.h"

enum { FEATURES = 5, RECORDS = 40 };

static const tfw_feature all_kinds[FEATURES] = {
    {.name = "i", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 2},
    {.name = "f", .name_len = 1, .kind = TFW_FLOAT, .layout = TFW_DENSE, .count = 1},
    {.name = "s", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_DENSE, .count = 1},
    {.name = "v", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE},
    {.name = "t", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_VARIABLE},
};

/* Record r in an order of keys that changes, with keys between that nobody asked for. */
static blob record(int64_t r) {
    const blob entries[FEATURES] = {
        entry("i", INTS(r, -r)), entry("f", FLOATS((float)r)), entry("s", STRING("str")),
        entry("v", r % 3 == 0 ? NO_INTS : r % 3 == 1 ? INTS(r) : INTS(r, r + 1, r + 2)),
        entry("t", r % 2 == 0 ? NOTHING : JOIN(STRING("t"), STRING("uv"))),
    };
    blob all = NOTHING;
    for (int64_t i = 0; i < FEATURES; i++) {
        size_t at = (size_t)(r % 2 == 0 ? i : (i * 2 + r) % FEATURES);
        all = JOIN(all, entries[at], entry("other", STRING("payload")));
    }
    return field(1, all);
}

typedef struct table {
    tfw_schema *schema;
    tfw_columns *columns;
    int64_t int64s[RECORDS * 2];
    float floats[RECORDS];
} table;

static int table_open(table *t) {
    memset(t, 0, sizeof *t);
    int status = tfw_schema_create(all_kinds, FEATURES, SEED, &t->schema, NULL);
    if (status == TFW_OK) {
        status = tfw_columns_create(t->schema, 0, &t->columns, NULL);
    }
    if (status == TFW_OK) {
        CHECK_EQ(TFW_OK, tfw_columns_bind(t->columns, 0, t->int64s, RECORDS, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_bind(t->columns, 1, t->floats, RECORDS, NULL));
    }
    return status;
}

static void table_close(table *t) {
    tfw_columns_free(t->columns);
    tfw_schema_free(t->schema);
}

static blob records_and_spans(tfw_span *spans, int64_t first, size_t count) {
    blob all = NOTHING;
    for (size_t i = 0; i < count; i++) {
        blob one = record(first + (int64_t)i);
        spans[i] = (tfw_span){all.len, one.len};
        all = JOIN(all, one);
    }
    return all;
}

/* Takes the grown columns and compares everything with what records first to first + count hold. */
static int table_check(table *t, int64_t first, size_t count) {
    tfw_column s, v, x;
    int status = tfw_columns_take(t->columns, 2, &s, NULL);
    if (status != TFW_OK) {
        return status;
    }
    status = tfw_columns_take(t->columns, 3, &v, NULL);
    if (status == TFW_OK) {
        status = tfw_columns_take(t->columns, 4, &x, NULL);
    }
    if (status == TFW_OK) {
        CHECK_EQ(count, s.value_count);
        CHECK_EQ(3 * count, s.byte_count);
        int64_t values = 0, strings = 0;
        for (size_t i = 0; i < count; i++) {
            int64_t r = first + (int64_t)i;
            CHECK_EQ(r, t->int64s[2 * i]);
            CHECK_EQ(-r, t->int64s[2 * i + 1]);
            CHECK(t->floats[i] == (float)r);
            CHECK_EQ(3 * (int64_t)i, s.offsets[i]);
            CHECK_EQ(values, v.splits[i]);
            for (int64_t k = 0; k < (r % 3 == 2 ? 3 : r % 3); k++) {
                CHECK_EQ(r + k, ((const int64_t *)v.values)[values++]);
            }
            CHECK_EQ(strings, x.splits[i]);
            strings += r % 2 == 0 ? 0 : 2;
        }
        CHECK_EQ(values, v.value_count);
        CHECK_EQ(8 * values, v.byte_count);
        CHECK_EQ(strings, x.value_count);
        CHECK_EQ(strings / 2 * 3, x.byte_count);
        CHECK_EQ(strings / 2 * 3, x.offsets[strings]);
        free_column(&x);
    }
    free_column(&s);
    free_column(&v);
    return status;
}

static void test_records_in_changing_key_order_fill_all_columns(void) {
    table t;
    tfw_span spans[RECORDS];
    size_t done;
    CHECK_EQ(TFW_OK, table_open(&t));
    for (int64_t round = 0; round < 3; round++) {
        blob all = records_and_spans(spans, round, RECORDS);
        CHECK_EQ(TFW_OK, tfw_parse(t.columns, all.data, all.len, spans, 15, 0, &done, NULL));
        CHECK_EQ(15, done);
        CHECK_EQ(15, tfw_columns_records(t.columns));
        CHECK_EQ(TFW_OK, tfw_parse(t.columns, all.data, all.len, spans + 15, RECORDS - 15, 0,
                                   &done, NULL));
        CHECK_EQ(RECORDS, tfw_columns_records(t.columns));
        CHECK_EQ(TFW_OK, table_check(&t, round, RECORDS));
        CHECK_EQ(TFW_E_ARGUMENT,
                 tfw_parse(t.columns, all.data, all.len, spans, 1, 0, &done, NULL));
        tfw_columns_clear(t.columns);
    }
    table_close(&t);
}

/* A record that fails leaves no trace, wherever it fails. */
static void test_a_failing_record_is_taken_back(void) {
    table t;
    tfw_error error;
    tfw_span spans[RECORDS];
    size_t done;
    blob good = record(3);
    for (size_t cut = 0; cut < good.len; cut++) {
        CHECK_EQ(TFW_OK, table_open(&t));
        blob before = records_and_spans(spans, 0, 3);
        blob bad = field(1, (blob){good.data + 2, cut < good.len - 2 ? cut : 0});
        spans[3] = (tfw_span){before.len, bad.len};
        spans[4] = (tfw_span){before.len + bad.len, good.len};
        blob all = JOIN(before, bad, good);
        CHECK(tfw_parse(t.columns, all.data, all.len, spans, 5, 0, &done, &error) < 0);
        CHECK_EQ(3, done);
        CHECK_EQ(3, error.record);
        CHECK_EQ(3, tfw_columns_records(t.columns));
        CHECK_EQ(TFW_OK, tfw_parse(t.columns, all.data, all.len, spans + 4, 1, 0, &done, &error));
        CHECK_EQ(TFW_OK, table_check(&t, 0, 4));
        table_close(&t);
        blobs_free();
        good = record(3);
    }
}

static void test_arguments_are_checked(void) {
    table t;
    blob good = record(1);
    tfw_span span = {0, good.len}, outside = {1, good.len}, far = {UINT64_MAX, 2};
    tfw_span two[2] = {span, span};
    tfw_column column;
    size_t done = 9;
    CHECK_EQ(TFW_OK, table_open(&t));
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse(t.columns, good.data, good.len, &outside, 1, 0, &done, NULL));
    const tfw_span both[2] = {span, far};
    tfw_error error = {.status = TFW_OK};
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse(t.columns, good.data, good.len, both, 2, 0, &done, &error));
    CHECK_EQ(1, error.record);
    CHECK_EQ(0, done);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_parse(t.columns, good.data, good.len, &far, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_parse(t.columns, good.data, good.len, &span, 1, 64, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_bind(t.columns, 2, t.floats, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_bind(t.columns, 9, t.floats, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_bind(t.columns, 0, NULL, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_bind(t.columns, 0, t.int64s, UINT64_MAX, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_bind(t.columns, 0, t.int64s, 1, NULL));
    void *memory[FEATURES] = {t.int64s, t.floats}, *no_memory[FEATURES] = {NULL};
    const size_t sizes[FEATURES] = {0, 0, 1};
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_begin(t.columns, no_memory, sizes, 1, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_begin(t.columns, memory, sizes, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_parse(t.columns, good.data, good.len, two, 2, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_parse(t.columns, good.data, good.len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_take(t.columns, 0, &column, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_peek(t.columns, 0, &column, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_peek(t.columns, 2, &column, NULL));
    const void *lent = column.values;
    CHECK_EQ(TFW_OK, tfw_columns_take(t.columns, 2, &column, NULL));
    CHECK(lent == column.values);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_peek(t.columns, 2, &(tfw_column){0}, NULL));
    memory[2] = column.values;
    CHECK_EQ(TFW_OK, tfw_columns_begin(t.columns, memory, sizes, 1, NULL));
    CHECK(memory[2] == NULL); /* it is the column's */
    memory[2] = &column;
    CHECK_EQ(TFW_OK, tfw_columns_begin(t.columns, memory, sizes, 1, NULL));
    CHECK(memory[2] == &column); /* the column has some */
    column.values = NULL;
    free_column(&column);
    tfw_columns_clear(t.columns);
    CHECK_EQ(TFW_OK, tfw_parse(t.columns, good.data, good.len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_take(t.columns, 2, &column, NULL));
    free_column(&column);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_take(t.columns, 2, &column, NULL));
    tfw_columns_free(NULL);
    table_close(&t);
}

static void test_columns_without_records(void) {
    table t;
    CHECK_EQ(TFW_OK, table_open(&t));
    CHECK_EQ(TFW_OK, tfw_parse(t.columns, NULL, 0, NULL, 0, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, table_check(&t, 0, 0));
    table_close(&t);
}

static void test_no_features_check_the_outer_form_only(void) {
    tfw_schema *schema;
    tfw_columns *columns;
    CHECK_EQ(TFW_OK, tfw_schema_create(NULL, 0, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    blob good = record(1);
    tfw_span span = {0, good.len};
    CHECK_EQ(TFW_OK, tfw_parse(columns, good.data, good.len, &span, 1, 0, NULL, NULL));
    span.length--;
    CHECK_EQ(TFW_E_WIRE, tfw_parse(columns, good.data, good.len, &span, 1, 0, NULL, NULL));
    /* A garbage collector may free the two in any order. */
    tfw_schema_free(schema);
    tfw_columns_free(columns);
}

static void test_every_failing_allocation_leaves_usable_columns(void) {
#ifdef TFW_TEST_FAULTS
    tfw_span spans[RECORDS];
    blob all = records_and_spans(spans, 0, RECORDS);
    bool complete = false;
    for (long n = 0; !complete; n++) {
        table t;
        size_t done = 0;
        tfwi_test_fail_allocation = n;
        int status = table_open(&t);
        if (status == TFW_OK) {
            status = tfw_parse(t.columns, all.data, all.len, spans, RECORDS, 0, &done, NULL);
            CHECK_EQ(done, tfw_columns_records(t.columns));
        }
        /* The fast path does without memory that it does not get. */
        complete = tfwi_test_fail_allocation >= 0;
        CHECK(status == TFW_OK || (status == TFW_E_MEMORY && !complete));
        tfwi_test_fail_allocation = -1;
        if (t.columns != NULL) { /* it goes on where it stopped */
            CHECK_EQ(TFW_OK, tfw_parse(t.columns, all.data, all.len, spans + done, RECORDS - done,
                                       0, NULL, NULL));
            CHECK_EQ(TFW_OK, table_check(&t, 0, RECORDS));
        }
        table_close(&t);
    }
    table t;
    CHECK_EQ(TFW_OK, table_open(&t));
    for (long n = 0; n < 3; n++) { /* taking untouched columns allocates */
        tfw_column column;
        tfwi_test_fail_allocation = n;
        CHECK_EQ(TFW_E_MEMORY, tfw_columns_take(t.columns, 4, &column, NULL));
        CHECK(column.values == NULL && column.offsets == NULL && column.splits == NULL);
        tfwi_test_fail_allocation = -1;
        table_close(&t);
        CHECK_EQ(TFW_OK, table_open(&t));
    }
    table_close(&t);
#endif
}

int main(void) {
    RUN(test_records_in_changing_key_order_fill_all_columns);
    RUN(test_a_failing_record_is_taken_back);
    RUN(test_arguments_are_checked);
    RUN(test_columns_without_records);
    RUN(test_no_features_check_the_outer_form_only);
    RUN(test_every_failing_allocation_leaves_usable_columns);
    blobs_free();
    return check_report("parse_many");
}
