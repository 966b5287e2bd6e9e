/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path: every kernel gives what the complete parser gives, on usual and odd messages. */
#include "kernels.h"

enum { FEATURES = 16, LISTS = 6, ROUNDS = 6000 };

/* Keys of many lengths; the last one is longer than a template can hold. */
static const char *const names[FEATURES] = {
    "a", "bb", "feature_of_16_by", "d", "eeeeeee", "ffffffff", "ggggggggg", "hh", "i",
    "a_key_of_35_bytes_that_ends_in_0001", "k", "",
    "a_key_of_54_bytes_that_is_the_longest_one_in_templates", "m",
    "a_key_of_55_bytes_that_is_no_longer_kept_in_a_template_", "p"};

static void spec(tfw_feature *f, size_t i, bool list) {
    const int32_t kinds[] = {TFW_INT64, TFW_FLOAT, TFW_BYTES, TFW_INT64, TFW_FLOAT, TFW_INT64,
                             TFW_BYTES, TFW_FLOAT};
    const int32_t layouts[] = {TFW_DENSE, TFW_DENSE, TFW_DENSE, TFW_VARIABLE,
                               TFW_VARIABLE, TFW_DENSE, TFW_VARIABLE, TFW_REPEATED};
    const uint64_t counts[] = {1, 1, 1, 0, 0, 3, 0, 2};
    *f = (tfw_feature){.name = names[i], .name_len = strlen(names[i]), .kind = kinds[i % 8],
                       .layout = layouts[i % 8], .count = counts[i % 8]};
    if (i == 9) {
        f->count = 300; /* floats whose lengths take two bytes */
    } else if (i == 10) {
        f->count = 2;
    } else if (i == 15) {
        f->count = 0;
    }
    static const int64_t zeros[MOST_VALUES];
    if (!list && f->layout == TFW_DENSE && i % 3 == 0 && f->kind != TFW_BYTES) {
        f->has_default = 1;
        f->default_values = zeros;
    }
}

static void compare_kernel(const tfwi_matcher *kernel, const tfw_feature *features,
                           const tfw_schema *schema, const tfw_feature *list_features,
                           const tfw_schema *lists) {
    table complete = table_new(schema, lists, NULL), fast = table_new(schema, lists, kernel);
    size_t accepted = 0;
    state = 7;
    for (size_t round = 0; round < ROUNDS; round++) {
        bool sequence = round / BATCH % 2 != 0;
        odd = one_in(2);
        blob message = field(1, some_map(features, FEATURES, false));
        if (sequence) {
            message = JOIN(message, field(2, some_map(list_features, LISTS, true)));
        }
        if (one_in(20)) {
            message = JOIN(message, message);
        }
        message = one_in(4) ? damage(message) : message;
        uint64_t before = complete.columns->records;
        parse_both(&complete, &fast, message, sequence);
        accepted += complete.columns->records != before;
        if (round % BATCH == BATCH - 1) {
            compare_columns(complete.columns, fast.columns);
            if (sequence) {
                compare_columns(complete.lists, fast.lists);
            }
        }
        blobs_free();
    }
    CHECK(accepted > ROUNDS / 5);
    table_free(&complete);
    table_free(&fast);
}

static void test_every_kernel_gives_what_the_complete_parser_gives(void) {
    tfw_feature features[FEATURES], list_features[LISTS];
    tfw_schema *schema, *lists;
    for (size_t i = 0; i < FEATURES; i++) {
        spec(&features[i], i, false);
    }
    for (size_t i = 0; i < LISTS; i++) {
        spec(&list_features[i], i, true);
    }
    CHECK_EQ(TFW_OK, tfw_schema_create(features, FEATURES, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_schema_create(list_features, LISTS, SEED, &lists, NULL));
    size_t compared = 0;
    for (size_t i = 0; tfwi_matcher_at(i) != NULL; i++) {
        const tfwi_matcher *kernel = tfwi_matcher_at(i);
        if (tfwi_cpu_has(kernel->features)) {
            compare_kernel(kernel, features, schema, list_features, lists);
            compared++;
        } else {
            printf("match: %s: not supported here\n", kernel->name);
        }
    }
    CHECK(compared >= 1);
    tfw_schema_free(schema);
    tfw_schema_free(lists);
}

/* The message is taken whole by the kernel, and nothing is left for the complete parser. */
static void expect_usual(const tfw_feature *feature, blob value, bool usual) {
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(feature, 1, SEED, &schema, NULL));
    for (size_t i = 0; tfwi_matcher_at(i) != NULL; i++) {
        const tfwi_matcher *kernel = tfwi_matcher_at(i);
        tfw_columns *columns;
        static uint8_t values[8192];
        if (!tfwi_cpu_has(kernel->features)) {
            continue;
        }
        CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
        columns->kernel = kernel;
        if (columns->columns[0].bound) {
            CHECK_EQ(TFW_OK, tfw_columns_bind(columns, 0, values, 1, NULL));
        }
        blob message = JOIN(field(1, entry(feature->name, value)), repeat(RAW("\xff"), 200));
        tfw_span span = {0, message.len - 200};
        CHECK_EQ(TFW_OK, tfw_parse(columns, message.data, message.len, &span, 1, 0, NULL, NULL));
        CHECK_EQ(usual, columns->filled);
        tfw_columns_free(columns);
    }
    tfw_schema_free(schema);
}

