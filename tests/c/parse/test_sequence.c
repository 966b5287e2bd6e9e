/* SPDX-License-Identifier: Apache-2.0 */
/* Serialized SequenceExamples to columns. */
#include "columns.h"

/* A map entry whose value is a FeatureList of these Features. */
#define LIST(key, ...) \
    list_entry(key, (const blob[]){__VA_ARGS__}, sizeof((const blob[]){__VA_ARGS__}) / sizeof(blob))
#define LISTS(...) field(2, JOIN(__VA_ARGS__))

static blob steps_of(const blob *features, size_t count) {
    blob all = NOTHING;
    for (size_t i = 0; i < count; i++) {
        all = JOIN(all, field(1, features[i]));
    }
    return all;
}

static blob list_entry(const char *key, const blob *features, size_t count) {
    return entry(key, steps_of(features, count));
}

/* ---- One list or one context feature -------------------------------------------------------- */

/* What one message gave: a text such as "[1 2][]" for steps, "{5}" for a context cell. */
typedef struct outcome {
    int status;
    tfw_error error;
    char text[400];
} outcome;

static void say(outcome *out, const char *text) {
    size_t len = strlen(out->text);
    snprintf(out->text + len, sizeof out->text - len, "%s", text);
}

static void say_value(outcome *out, const tfw_column *column, int32_t kind, int64_t i) {
    char text[64];
    if (kind == TFW_BYTES) {
        snprintf(text, sizeof text, "%.*s", (int)(column->offsets[i + 1] - column->offsets[i]),
                 (const char *)column->values + column->offsets[i]);
    } else if (kind == TFW_INT64) {
        snprintf(text, sizeof text, "%lld", (long long)((const int64_t *)column->values)[i]);
    } else {
        snprintf(text, sizeof text, "%g", (double)((const float *)column->values)[i]);
    }
    say(out, text);
}

static void say_cells(outcome *out, const tfw_column *column, const tfw_feature *asked,
                      int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; cell++) {
        bool ragged = column->splits != NULL;
        int64_t first = ragged ? column->splits[cell] : cell * (int64_t)asked->count;
        int64_t stop = ragged ? column->splits[cell + 1] : first + (int64_t)asked->count;
        say(out, "[");
        for (int64_t i = first; i < stop; i++) {
            say(out, i > first ? " " : "");
            say_value(out, column, asked->kind, i);
        }
        say(out, "]");
    }
}

/* Parses one message, which ends at an unreadable page, by one feature. */
static outcome parse_as(tfw_feature asked, bool list, blob message, unsigned flags) {
    outcome out = {.status = 0};
    tfw_schema *schema;
    tfw_columns *columns;
    int64_t bound[8] = {0};
    bool grown = list || asked.layout != TFW_DENSE || asked.kind == TFW_BYTES;
    CHECK_EQ(TFW_OK, tfw_schema_create(&asked, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, list ? TFW_FEATURE_LISTS : 0, &columns, NULL));
    if (!grown) {
        CHECK_EQ(TFW_OK, tfw_columns_bind(columns, 0, bound, 1, NULL));
    }
    guarded page = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(page.data, message.data, message.len);
    }
    tfw_span span = {0, message.len};
    size_t done;
    out.status = tfw_parse_sequence(list ? NULL : columns, list ? columns : NULL, page.data,
                                    message.len, &span, 1, flags, &done, &out.error);
    CHECK_EQ(out.status == TFW_OK, done);
    CHECK_EQ(done, tfw_columns_records(columns));
    if (grown) {
        tfw_column column;
        CHECK_EQ(TFW_OK, tfw_columns_take(columns, 0, &column, NULL));
        CHECK_EQ(list, column.steps != NULL);
        CHECK_EQ(0, list ? column.steps[0] : 0);
        CHECK_EQ(column.cell_count, list ? (uint64_t)column.steps[done] : done);
        say_cells(&out, &column, &asked, 0, (int64_t)column.cell_count);
        free_column(&column);
    } else if (out.status == TFW_OK) {
        say_cells(&out, &(tfw_column){.values = bound}, &asked, 0, 1);
    }
    guarded_free(page);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    return out;
}

