/* SPDX-License-Identifier: Apache-2.0 */
/* What is null in Arrow data: features that are absent or have no kind, and steps without a kind.
 * Of failed records and of entries that come again nothing is left; every allocation may fail. */
#include "arrow_records.h"

#define LIST(name, ...) field(2, entry(name, JOIN(__VA_ARGS__)))
#define STEP(...) field(1, JOIN(__VA_ARGS__))
#define STEP_OF_NO_KIND field(1, NOTHING)

enum { FLAGS = TFW_OWN_NUMBERS | TFW_NOTE_ABSENT };

/* A context feature v, beside two features in the lists: w, and rows of it by p. */
typedef struct setting {
    tfw_schema *context, *lists;
    tfw_arrow_layout *layout;
    file records;
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
    setting s = {.records = {0}};
    file_append(&s.records, "", 0);
    CHECK_EQ(TFW_OK, tfw_schema_create(&context, 1, SEED, &s.context, NULL));
    CHECK_EQ(TFW_OK, tfw_schema_create(lists, 2, SEED, &s.lists, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(fields, 3, s.context, s.lists, TFW_ARROW_SEQUENCE,
                                             &s.layout, NULL));
    return s;
}

static void setting_free(setting *s) {
    tfw_arrow_layout_free(s->layout);
    free(s->records.data);
}

static void add_record(setting *s, blob message) {
    file_append_record(&s->records, message.data, message.len);
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

/* What is null of the first count records. */
static void expect(const setting *s, uint64_t count, const char *v, const char *w,
                   const char *w_steps, const char *rows_steps) {
    tfw_chunk *chunk = chunk_of(s->context, s->lists, &s->records);
    struct ArrowArray *array;
    CHECK_EQ(TFW_OK, tfw_arrow_chunk_create(s->layout, chunk, 0, count, NULL, &array, NULL));
    tfw_chunk_release(chunk);
    CHECK(strcmp(v, validity(array->children[0])) == 0);
    CHECK(strcmp(w, validity(array->children[1])) == 0);
    CHECK(strcmp(w_steps, validity(array->children[1]->children[0])) == 0);
    CHECK(strcmp(rows_steps, validity(array->children[2]->children[0])) == 0);
    tfw_arrow_array_free(array);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

/* Each adds to what is null; p has as many steps as w. */
enum { ADDED = 4 };

static void make_messages(blob out[ADDED]) {
    out[0] = JOIN(field(1, entry("v", INTS(1))), LIST("w", STEP(INTS(1)), STEP_OF_NO_KIND),
                  LIST("p", STEP(INTS(1)), STEP_OF_NO_KIND));
    out[1] = JOIN(field(1, entry("v", NOTHING)), LIST("w", STEP(NO_INTS)),
                  LIST("p", STEP_OF_NO_KIND));
    out[2] = field(1, entry("v", NO_INTS));
    out[3] = LIST("w", NOTHING);
}

static void add_records(setting *s) {
    blob messages[ADDED];
    make_messages(messages);
    for (size_t i = 0; i < ADDED; i++) {
        add_record(s, messages[i]);
    }
}

static void absent_and_without_a_kind_are_null(void) {
    setting s = setting_new();
    add_records(&s);
    expect(&s, 4, "1010", "1101", "101", "101");
    add_records(&s);
    expect(&s, 2, "10", "..", "101", "101"); /* rows: w has a kind, p has none */
    expect(&s, 0, "", "", "", "");
    setting_free(&s);
    blobs_free();
}

static void what_is_dropped_is_not_null(void) {
    setting s = setting_new();
    const blob first = LIST("w", STEP_OF_NO_KIND, STEP_OF_NO_KIND, STEP(INTS(1)));
    const blob wrong = JOIN(first, LIST("p", STEP_OF_NO_KIND, STEP(FLOATS(1))));
    const blob steps = JOIN(LIST("w", STEP(INTS(1)), STEP_OF_NO_KIND),
                            LIST("p", STEP(INTS(1)), STEP(NO_INTS)));
    add_record(&s, JOIN(first, steps));
    add_record(&s, wrong); /* the last: the cells past it do not exist */
    expect(&s, 1, "0", ".", "10", "..");
    setting_free(&s);
    s = setting_new();
    add_record(&s, wrong);
    add_record(&s, JOIN(LIST("w", STEP(INTS(1))), LIST("p", STEP(INTS(1)))));
    add_record(&s, steps);
    expect(&s, 2, "00", "..", "110", "...");
    setting_free(&s);
    blobs_free();
}

/* Of columns that note what is null: false, if one has failed. */
static bool parse_all(const setting *s, const blob messages[ADDED], long failing) {
    tfw_columns *context = NULL, *lists = NULL;
    int status = TFW_OK;
    CHECK_EQ(TFW_OK, tfw_columns_create(s->context, FLAGS, &context, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(s->lists, FLAGS | TFW_FEATURE_LISTS, &lists, NULL));
    tfwi_test_fail_allocation = failing;
    for (size_t i = 0; status == TFW_OK && i < ADDED; i++) {
        const tfw_span span = {0, messages[i].len};
        status = tfw_parse_sequence(context, lists, messages[i].data, messages[i].len, &span, 1,
                                    0, NULL, NULL);
    }
    tfwi_test_fail_allocation = -1;
    CHECK(status == TFW_OK || status == TFW_E_MEMORY);
    tfw_columns_free(context);
    tfw_columns_free(lists);
    return status == TFW_OK;
}

static void every_allocation_may_fail(void) {
    setting s = setting_new();
    blob messages[ADDED];
    struct ArrowArray *array = NULL;
    long n = 0;
    make_messages(messages);
    while (!parse_all(&s, messages, n)) {
        n++;
    }
    CHECK(n > 0);
    add_records(&s);
    tfw_chunk *chunk = chunk_of(s.context, s.lists, &s.records);
    for (n = 0; array == NULL; n++) {
        tfwi_test_fail_allocation = n;
        const int status = tfw_arrow_chunk_create(s.layout, chunk, 0, ADDED, NULL, &array, NULL);
        tfwi_test_fail_allocation = -1;
        CHECK(status == (array != NULL ? TFW_OK : TFW_E_MEMORY) && n < 200);
        CHECK_EQ(array == NULL, atomic_load(&tfwi_test_buffers) == 0);
    }
    tfw_arrow_array_free(array);
    tfw_chunk_release(chunk);
    setting_free(&s);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    blobs_free();
}

/* ---- Scalars -------------------------------------------------------------------------------- */

static tfw_arrow_layout *layout_of_scalars(int32_t strings, tfw_schema **out_schema) {
    const tfw_feature features[] = {feature("i", TFW_INT64, TFW_VARIABLE, 0),
                                    feature("f", TFW_FLOAT, TFW_VARIABLE, 0),
                                    feature("s", TFW_BYTES, TFW_VARIABLE, 0)};
    const tfw_arrow_field fields[] = {
        {.name = "i", .is_scalar = 1},
        {.name = "f", .column = 1, .is_scalar = 1},
        {.name = "s", .column = 2, .is_scalar = 1, .strings = strings},
    };
    tfw_arrow_layout *layout;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 3, SEED, out_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(fields, 3, *out_schema, NULL, 0, &layout, NULL));
    return layout;
}

static void scalars_without_a_value_are_null(void) {
    file f = {0};
    file_append(&f, "", 0);
    const blob records[] = {
        EXAMPLE(JOIN(entry("i", INTS(7)), entry("f", FLOATS(2)), entry("s", STRING("ab")))),
        EXAMPLE(JOIN(entry("i", NOTHING), entry("s", STRING("c")))),
        EXAMPLE(JOIN(entry("f", FLOATS(3)), entry("i", NO_INTS), entry("s", STRING("")))),
        EXAMPLE(JOIN(entry("f", FLOATS(4)), entry("i", INTS(8)), entry("s", STRING("\xff")))),
        EXAMPLE(entry("f", JOIN(FLOATS(4), FLOATS(5)))),
    };
    for (size_t i = 0; i < COUNT(records); i++) {
        file_append_record(&f, records[i].data, records[i].len);
    }
    for (int32_t strings = TFW_LARGE_BINARY; strings <= TFW_STRING; strings++) {
        tfw_schema *schema;
        tfw_arrow_layout *layout = layout_of_scalars(strings, &schema);
        tfw_chunk *chunk = chunk_of(schema, NULL, &f);
        struct ArrowArray *array;
        tfw_error error;
        CHECK_EQ(TFW_E_COUNT,
                 tfw_arrow_chunk_create(layout, chunk, 0, 5, NULL, &array, &error));
        CHECK(error.record == 4 && error.feature == 1);
        if (strings >= TFW_LARGE_STRING) {
            CHECK_EQ(TFW_E_WIRE,
                     tfw_arrow_chunk_create(layout, chunk, 0, 4, NULL, &array, &error));
            CHECK(error.record == 3 && error.feature == 2);
        }
        for (long n = 0, status = TFW_E_MEMORY; status != TFW_OK; n++) {
            tfwi_test_fail_allocation = n;
            status = tfw_arrow_chunk_create(layout, chunk, 0, 3, NULL, &array, NULL);
            tfwi_test_fail_allocation = -1;
            CHECK((status == TFW_OK || status == TFW_E_MEMORY) && n < 200);
        }
        tfw_chunk_release(chunk);
        tfw_arrow_layout_free(layout);
        CHECK(strcmp("100", validity(array->children[0])) == 0);
        CHECK(strcmp("101", validity(array->children[1])) == 0);
        CHECK(strcmp("...", validity(array->children[2])) == 0);
        CHECK_EQ(7, ((const int64_t *)array->children[0]->buffers[1])[0]);
        CHECK(((const float *)array->children[1]->buffers[1])[2] >= 3);
        CHECK(memcmp("abc", array->children[2]->buffers[2], 3) == 0);
        tfw_arrow_array_free(array);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    }
    free(f.data);
    blobs_free();
}

int main(void) {
    RUN(absent_and_without_a_kind_are_null);
    RUN(what_is_dropped_is_not_null);
    RUN(every_allocation_may_fail);
    RUN(scalars_without_a_value_are_null);
    return check_report("nulls");
}
