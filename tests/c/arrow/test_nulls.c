/* SPDX-License-Identifier: Apache-2.0 */
/* What is null in Arrow data: features that are absent or have no kind, and steps without a kind.
 * Of failed records and of entries that come again nothing is left; every allocation may fail. */
#include "columns.h"
#include "proto.h"

#include "arrow/export.h"

#include <stdatomic.h>

extern atomic_long tfwi_test_buffers;

#define LIST(name, ...) field(2, entry(name, JOIN(__VA_ARGS__)))
#define STEP(...) field(1, JOIN(__VA_ARGS__))
#define STEP_OF_NO_KIND field(1, NOTHING)

enum { FLAGS = TFW_OWN_NUMBERS | TFW_NOTE_ABSENT };

/* A context feature v, beside two features in the lists: w, and rows of it by p. */
typedef struct setting {
    tfw_schema *context, *lists;
    tfw_columns *parts[2];
    tfw_arrow_layout *layout;
} setting;

static setting setting_new(void) {
    static const tfw_partition rows = {.kind = TFW_ROW_LENGTHS, .column = 1};
    const tfw_feature context = feature("v", TFW_INT64, TFW_VARIABLE, 0);
    const tfw_feature lists[] = {feature("w", TFW_INT64, TFW_VARIABLE, 0),
                                 feature("p", TFW_INT64, TFW_VARIABLE, 0)};
    const tfw_arrow_field fields[] = {
        {.name = "v"},
        {.name = "w", .is_list = true},
        {.name = "rows", .is_list = true, .partitions = &rows, .partition_count = 1},
    };
    setting s;
    CHECK_EQ(TFW_OK, tfw_schema_create(&context, 1, SEED, &s.context, NULL));
    CHECK_EQ(TFW_OK, tfw_schema_create(lists, 2, SEED, &s.lists, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(s.context, FLAGS, &s.parts[0], NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(s.lists, FLAGS | TFW_FEATURE_LISTS, &s.parts[1], NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(fields, 3, s.context, s.lists, TFW_ARROW_SEQUENCE,
                                             &s.layout, NULL));
    return s;
}

static void setting_free(setting *s) {
    tfw_columns_free(s->parts[0]);
    tfw_columns_free(s->parts[1]);
    tfw_arrow_layout_free(s->layout);
}

static int parse(setting *s, blob message) {
    const tfw_span span = {0, message.len};
    return tfw_parse_sequence(s->parts[0], s->parts[1], message.data, message.len, &span, 1, 0,
                              NULL, NULL);
}

/* The validity of an array's elements, a character for each; a dot: it has no bitmap. */
static const char *validity(const struct ArrowArray *a) {
    static char text[64];
    const uint8_t *bits = a->buffers[0];
    int64_t nulls = 0;
    for (int64_t i = 0; i < a->length; i++) {
        text[i] = bits == NULL ? '.' : (bits[i / 8] >> i % 8 & 1) != 0 ? '1' : '0';
        nulls += text[i] == '0';
    }
    text[a->length] = '\0';
    CHECK_EQ(nulls, a->null_count);
    return text;
}

static void expect(setting *s, const char *v, const char *w, const char *w_steps,
                   const char *rows_steps) {
    struct ArrowArray *array;
    const size_t records = tfw_columns_records(s->parts[0]);
    CHECK_EQ(TFW_OK, tfw_arrow_array_create(s->layout, s->parts[0], s->parts[1], records, NULL,
                                            &array, NULL));
    CHECK(strcmp(v, validity(array->children[0])) == 0);
    CHECK(strcmp(w, validity(array->children[1])) == 0);
    CHECK(strcmp(w_steps, validity(array->children[1]->children[0])) == 0);
    CHECK(strcmp(rows_steps, validity(array->children[2]->children[0])) == 0);
    tfw_arrow_array_free(array);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

/* Each record adds to what is null; p has as many steps as w. */
static void add_records(setting *s, bool good) {
    const blob messages[] = {
        JOIN(field(1, entry("v", INTS(1))), LIST("w", STEP(INTS(1)), STEP_OF_NO_KIND),
             LIST("p", STEP(INTS(1)), STEP_OF_NO_KIND)),
        JOIN(field(1, entry("v", NOTHING)), LIST("w", STEP(NO_INTS)), LIST("p", STEP_OF_NO_KIND)),
        field(1, entry("v", NO_INTS)),
        LIST("w", NOTHING),
    };
    for (size_t i = 0; i < COUNT(messages); i++) {
        const int status = parse(s, messages[i]);
        CHECK(status == TFW_OK || (!good && status == TFW_E_MEMORY));
    }
}

static void absent_and_without_a_kind_are_null(void) {
    setting s = setting_new();
    add_records(&s, true);
    expect(&s, "1010", "1101", "101", "101");
    add_records(&s, true);
    tfw_columns_truncate(s.parts[0], 2);
    tfw_columns_truncate(s.parts[1], 2);
    expect(&s, "10", "..", "101", "101"); /* rows: w has a kind, p has none */
    expect(&s, "", "", "", "");
    setting_free(&s);
    blobs_free();
}

static void what_is_dropped_is_not_null(void) {
    setting s = setting_new();
    const blob first = LIST("w", STEP_OF_NO_KIND, STEP_OF_NO_KIND, STEP(INTS(1)));
    const blob wrong = JOIN(first, LIST("p", STEP_OF_NO_KIND, STEP(FLOATS(1))));
    const blob steps = JOIN(LIST("w", STEP(INTS(1)), STEP_OF_NO_KIND),
                            LIST("p", STEP(INTS(1)), STEP(NO_INTS)));
    CHECK_EQ(TFW_OK, parse(&s, JOIN(first, steps)));
    CHECK_EQ(TFW_E_KIND, parse(&s, wrong)); /* the last: the cells past it do not exist */
    expect(&s, "0", ".", "10", "..");
    CHECK_EQ(TFW_E_KIND, parse(&s, wrong));
    CHECK_EQ(TFW_OK, parse(&s, JOIN(LIST("w", STEP(INTS(1))), LIST("p", STEP(INTS(1))))));
    CHECK_EQ(TFW_OK, parse(&s, steps));
    expect(&s, "00", "..", "110", "...");
    setting_free(&s);
    blobs_free();
}

static void every_allocation_may_fail(void) {
    struct ArrowArray *array = NULL;
    int status = TFW_E_MEMORY;
    for (long n = 0; status != TFW_OK; n++) {
        setting s = setting_new();
        tfwi_test_fail_allocation = n;
        add_records(&s, false);
        const size_t records = tfw_columns_records(s.parts[0]);
        status = tfw_arrow_array_create(s.layout, s.parts[0], s.parts[1], records, NULL, &array,
                                        NULL);
        status = records == 4 ? status : TFW_E_MEMORY;
        CHECK(status == TFW_OK || (status == TFW_E_MEMORY && n < 200));
        tfwi_test_fail_allocation = -1;
        tfw_arrow_array_free(array);
        setting_free(&s);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
        blobs_free();
    }
}

int main(void) {
    RUN(absent_and_without_a_kind_are_null);
    RUN(what_is_dropped_is_not_null);
    RUN(every_allocation_may_fail);
    return check_report("nulls");
}