static void expect_text(const char *expected, outcome actual) {
    CHECK_EQ(TFW_OK, actual.status);
    if (strcmp(expected, actual.text) != 0) {
        fprintf(stderr, "expected %s, found %s\n", expected, actual.text);
    }
    CHECK(strcmp(expected, actual.text) == 0);
}

static outcome dense_list(int32_t kind, uint64_t count, blob message) {
    return parse_as(feature("a", kind, TFW_DENSE, count), true, message, 0);
}

static outcome variable_list(int32_t kind, blob message) {
    return parse_as(feature("a", kind, TFW_VARIABLE, 0), true, message, 0);
}

static void expect_failure(int status, int64_t row, int64_t expected, int64_t found,
                           outcome actual) {
    CHECK_EQ(status, actual.status);
    CHECK_EQ(status, actual.error.status);
    CHECK_EQ(1, actual.error.list);
    CHECK_EQ(0, actual.error.record);
    CHECK_EQ(0, actual.error.feature);
    CHECK_EQ(row, actual.error.row);
    CHECK_EQ(expected, actual.error.expected);
    CHECK_EQ(found, actual.error.found);
    CHECK(strcmp("", actual.text) == 0);
}

static void test_repeated_steps_have_multiples_of_the_count(void) {
    tfw_feature pairs = feature("a", TFW_INT64, TFW_REPEATED, 2);
    expect_text("[1 2][][1 2 3 4]",
                parse_as(pairs, true, LISTS(LIST("a", INTS(1, 2), NOTHING, INTS(1, 2, 3, 4))), 0));
    expect_failure(TFW_E_COUNT, 1, 2, 3,
                   parse_as(pairs, true, LISTS(LIST("a", INTS(1, 2), INTS(1, 2, 3))), 0));
}

static void test_dense_lists(void) {
    expect_text("[1 2][3 4]", dense_list(TFW_INT64, 2, LISTS(LIST("a", INTS(1, 2), INTS(3, 4)))));
    expect_text("[1.5][2]", dense_list(TFW_FLOAT, 1, LISTS(LIST("a", FLOATS(1.5), FLOATS(2)))));
    expect_text("[xy][]", dense_list(TFW_BYTES, 1, LISTS(LIST("a", STRING("xy"), STRING("")))));
    expect_text("", dense_list(TFW_INT64, 2, LISTS(entry("a", NOTHING))));
    expect_text("", dense_list(TFW_INT64, 2, LISTS(field(1, field(1, RAW("a"))))));
    expect_text("[][]", dense_list(TFW_INT64, 0, LISTS(LIST("a", NO_INTS, NOTHING))));
}

static void test_variable_lists(void) {
    blob message = LISTS(LIST("a", INTS(1, 2, 3), NO_INTS, NOTHING, INTS(4)));
    expect_text("[1 2 3][][][4]", variable_list(TFW_INT64, message));
    message = LISTS(LIST("a", JOIN(STRING("x"), STRING("y")), NOTHING, STRING("z")));
    expect_text("[x y][][z]", variable_list(TFW_BYTES, message));
    expect_text("[0.5 1][2]", variable_list(TFW_FLOAT, LISTS(LIST("a", FLOATS(.5, 1), FLOATS(2)))));
    expect_text("", variable_list(TFW_INT64, LISTS(LIST("b", INTS(1)))));
    expect_text("", variable_list(TFW_INT64, NOTHING));
}

static void test_an_absent_dense_list(void) {
    const blob absent[] = {NOTHING, LISTS(LIST("b", INTS(1))), EXAMPLE(entry("a", INTS(1)))};
    for (size_t i = 0; i < COUNT(absent); i++) {
        expect_failure(TFW_E_MISSING, -1, 1, -1, dense_list(TFW_INT64, 1, absent[i]));
        tfw_feature asked = feature("a", TFW_INT64, TFW_DENSE, 1);
        asked.has_default = 1;
        expect_text("", parse_as(asked, true, absent[i], 0));
    }
}

