/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of records that the schema has not: each is noted once, with the first record that has it,
 * the same ones by every kernel and by the complete parser, whatever their order and form. */
#include "columns.h"
#include "proto.h"

#include "base/cpu.h"
#include "parse/columns.h"

enum { KEYS = 40, RECORDS = 60, KNOWN = 3 };

static char names[KEYS][8];

static blob some_value(uint64_t *state) {
    switch (check_random(state) % 5) {
    case 0: return INTS(1);
    case 1: return FLOATS(1.5f, 2.5f);
    case 2: return STRING("text");
    case 3: return NOTHING;
    default: return field(1, field(1, repeat(RAW("long"), 90)));
    }
}

/* A record with the keys from 0 on and some others. */
static blob record_of(uint64_t *state, unsigned most) {
    blob parts[2 * KEYS], all = NOTHING;
    size_t count = 0;
    for (unsigned k = 0; k < most; k++) {
        if (k < KNOWN || check_random(state) % 4 == 0) {
            parts[count++] = entry(names[k], k < KNOWN ? INTS(7) : some_value(state));
        }
    }
    for (size_t i = count; i > 1; i--) {
        const size_t k = (size_t)check_random(state) % i;
        const blob last = parts[i - 1];
        parts[i - 1] = parts[k];
        parts[k] = last;
    }
    for (size_t i = 0; i < count; i++) {
        all = JOIN(all, parts[i]);
    }
    return field(1, all);
}

static tfw_columns *columns_of(tfw_schema **out_schema) {
    tfw_feature asked[KNOWN];
    tfw_columns *columns;
    for (size_t i = 0; i < KNOWN; i++) {
        asked[i] = feature(names[i], TFW_INT64, TFW_DENSE, 1);
    }
    CHECK_EQ(TFW_OK, tfw_schema_create(asked, KNOWN, SEED, out_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(*out_schema, TFW_OWN_NUMBERS | TFW_NOTE_UNKNOWN, &columns,
                                        NULL));
    return columns;
}

/* What a walk over the records notes, by the order in which they have the keys. */
static void check_noted(const tfw_columns *columns, const tfwi_unknown *expected) {
    const tfwi_unknown *u = columns->unknown;
    CHECK_EQ(expected->count, u->count);
    CHECK_EQ(expected->has_more, u->has_more);
    for (size_t i = 0; i < u->count; i++) {
        CHECK_EQ(expected->of[i].record, u->of[i].record);
        CHECK(tfwi_is_named(&u->of[i].key, expected->of[i].key.name, expected->of[i].key.len));
    }
}

static void parse_records(tfw_columns *columns, const blob *records, size_t count) {
    tfw_columns_clear(columns);
    for (size_t i = 0; i < count; i++) {
        const tfw_span span = {0, records[i].len};
        CHECK_EQ(TFW_OK, tfw_parse(columns, records[i].data, records[i].len, &span, 1, 0, NULL,
                                   NULL));
    }
}

static void the_same_keys_by_every_kernel(void) {
    uint64_t state = SEED;
    for (int round = 0; round < 60; round++) {
        tfw_schema *schema;
        tfw_columns *columns = columns_of(&schema);
        const tfwi_matcher *kernel;
        tfwi_unknown expected;
        blob records[RECORDS];
        for (size_t i = 0; i < RECORDS; i++) {
            records[i] = record_of(&state, KNOWN + (unsigned)(round % 30));
        }
        columns->kernel = NULL;
        parse_records(columns, records, RECORDS);
        expected = *columns->unknown;
        *columns->unknown = (tfwi_unknown){0};
        CHECK(expected.has_more == (round % 30 > TFWI_MOST_UNKNOWN));
        for (size_t k = 0; (kernel = tfwi_matcher_at(k)) != NULL; k++) {
            if (tfwi_cpu_has(kernel->features)) {
                columns->kernel = kernel;
                parse_records(columns, records, RECORDS);
                check_noted(columns, &expected);
            }
        }
        tfwi_unknown_clear(&expected);
        tfw_columns_free(columns);
        tfw_schema_free(schema);
        blobs_free();
    }
}

static void feature_lists_of_an_example_are_noted(void) {
    tfw_schema *schema;
    tfw_columns *columns = columns_of(&schema);
    const blob known = JOIN(entry("k0", INTS(1)), entry("k1", INTS(1)), entry("k2", INTS(1)));
    const blob record = JOIN(field(1, known), field(2, field(1, JOIN(field(1, RAW("steps")),
                                                                     field(2, NOTHING)))));
    parse_records(columns, &record, 1);
    CHECK_EQ(1, columns->unknown->count);
    CHECK(columns->unknown->of[0].is_list);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    blobs_free();
}

static void long_keys_are_cut_and_memory_may_be_short(void) {
    static uint8_t key[2 * TFWI_MOST_UNKNOWN_LEN];
    tfwi_unknown u = {0};
    tfwi_unknown_note(&u, key, sizeof key, false, 1);
    tfwi_unknown_note(&u, key, sizeof key - 1, false, 2);
    tfwi_unknown_note(&u, key, 0, false, 3);
    tfwi_unknown_note(&u, key, 0, true, 4);
    CHECK_EQ(3, u.count);
    CHECK_EQ(TFWI_MOST_UNKNOWN_LEN, u.of[0].key.len);
    tfwi_test_fail_allocation = 0;
    tfwi_unknown_note(&u, key, 1, false, 5);
    tfwi_test_fail_allocation = -1;
    CHECK(u.count == 3 && u.has_more);
    tfwi_unknown_clear(&u);
    tfwi_unknown_clear(NULL);
}

int main(void) {
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "k%u", i);
    }
    RUN(the_same_keys_by_every_kernel);
    RUN(feature_lists_of_an_example_are_noted);
    RUN(long_keys_are_cut_and_memory_may_be_short);
    return check_report("unknown keys");
}