static void test_usual_messages_take_the_fast_path(void) {
    const int64_t numbers[] = {0, 127, 128, INT64_C(1) << 55, INT64_C(1) << 56, INT64_MAX, -1};
    tfw_feature f = {.kind = TFW_INT64, .layout = TFW_DENSE, .count = 1};
    for (size_t i = 0; i < FEATURES; i++) {
        f.name = names[i];
        f.name_len = strlen(names[i]);
        for (size_t n = 0; n < COUNT(numbers); n++) {
            expect_usual(&f, field(3, field(1, packed_int64s(&numbers[n], 1))), f.name_len < 55);
        }
    }
    f = (tfw_feature){.name = "x", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE};
    expect_usual(&f, INTS(1, 300, -1, 5), true);
    expect_usual(&f, NO_INTS, false);
    f.layout = TFW_DENSE;
    f.count = 3;
    expect_usual(&f, INTS(1, 300, 5), true);
    f.kind = TFW_FLOAT;
    expect_usual(&f, FLOATS(1, 2, 3), true);
    f.count = 1000;
    expect_usual(&f, field(2, field(1, repeat(RAW("1234"), 1000))), true);
    f.layout = TFW_VARIABLE;
    expect_usual(&f, FLOATS(1, 2, 3), true);
    expect_usual(&f, field(2, field(1, repeat(RAW("1234"), 100))), true);
    expect_usual(&f, field(2, field(1, repeat(RAW("1234"), 2000))), true);
    expect_usual(&f, field(2, field(1, repeat(RAW("1234"), 500))), true);
    expect_usual(&f, JOIN(field(2, field(1, repeat(RAW("1234"), 100))), tag(9, 0), varint(1)),
                 false);
    expect_usual(&f, field(2, field(1, NOTHING)), false);
    f.kind = TFW_BYTES;
    expect_usual(&f, STRING("text"), true);
    expect_usual(&f, STRING(""), true);
    expect_usual(&f, field(1, field(1, repeat(RAW("s"), 200))), true);
    expect_usual(&f, field(1, field(1, repeat(RAW("s"), 100000))), true);
    expect_usual(&f, field(1, field(1, repeat(RAW("s"), 3000000))), false);
    expect_usual(&f, JOIN(STRING("a"), STRING("b")), false);
}

/* Blocks of varints of all sizes, some malformed, with every room, near to the limit or not: a
 * reader gives what the complete one gives, or declines what is malformed. */
static void compare_varints(tfwi_varint_reader *reader) {
    size_t read = 0;
    state = 3;
    for (size_t round = 0; round < 20000; round++) {
        int64_t expected[300], actual[300];
        uint8_t block[1100];
        size_t len = 0, values = below(100), widest = 1 + below(64);
        for (size_t i = 0; i < values; i++) {
            uint64_t v = check_random(&state) >> (63 - below(widest));
            for (; v > 0x7f; v >>= 7) {
                block[len++] = (uint8_t)(v | 0x80);
            }
            block[len++] = (uint8_t)v;
        }
        bool intact = !one_in(5);
        for (size_t i = intact ? 0 : 1 + below(20); i > 0 && len > 0; i--) {
            block[below(len)] |= 0x80; /* longer varints, in the end too long ones */
        }
        size_t after = one_in(2) ? 200 : below(100), room = one_in(3) ? below(values + 1) : 300;
        guarded page = guarded_new(len + after, true);
        memcpy(page.data, block, len);
        memset(page.data + len, (int)below(256), after);
        size_t counts[2] = {0, 0};
        tfwi_fault fault;
        const uint8_t *end = page.data + len;
        const uint8_t *a = tfwi_read_varints(page.data, end, expected, room, &counts[0], &fault);
        const uint8_t *b = reader(page.data, end, end + after, actual, room, &counts[1]);
        CHECK(b != NULL || !intact);
        if (b != NULL) {
            CHECK(a == b);
            CHECK_EQ(counts[0], counts[1]);
            CHECK(memcmp(expected, actual, counts[1] * sizeof actual[0]) == 0);
            read++;
        }
        guarded_free(page);
    }
    CHECK(read > 8000);
}

static void test_every_varint_reader_gives_what_the_complete_one_gives(void) {
    for (size_t i = 0; tfwi_matcher_at(i) != NULL; i++) {
        const tfwi_matcher *kernel = tfwi_matcher_at(i);
        if (kernel->varints != NULL && tfwi_cpu_has(kernel->features)) {
            compare_varints(kernel->varints);
        }
    }
}

int main(void) {
    RUN(test_every_varint_reader_gives_what_the_complete_one_gives);
    RUN(test_every_kernel_gives_what_the_complete_parser_gives);
    RUN(test_usual_messages_take_the_fast_path);
    blobs_free();
    return check_report("match");
}