static void test_misfits_are_told_with_their_step(void) {
    blob message = LISTS(LIST("a", INTS(1), INTS(2, 3), FLOATS(1)));
    expect_failure(TFW_E_COUNT, 1, 1, 2, dense_list(TFW_INT64, 1, message));
    expect_failure(TFW_E_KIND, 2, TFW_INT64, TFW_FLOAT, variable_list(TFW_INT64, message));
    message = LISTS(LIST("a", INTS(1), NO_INTS, INTS(2)));
    expect_failure(TFW_E_COUNT, 1, 1, 0, dense_list(TFW_INT64, 1, message));
    message = LISTS(LIST("a", INTS(1), NOTHING, INTS(2)));
    expect_failure(TFW_E_COUNT, 1, 1, 0, dense_list(TFW_INT64, 1, message));
    message = LISTS(LIST("a", NO_STRINGS));
    expect_failure(TFW_E_KIND, 0, TFW_INT64, TFW_BYTES, variable_list(TFW_INT64, message));
    expect_failure(TFW_E_KIND, 0, TFW_FLOAT, TFW_BYTES, dense_list(TFW_FLOAT, 1, message));
}

static void test_the_last_entry_of_a_key_counts(void) {
    blob message = LISTS(LIST("a", INTS(1), INTS(2, 3), FLOATS(4)), LIST("b", INTS(9)),
                         LIST("a", INTS(5)));
    expect_text("[5]", dense_list(TFW_INT64, 1, message));
    expect_text("[5]", variable_list(TFW_INT64, message));
    message = LISTS(LIST("a", INTS(1), INTS(2)), entry("a", NOTHING));
    expect_text("", dense_list(TFW_INT64, 1, message));
    expect_text("", variable_list(TFW_INT64, message));
    message = LISTS(LIST("a", STRING("xyz")), LIST("a", STRING("u"), STRING("v")));
    expect_text("[u][v]", variable_list(TFW_BYTES, message));
}

static void test_messages_in_pieces_are_merged(void) {
    blob message = JOIN(LISTS(LIST("a", INTS(1))), EXAMPLE(entry("a", INTS(7))),
                        LISTS(LIST("b", INTS(2))), LISTS(LIST("a", INTS(3), INTS(4))));
    expect_text("[3][4]", variable_list(TFW_INT64, message));
    const blob ones[] = {INTS(1), INTS(2)}, more[] = {INTS(3)};
    blob pieces = JOIN(field(2, steps_of(ones, 2)), field(1, RAW("a")), field(2, NOTHING),
                       field(2, steps_of(more, 1)));
    expect_text("[1][2][3]", dense_list(TFW_INT64, 1, LISTS(field(1, pieces))));
    /* A oneof within a step. */
    message = LISTS(LIST("a", JOIN(INTS(1), FLOATS(2), INTS(3), INTS(4)), INTS(5)));
    expect_text("[3 4][5]", variable_list(TFW_INT64, message));
}

static void test_unknown_fields_are_skipped_at_every_level(void) {
    blob u = JOIN(tag(9, 0), varint(300), tag(9, 3), tag(1, 0), varint(1), tag(9, 4), tag(2, 5),
                  RAW("1234"), tag(1, 1), RAW("12345678"));
    blob list = JOIN(u, field(1, JOIN(u, field(3, JOIN(u, field(1, RAW("\x07")))))), u);
    blob pair = JOIN(u, field(1, RAW("a")), field(2, list), u);
    blob message = JOIN(u, field(2, JOIN(u, field(1, pair), u)), u);
    expect_text("[7]", dense_list(TFW_INT64, 1, message));
}

static outcome context(int32_t layout, blob message) {
    return parse_as(feature("a", TFW_INT64, layout, 1), false, message, 0);
}

