/* SPDX-License-Identifier: Apache-2.0 */
/* One Example at a time. */
#include "columns.h"

enum { CAPACITY = 8 };

/* Strings of one and two per record, a number, and strings that are not dense. */
typedef struct parser {
    tfw_schema *schema;
    tfw_columns *columns;
    int64_t number;
    uint8_t *strings; /* CAPACITY bytes, up to an unreadable page */
    guarded page;
    int64_t ends[3];
} parser;

static void parser_open(parser *p) {
    const tfw_feature features[] = {
        feature("s", TFW_BYTES, TFW_DENSE, 1),
        feature("v", TFW_BYTES, TFW_VARIABLE, 0),
        feature("i", TFW_INT64, TFW_DENSE, 1),
        feature("t", TFW_BYTES, TFW_DENSE, 2),
    };
    CHECK_EQ(TFW_OK, tfw_schema_create(features, COUNT(features), SEED, &p->schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(p->schema, 0, &p->columns, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_bind(p->columns, 2, &p->number, 1, NULL));
    p->page = guarded_new(CAPACITY, true);
    p->strings = p->page.data;
}

static void parser_close(parser *p) {
    tfw_columns_free(p->columns);
    tfw_schema_free(p->schema);
    blobs_free();
    guarded_free(p->page);
}

static int parse(parser *p, blob message, tfw_error *error) {
    return tfw_parse_one(p->columns, message.data, message.len, 0, p->strings, CAPACITY, p->ends,
                         error);
}

/* A bytes_list of one string. */
static blob strings(const char *text) {
    return field(TFW_BYTES, field(1, raw(text, strlen(text))));
}

static blob record(const char *s, const char *t, const char *u) {
    return EXAMPLE(entry("i", INTS(7)), entry("t", JOIN(strings(t), strings(u))),
                   entry("v", strings("not dense")), entry("s", strings(s)));
}

static void test_strings_lie_side_by_side(void) {
    parser p;
    parser_open(&p);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(TFW_OK, parse(&p, record("ab", "", "cde"), NULL));
        CHECK_EQ(7, p.number);
        CHECK(memcmp("abcde", p.strings, 5) == 0);
        CHECK_EQ(2, p.ends[0]);
        CHECK_EQ(2, p.ends[1]);
        CHECK_EQ(5, p.ends[2]);
        CHECK_EQ(1, tfw_columns_records(p.columns));
    }
    CHECK_EQ(TFW_OK, parse(&p, record("", "", ""), NULL));
    CHECK_EQ(0, p.ends[2]);
    CHECK_EQ(TFW_OK, parse(&p, record("1234", "5678", ""), NULL));
    CHECK(memcmp("12345678", p.strings, 8) == 0);
    parser_close(&p);
}

static void test_strings_that_have_no_room_stay_in_the_columns(void) {
    parser p;
    tfw_column column;
    parser_open(&p);
    CHECK_EQ(TFW_NEED_SPACE, parse(&p, record("ab", "", "1234567"), NULL));
    CHECK_EQ(TFW_OK, tfw_columns_peek(p.columns, 3, &column, NULL));
    CHECK_EQ(2, column.value_count);
    CHECK(memcmp("1234567", column.values, 7) == 0);
    CHECK_EQ(TFW_NEED_SPACE, parse(&p, record("123456789", "", ""), NULL));
    CHECK_EQ(TFW_OK, parse(&p, record("ab", "", ""), NULL));
    parser_close(&p);
}

static void test_misfits_are_told_and_leave_nothing(void) {
    parser p;
    tfw_error error;
    parser_open(&p);
    CHECK_EQ(TFW_OK, parse(&p, record("ab", "", ""), NULL));
    CHECK_EQ(TFW_E_MISSING, parse(&p, EXAMPLE(entry("i", INTS(1))), &error));
    CHECK_EQ(0, error.feature);
    CHECK_EQ(0, tfw_columns_records(p.columns));
    CHECK_EQ(TFW_E_WIRE, parse(&p, RAW("\x0a\x05"), &error));
    CHECK_EQ(TFW_OK, parse(&p, record("ab", "", ""), NULL));
    parser_close(&p);
}

int main(void) {
    RUN(test_strings_lie_side_by_side);
    RUN(test_strings_that_have_no_room_stay_in_the_columns);
    RUN(test_misfits_are_told_and_leave_nothing);
    return check_report("single");
}