/* TensorFlow parses the context by rules of its own: a Feature without a kind is present. */
static void test_context(void) {
    expect_text("[4]", context(TFW_DENSE, EXAMPLE(entry("a", INTS(4)))));
    expect_text("[4 5]", context(TFW_VARIABLE, EXAMPLE(entry("a", INTS(4, 5)))));
    expect_text("[]", context(TFW_VARIABLE, EXAMPLE(entry("a", NOTHING))));
    expect_text("[]", context(TFW_VARIABLE, NOTHING));
    expect_text("[6]", context(TFW_DENSE, EXAMPLE(entry("a", FLOATS(5)), entry("a", INTS(6)))));
    const int64_t number = 11;
    tfw_feature asked = feature("a", TFW_INT64, TFW_DENSE, 1);
    asked.has_default = 1;
    asked.default_values = &number;
    expect_text("[11]", parse_as(asked, false, NOTHING, 0));
    const blob kindless[] = {EXAMPLE(entry("a", NOTHING)), EXAMPLE(field(1, field(1, RAW("a")))),
                             EXAMPLE(entry("a", INTS(5)), entry("a", NOTHING))};
    for (size_t i = 0; i < COUNT(kindless); i++) {
        for (unsigned flags = 0; flags <= TFW_SINGLE; flags += TFW_SINGLE) {
            outcome out = parse_as(asked, false, kindless[i], flags);
            CHECK_EQ(TFW_E_COUNT, out.status);
            CHECK_EQ(0, out.error.list);
            CHECK_EQ(1, out.error.expected);
            CHECK_EQ(0, out.error.found);
            expect_text("[]", context(TFW_VARIABLE, kindless[i]));
        }
    }
    CHECK_EQ(TFW_E_MISSING, context(TFW_DENSE, LISTS(LIST("a", INTS(1)))).status);
    CHECK_EQ(TFW_E_KIND, context(TFW_VARIABLE, EXAMPLE(entry("a", NO_FLOATS))).status);
}

/* ---- Malformed messages --------------------------------------------------------------------- */

static void test_malformed_messages_are_refused_with_their_place(void) {
    const blob bad[] = {
        LISTS(LIST("a", RAW("\x1a\x05"))),
        LISTS(entry("a", RAW("\x0a\x05"))),
        LISTS(field(1, RAW("\x0a\x05"))),
        LISTS(RAW("\x0a\x05")),
        LISTS(entry("a", RAW("\x07"))),
        LISTS(LIST("a", field(3, field(1, RAW("\x80"))))),
        LISTS(LIST("a", RAW("\x1a\x05")), LIST("a", INTS(1))),
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        outcome out = variable_list(TFW_INT64, bad[i]);
        CHECK_EQ(TFW_E_WIRE, out.status);
        CHECK_EQ(1, out.error.list);
        CHECK(out.error.offset > 0 && out.error.offset <= (int64_t)bad[i].len);
        CHECK_EQ(i == 2 || i == 3 ? -1 : 0, out.error.feature);
        CHECK_EQ(TFW_OK, context(TFW_VARIABLE, bad[i]).status); /* not looked into */
    }
    CHECK_EQ(TFW_E_WIRE, variable_list(TFW_INT64, RAW("\x12\x05")).status);
    CHECK_EQ(0, variable_list(TFW_INT64, RAW("\x12\x05")).error.list);
    CHECK_EQ(TFW_E_WIRE, context(TFW_DENSE, EXAMPLE(entry("a", RAW("\x07")))).status);
    blob unwanted = LISTS(entry("b", RAW("\x07")), LIST("a", INTS(1)));
    expect_text("[1]", variable_list(TFW_INT64, unwanted));
}

/* ---- Many records --------------------------------------------------------------------------- */

enum { RECORDS = 20 };

typedef struct table {
    tfw_schema *schemas[2];
    tfw_columns *context;
    tfw_columns *lists;
    int64_t lengths[RECORDS];
} table;

static int table_open(table *t) {
    const tfw_feature contexts[] = {feature("n", TFW_INT64, TFW_DENSE, 1),
                                    feature("s", TFW_BYTES, TFW_VARIABLE, 0)};
    const tfw_feature lists[] = {feature("words", TFW_BYTES, TFW_VARIABLE, 0),
                                 feature("frames", TFW_FLOAT, TFW_DENSE, 2)};
    memset(t, 0, sizeof *t);
    int status = tfw_schema_create(contexts, 2, SEED, &t->schemas[0], NULL);
    status = status != TFW_OK ? status : tfw_schema_create(lists, 2, SEED, &t->schemas[1], NULL);
    status = status != TFW_OK ? status : tfw_columns_create(t->schemas[0], 0, &t->context, NULL);
    if (status == TFW_OK) {
        status = tfw_columns_create(t->schemas[1], TFW_FEATURE_LISTS, &t->lists, NULL);
    }
    if (status == TFW_OK) {
        CHECK_EQ(TFW_OK, tfw_columns_bind(t->context, 0, t->lengths, RECORDS, NULL));
    }
    return status;
}

static void table_close(table *t) {
    tfw_columns_free(t->context);
    tfw_columns_free(t->lists);
    tfw_schema_free(t->schemas[0]);
    tfw_schema_free(t->schemas[1]);
}

/* Record r has r words, of 0 to 2 strings each, and r % 4 frames. */
static blob record(int64_t r) {
    blob words[RECORDS], frames[4];
    for (int64_t i = 0; i < r; i++) {
        blob two = JOIN(STRING("x"), STRING("yz"));
        words[i] = i % 3 == 0 ? NOTHING : i % 3 == 1 ? STRING("w") : two;
    }
    for (int64_t i = 0; i < r % 4; i++) {
        frames[i] = FLOATS((float)r, (float)i);
    }
    return JOIN(EXAMPLE(entry("n", INTS(r)), entry("other", INTS(1)), entry("s", STRING("text"))),
                LISTS(list_entry("frames", frames, (size_t)(r % 4)), LIST("b", INTS(1)),
                      list_entry("words", words, (size_t)r)));
}

static blob records_and_spans(tfw_span *spans) {
    blob all = NOTHING;
    for (int64_t r = 0; r < RECORDS; r++) {
        blob one = record(r);
        spans[r] = (tfw_span){all.len, one.len};
        all = JOIN(all, one);
    }
    return all;
}

static int take_lists(table *t, tfw_column *words, tfw_column *frames) {
    int status = tfw_columns_take(t->lists, 0, words, NULL);
    if (status != TFW_OK) {
        return status;
    }
    status = tfw_columns_take(t->lists, 1, frames, NULL);
    if (status != TFW_OK) {
        free_column(words);
    }
    return status;
}

static void table_check(table *t, int64_t records) {
    tfw_column words, frames;
    int64_t word = 0, frame = 0, string = 0;
    CHECK_EQ(records, tfw_columns_records(t->context));
    CHECK_EQ(records, tfw_columns_records(t->lists));
    CHECK_EQ(TFW_OK, take_lists(t, &words, &frames));
    for (int64_t r = 0; r < records; r++) {
        CHECK_EQ(r, t->lengths[r]);
        CHECK_EQ(word, words.steps[r]);
        CHECK_EQ(frame, frames.steps[r]);
        for (int64_t i = 0; i < r; i++, word++) {
            CHECK_EQ(string, words.splits[word]);
            string += i % 3;
        }
        for (int64_t i = 0; i < r % 4; i++, frame++) {
            CHECK(((const float *)frames.values)[2 * frame] == (float)r);
            CHECK(((const float *)frames.values)[2 * frame + 1] == (float)i);
        }
    }
    CHECK_EQ(word, words.steps[records]);
    CHECK_EQ(word, words.cell_count);
    CHECK_EQ(string, words.splits[word]);
    CHECK_EQ(string, words.value_count);
    CHECK_EQ(words.byte_count, words.offsets[string]);
    CHECK_EQ(frame, frames.steps[records]);
    CHECK_EQ(2 * frame, frames.value_count);
    CHECK(frames.splits == NULL && frames.offsets == NULL);
    free_column(&words);
    free_column(&frames);
}

static void test_many_records_fill_context_and_lists(void) {
    table t;
    tfw_span spans[RECORDS];
    blob all = records_and_spans(spans);
    size_t done;
    CHECK_EQ(TFW_OK, table_open(&t));
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(TFW_OK, tfw_parse_sequence(t.context, t.lists, all.data, all.len, spans, RECORDS,
                                            0, &done, NULL));
        CHECK_EQ(RECORDS, done);
        table_check(&t, RECORDS);
        tfw_columns_clear(t.context);
        tfw_columns_clear(t.lists);
    }
    table_close(&t);
}

static void test_a_failing_record_is_taken_back_from_both(void) {
    tfw_span spans[RECORDS + 1];
    blob good = record(7);
    for (size_t cut = 1; cut < good.len; cut++) {
        table t;
        tfw_error error;
        size_t done;
        blob all = records_and_spans(spans);
        blob bad = JOIN(good, (blob){good.data, cut});
        all = JOIN(all, bad);
        CHECK_EQ(TFW_OK, table_open(&t));
        spans[RECORDS] = spans[5];
        spans[5] = (tfw_span){all.len - bad.len, bad.len};
        int status = tfw_parse_sequence(t.context, t.lists, all.data, all.len, spans, 6, 0, &done,
                                        &error);
        if (status != TFW_OK) {
            CHECK_EQ(TFW_E_WIRE, status);
            CHECK_EQ(5, done);
            CHECK_EQ(5, error.record);
            spans[5] = spans[RECORDS];
            CHECK_EQ(TFW_OK, tfw_parse_sequence(t.context, t.lists, all.data, all.len, spans + 5,
                                                RECORDS - 5, 0, &done, &error));
            table_check(&t, RECORDS);
        }
        table_close(&t);
        blobs_free();
        good = record(7);
    }
}

static void test_arguments_are_checked(void) {
    table t;
    blob good = record(2);
    tfw_span span = {0, good.len}, outside = {1, good.len};
    CHECK_EQ(TFW_OK, table_open(&t));
    const uint8_t *data = good.data;
    size_t len = good.len;
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse_sequence(t.lists, NULL, data, len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse_sequence(NULL, t.context, data, len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse_sequence(t.context, t.lists, data, len, &outside, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_parse_sequence(t.context, t.lists, data, len, &span, 1, 64, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_parse(t.lists, data, len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_parse_sequence(NULL, NULL, data, len, &span, 1, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_parse_sequence(t.context, t.lists, NULL, 0, NULL, 0, 0, NULL, NULL));
    table_close(&t);
}

static void test_every_failing_allocation_leaves_usable_columns(void) {
#ifdef TFW_TEST_FAULTS
    tfw_span spans[RECORDS];
    blob all = records_and_spans(spans);
    bool complete = false;
    for (long n = 0; !complete; n++) {
        table t;
        size_t done = 0;
        tfwi_test_fail_allocation = n;
        int status = table_open(&t);
        if (status == TFW_OK) {
            status = tfw_parse_sequence(t.context, t.lists, all.data, all.len, spans, RECORDS, 0,
                                        &done, NULL);
        }
        complete = tfwi_test_fail_allocation >= 0;
        CHECK(status == TFW_OK || (status == TFW_E_MEMORY && !complete));
        tfwi_test_fail_allocation = -1;
        if (t.lists != NULL) { /* it goes on where it stopped */
            CHECK_EQ(TFW_OK, tfw_parse_sequence(t.context, t.lists, all.data, all.len,
                                                spans + done, RECORDS - done, 0, NULL, NULL));
            table_check(&t, RECORDS);
        }
        table_close(&t);
    }
#endif
}

int main(void) {
    RUN(test_repeated_steps_have_multiples_of_the_count);
    RUN(test_dense_lists);
    RUN(test_variable_lists);
    RUN(test_an_absent_dense_list);
    RUN(test_misfits_are_told_with_their_step);
    RUN(test_the_last_entry_of_a_key_counts);
    RUN(test_messages_in_pieces_are_merged);
    RUN(test_unknown_fields_are_skipped_at_every_level);
    RUN(test_context);
    RUN(test_malformed_messages_are_refused_with_their_place);
    RUN(test_many_records_fill_context_and_lists);
    RUN(test_a_failing_record_is_taken_back_from_both);
    RUN(test_arguments_are_checked);
    RUN(test_every_failing_allocation_leaves_usable_columns);
    blobs_free();
    return check_report("sequence");
}
