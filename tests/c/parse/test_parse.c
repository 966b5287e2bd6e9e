/* SPDX-License-Identifier: Apache-2.0 */
/* Serialized Examples to columns: every legal form, every malformed one, every misfit. */
#include "columns.h"

/* ---- One column, one message ---------------------------------------------------------------- */

enum { MAX_VALUES = 64 };

/* What parsing gave; numbers of the first column only. */
typedef struct outcome {
    int status;
    tfw_error error;
    size_t done;
    int64_t count; /* values */
    int64_t int64s[MAX_VALUES];
    uint32_t floats[MAX_VALUES]; /* their bits */
    char strings[256];           /* each followed by '|' */
} outcome;

static void keep_numbers(outcome *out, int32_t kind, const void *values, uint64_t count) {
    out->count = (int64_t)count;
    if (count <= MAX_VALUES && count != 0) {
        memcpy(kind == TFW_INT64 ? (void *)out->int64s : (void *)out->floats, values,
               (size_t)count * (kind == TFW_INT64 ? 8 : 4));
    }
}

static void keep_strings(outcome *out, const tfw_column *column) {
    size_t at = 0;
    out->count = (int64_t)column->value_count;
    for (uint64_t i = 0; i < column->value_count; i++) {
        size_t begin = (size_t)column->offsets[i], end = (size_t)column->offsets[i + 1];
        if (at + end - begin + 2 > sizeof out->strings) {
            return;
        }
        memcpy(out->strings + at, (const char *)column->values + begin, end - begin);
        at += end - begin;
        out->strings[at++] = '|';
    }
}

/* Parses one message, which ends at an unreadable page, by a schema of one feature. */
static outcome parse_as(tfw_feature asked, blob message, unsigned flags) {
    outcome out = {.status = 0};
    tfw_schema *schema;
    tfw_columns *columns;
    int64_t bound[MAX_VALUES] = {0};
    bool dense = asked.layout == TFW_DENSE && asked.kind != TFW_BYTES;
    CHECK_EQ(TFW_OK, tfw_schema_create(&asked, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    if (dense) {
        CHECK_EQ(TFW_OK, tfw_columns_bind(columns, 0, bound, 1, NULL));
    }
    guarded page = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(page.data, message.data, message.len);
    }
    tfw_span span = {0, message.len};
    out.status = tfw_parse(columns, page.data, message.len, &span, 1, flags, &out.done, &out.error);
    CHECK_EQ(out.status == TFW_OK, out.done);
    CHECK_EQ(out.done, tfw_columns_records(columns));
    if (dense) {
        keep_numbers(&out, asked.kind, bound, out.done * asked.count);
    } else {
        tfw_column column;
        CHECK_EQ(TFW_OK, tfw_columns_take(columns, 0, &column, NULL));
        CHECK_EQ(out.done, column.cell_count);
        if (asked.layout != TFW_DENSE) {
            CHECK_EQ(0, column.splits[0]);
            CHECK_EQ(column.value_count, column.splits[out.done]);
        }
        if (asked.kind == TFW_BYTES) {
            keep_strings(&out, &column);
        } else {
            keep_numbers(&out, asked.kind, column.values, column.value_count);
        }
        free_column(&column);
    }
    guarded_free(page);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    return out;
}

static outcome variable(int32_t kind, blob message) {
    return parse_as(feature("a", kind, TFW_VARIABLE, 0), message, 0);
}

static outcome dense(int32_t kind, uint64_t count, blob message) {
    return parse_as(feature("a", kind, TFW_DENSE, count), message, 0);
}

static blob with(blob feature_message) { return EXAMPLE(entry("a", feature_message)); }

static void expect_int64s(const int64_t *expected, size_t count, outcome actual) {
    CHECK_EQ(TFW_OK, actual.status);
    CHECK_EQ(count, actual.count);
    for (size_t i = 0; i < count && actual.count == (int64_t)count; i++) {
        CHECK_EQ(expected[i], actual.int64s[i]);
    }
}

/* The message gives these values, as a variable and as a dense column, by both rules. */
#define EXPECT_INTS(message, ...)                                                          \
    do {                                                                                   \
        const int64_t expected_ints[] = {__VA_ARGS__};                                     \
        blob ints_message = (message);                                                     \
        expect_int64s(expected_ints, COUNT(expected_ints), variable(TFW_INT64, ints_message)); \
        expect_int64s(expected_ints, COUNT(expected_ints),                                 \
                      dense(TFW_INT64, COUNT(expected_ints), ints_message));               \
        expect_int64s(expected_ints, COUNT(expected_ints),                                 \
                      parse_as(feature("a", TFW_INT64, TFW_VARIABLE, 0), ints_message,     \
                               TFW_SINGLE));                                               \
    } while (0)

static void expect_strings(const char *expected, outcome actual) {
    CHECK_EQ(TFW_OK, actual.status);
    if (strcmp(expected, actual.strings) != 0) {
        fprintf(stderr, "expected %s, found %s\n", expected, actual.strings);
    }
    CHECK(strcmp(expected, actual.strings) == 0);
}

static void expect_malformed(blob message, int64_t offset) {
    outcome out = variable(TFW_INT64, message);
    CHECK_EQ(TFW_E_WIRE, out.status);
    CHECK_EQ(TFW_E_WIRE, out.error.status);
    CHECK_EQ(0, out.error.record);
    CHECK(out.error.text[0] != 0);
    if (offset >= 0) {
        CHECK_EQ(offset, out.error.offset);
    }
    CHECK(out.error.offset >= 0 && out.error.offset <= (int64_t)message.len);
}

/* ---- Legal forms ---------------------------------------------------------------------------- */

static void test_packed_and_unpacked_numbers_are_the_same(void) {
    blob one = JOIN(tag(1, 0), varint(1)), two = JOIN(tag(1, 0), varint(2));
    blob pack = field(1, RAW("\x03\x04"));
    EXPECT_INTS(with(field(3, JOIN(one, two))), 1, 2);
    EXPECT_INTS(with(field(3, JOIN(one, pack, two))), 1, 3, 4, 2);
    EXPECT_INTS(with(field(3, JOIN(pack, pack, one))), 3, 4, 3, 4, 1);
    EXPECT_INTS(with(field(3, JOIN(pack, field(1, NOTHING)))), 3, 4);

    blob single = JOIN(tag(1, 5), float_bits(1.5f)), block = field(1, float_bits(-2.f));
    outcome out = variable(TFW_FLOAT, with(field(2, JOIN(single, block, single))));
    CHECK_EQ(3, out.count);
    CHECK_EQ(0x3fc00000, out.floats[0]);
    CHECK_EQ(0xc0000000, out.floats[1]);
    CHECK_EQ(0x3fc00000, out.floats[2]);
}

static void test_lists_of_one_kind_are_merged(void) {
    EXPECT_INTS(with(JOIN(INTS(1, 2), INTS(3))), 1, 2, 3);
    EXPECT_INTS(with(JOIN(INTS(1), NO_INTS, INTS(2))), 1, 2);
    outcome out = variable(TFW_BYTES, with(JOIN(STRING("x"), STRING(""), STRING("yz"))));
    expect_strings("x||yz|", out);
}

static void test_the_last_kind_of_a_oneof_counts(void) {
    EXPECT_INTS(with(JOIN(FLOATS(1, 2), INTS(5))), 5);
    EXPECT_INTS(with(JOIN(INTS(1, 2), FLOATS(1), INTS(3))), 3);
    EXPECT_INTS(with(JOIN(INTS(1, 2), NO_STRINGS, INTS(3), INTS(4))), 3, 4);
    CHECK_EQ(TFW_E_KIND, variable(TFW_INT64, with(JOIN(INTS(1), NO_FLOATS))).status);
}

static void test_int64s_wrap_and_floats_keep_their_bits(void) {
    blob max = with(field(3, field(1, RAW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))));
    EXPECT_INTS(max, -1);
    EXPECT_INTS(with(INTS(INT64_MIN, INT64_MAX, -1, 0)), INT64_MIN, INT64_MAX, -1, 0);
    /* The tenth byte has one bit that counts. */
    blob ten = RAW("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7e");
    EXPECT_INTS(with(field(3, field(1, ten))), 0);
    const uint32_t bits[] = {0x7fc00001, 0xff800001, 0x80000000, 1};
    for (size_t i = 0; i < COUNT(bits); i++) {
        outcome out = dense(TFW_FLOAT, 1, with(field(2, field(1, fixed32(bits[i])))));
        CHECK_EQ(TFW_OK, out.status);
        CHECK_EQ(bits[i], out.floats[0]);
    }
}

static void test_varints_may_be_longer_than_need_be(void) {
    for (size_t len = 1; len <= 10; len++) {
        EXPECT_INTS(with(field(3, field(1, long_varint(77, len)))), 77);
        EXPECT_INTS(with(field(3, JOIN(tag(1, 0), long_varint(77, len)))), 77);
    }
    for (size_t len = 1; len <= 5; len++) {
        blob features = entry("a", INTS(6));
        EXPECT_INTS(JOIN(long_varint(10, len), varint(features.len), features), 6);
        EXPECT_INTS(JOIN(varint(10), long_varint(features.len, len), features), 6);
    }
    blob features = entry("a", INTS(6));
    expect_malformed(JOIN(long_varint(10, 6), varint(features.len), features), 0);
    expect_malformed(JOIN(varint(10), long_varint(features.len, 6), features), 1);
    expect_malformed(with(field(3, field(1, long_varint(7, 11)))), 13);
}

/* Fields that no message of an Example has: every wire type, groups included. */
static blob unknown_fields(void) {
    return JOIN(tag(9, 0), varint(300), tag(9, 1), RAW("12345678"), field(9, RAW("any")),
                tag(9, 5), RAW("1234"), tag(1000, 3), tag(7, 3), tag(1, 0), varint(5), tag(7, 4),
                field(2, RAW("\xff")), tag(1000, 4));
}

static void test_unknown_fields_are_skipped_at_every_level(void) {
    blob u = unknown_fields();
    blob list = field(3, JOIN(u, field(1, RAW("\x05")), u));
    blob pair = JOIN(u, field(1, RAW("a")), u, field(2, JOIN(u, list, u)), u);
    EXPECT_INTS(JOIN(u, field(1, JOIN(u, field(1, pair), u)), u), 5);
}

static void test_known_fields_of_another_wire_type_are_unknown(void) {
    blob odd = JOIN(tag(1, 5), RAW("1234"), tag(1, 1), RAW("12345678"), tag(1, 3), tag(1, 4));
    EXPECT_INTS(with(field(3, JOIN(odd, field(1, RAW("\x05"))))), 5);
    odd = JOIN(tag(1, 0), varint(9), tag(2, 5), RAW("1234"), tag(3, 0), varint(1));
    EXPECT_INTS(with(JOIN(odd, INTS(5))), 5);
    EXPECT_INTS(JOIN(odd, with(INTS(5)), odd), 5);
    odd = JOIN(tag(1, 0), varint(9), tag(1, 1), RAW("12345678"));
    outcome out = variable(TFW_FLOAT, with(field(2, JOIN(odd, field(1, float_bits(2.f))))));
    CHECK_EQ(1, out.count);
    odd = JOIN(odd, tag(1, 5), RAW("1234"));
    expect_strings("x|", variable(TFW_BYTES, with(field(1, JOIN(odd, field(1, RAW("x")))))));
}

static void test_map_entries_in_any_form(void) {
    blob key = field(1, RAW("a")), value = field(2, INTS(4));
    EXPECT_INTS(field(1, field(1, JOIN(value, key))), 4);
    EXPECT_INTS(field(1, field(1, JOIN(field(1, RAW("b")), value, key))), 4);
    EXPECT_INTS(field(1, field(1, JOIN(key, value, field(2, INTS(5))))), 4, 5);
    EXPECT_INTS(field(1, field(1, JOIN(field(2, INTS(3)), key, field(2, NOTHING), value))), 3, 4);
    EXPECT_INTS(field(1, field(1, JOIN(key, field(2, FLOATS(1)), value))), 4);
    /* The last key counts, also when the first is asked for. */
    CHECK_EQ(0, variable(TFW_INT64, field(1, field(1, JOIN(key, value, field(1, NOTHING))))).count);
    /* Without a value there is no kind, without a key it is the empty one. */
    CHECK_EQ(TFW_E_MISSING, dense(TFW_INT64, 1, field(1, field(1, key))).status);
    outcome out = parse_as(feature("", TFW_INT64, TFW_DENSE, 1), field(1, field(1, value)), 0);
    CHECK_EQ(TFW_OK, out.status);
    CHECK_EQ(4, out.int64s[0]);
}

static void test_keys_are_any_bytes(void) {
    tfw_feature asked = feature("", TFW_INT64, TFW_DENSE, 1);
    asked.name = "\xff\0\xc3";
    asked.name_len = 3;
    blob pair = JOIN(field(1, RAW("\xff\0\xc3")), field(2, INTS(8)));
    CHECK_EQ(8, parse_as(asked, EXAMPLE(field(1, pair)), 0).int64s[0]);
}

static void test_messages_in_pieces_are_merged(void) {
    EXPECT_INTS(JOIN(EXAMPLE(entry("b", STRING("x"))), EXAMPLE(entry("a", INTS(1)))), 1);
    EXPECT_INTS(JOIN(EXAMPLE(entry("a", INTS(1, 2))), EXAMPLE(entry("a", INTS(3)))), 3);
}

/* ---- Duplicates and absence ----------------------------------------------------------------- */

static void test_the_last_entry_of_a_key_counts(void) {
    EXPECT_INTS(EXAMPLE(entry("a", INTS(1, 2, 3)), entry("b", INTS(9)), entry("a", INTS(4))), 4);
    /* An earlier entry may be of another kind or size. */
    EXPECT_INTS(EXAMPLE(entry("a", FLOATS(1, 2)), entry("a", INTS(4))), 4);
    EXPECT_INTS(EXAMPLE(entry("a", INTS(1)), entry("a", INTS(4, 5))), 4, 5);
    expect_strings("z|", variable(TFW_BYTES, EXAMPLE(entry("a", STRING("xy")),
                                                     entry("a", STRING("z")))));
    /* An empty list of a kind counts, too. */
    blob emptied = EXAMPLE(entry("a", INTS(1)), entry("a", NO_INTS));
    CHECK_EQ(0, variable(TFW_INT64, emptied).count);
    CHECK_EQ(TFW_E_COUNT, dense(TFW_INT64, 1, emptied).status);
    blob changed = EXAMPLE(entry("a", INTS(1)), entry("a", NO_FLOATS));
    CHECK_EQ(TFW_E_KIND, variable(TFW_INT64, changed).status);
    CHECK_EQ(TFW_E_KIND, dense(TFW_INT64, 1, changed).status);
}

static void test_a_last_entry_without_a_kind(void) {
    blob message = EXAMPLE(entry("a", INTS(1)), entry("a", NOTHING));
    tfw_feature asked = feature("a", TFW_INT64, TFW_VARIABLE, 0);
    CHECK_EQ(1, dense(TFW_INT64, 1, message).int64s[0]);
    CHECK_EQ(0, variable(TFW_INT64, message).count);
    CHECK_EQ(1, parse_as(asked, message, TFW_SINGLE).count);
    asked.layout = TFW_DENSE;
    asked.count = 1;
    CHECK_EQ(1, parse_as(asked, message, TFW_SINGLE).int64s[0]);
}

static void test_repeated_features_hold_a_multiple(void) {
    tfw_feature asked = feature("a", TFW_INT64, TFW_REPEATED, 2);
    const int64_t numbers[4] = {1, 2, 3, 4};
    expect_int64s(numbers, 4, parse_as(asked, with(INTS(1, 2, 3, 4)), 0));
    expect_int64s(numbers, 0, parse_as(asked, with(NO_INTS), 0));
    expect_int64s(numbers, 0, parse_as(asked, NOTHING, 0));
    outcome out = parse_as(asked, with(INTS(1, 2, 3)), 0);
    CHECK_EQ(TFW_E_COUNT, out.status);
    CHECK_EQ(2, out.error.expected);
    CHECK_EQ(3, out.error.found);
    CHECK_EQ(TFW_E_KIND, parse_as(asked, with(NO_FLOATS), 0).status);
    /* As dense ones, they see through an entry without a kind. */
    blob message = EXAMPLE(entry("a", INTS(1, 2)), entry("a", NOTHING));
    expect_int64s(numbers, 2, parse_as(asked, message, 0));
    expect_int64s(numbers, 2, parse_as(asked, message, TFW_SINGLE));
    asked.count = 0;
    CHECK_EQ(TFW_OK, parse_as(asked, with(NO_INTS), 0).status);
    CHECK_EQ(TFW_E_COUNT, parse_as(asked, with(INTS(1)), 0).status);
}

static void test_missing_features(void) {
    const blob absent[] = {NOTHING, EXAMPLE(entry("b", INTS(1))), with(NOTHING)};
    const int64_t numbers[2] = {11, 12}, offsets[3] = {0, 0, 2};
    for (size_t i = 0; i < COUNT(absent); i++) {
        outcome out = dense(TFW_INT64, 2, absent[i]);
        CHECK_EQ(TFW_E_MISSING, out.status);
        CHECK_EQ(0, out.error.feature);
        CHECK_EQ(TFW_E_MISSING, dense(TFW_BYTES, 1, absent[i]).status);
        CHECK_EQ(TFW_E_MISSING, dense(TFW_FLOAT, 0, absent[i]).status);
        CHECK_EQ(0, variable(TFW_INT64, absent[i]).count);
        CHECK_EQ(TFW_OK, variable(TFW_BYTES, absent[i]).status);
        tfw_feature asked = feature("a", TFW_INT64, TFW_DENSE, 2);
        asked.has_default = 1;
        asked.default_values = numbers;
        expect_int64s(numbers, 2, parse_as(asked, absent[i], 0));
        asked.kind = TFW_BYTES;
        asked.default_values = "xy";
        asked.default_offsets = offsets;
        expect_strings("|xy|", parse_as(asked, absent[i], 0));
    }
}

static void test_an_empty_list_is_not_missing_unless_asked(void) {
    const int64_t number = 11;
    tfw_feature asked = feature("a", TFW_INT64, TFW_DENSE, 1);
    CHECK_EQ(TFW_E_COUNT, parse_as(asked, with(NO_INTS), 0).status);
    CHECK_EQ(TFW_E_MISSING, parse_as(asked, with(NO_INTS), TFW_EMPTY_IS_MISSING).status);
    asked.has_default = 1;
    asked.default_values = &number;
    outcome out = parse_as(asked, with(NO_INTS), 0);
    CHECK_EQ(TFW_E_COUNT, out.status);
    CHECK_EQ(1, out.error.expected);
    CHECK_EQ(0, out.error.found);
    CHECK_EQ(11, parse_as(asked, with(NO_INTS), TFW_EMPTY_IS_MISSING).int64s[0]);
    CHECK_EQ(TFW_E_KIND, parse_as(asked, with(NO_FLOATS), TFW_EMPTY_IS_MISSING).status);
    CHECK_EQ(TFW_OK, dense(TFW_INT64, 0, with(NO_INTS)).status);
}

static void test_misfits_are_told_with_what_was_found(void) {
    outcome out = dense(TFW_INT64, 2, with(INTS(1, 2, 3)));
    CHECK_EQ(TFW_E_COUNT, out.status);
    CHECK_EQ(2, out.error.expected);
    CHECK_EQ(3, out.error.found);
    CHECK_EQ(1, dense(TFW_FLOAT, 2, with(FLOATS(1))).error.found);
    CHECK_EQ(2, dense(TFW_BYTES, 1, with(JOIN(STRING("a"), STRING("b")))).error.found);
    out = dense(TFW_INT64, 1, with(FLOATS(1)));
    CHECK_EQ(TFW_E_KIND, out.status);
    CHECK_EQ(TFW_INT64, out.error.expected);
    CHECK_EQ(TFW_FLOAT, out.error.found);
    CHECK_EQ(TFW_BYTES, variable(TFW_FLOAT, with(NO_STRINGS)).error.found);
    CHECK_EQ(TFW_INT64, variable(TFW_BYTES, with(INTS(1))).error.found);
}

static void test_values_beyond_the_slot_are_counted_not_written(void) {
    blob many = with(field(2, repeat(JOIN(tag(1, 5), float_bits(1.f)), 5000)));
    outcome out = dense(TFW_FLOAT, 1, many); /* one slot of the test's own, checked by ASan */
    CHECK_EQ(TFW_E_COUNT, out.status);
    CHECK_EQ(5000, out.error.found);
    out = dense(TFW_INT64, 2, with(field(3, field(1, repeat(RAW("\x81\x01"), 5000)))));
    CHECK_EQ(5000, out.error.found);
    out = dense(TFW_FLOAT, 0, with(field(2, field(1, repeat(RAW("1234"), 70)))));
    CHECK_EQ(70, out.error.found);
}

/* ---- Malformed messages --------------------------------------------------------------------- */

static void test_malformed_messages_are_refused_with_their_place(void) {
    expect_malformed(RAW("\x02\x00"), 0);             /* field number 0 */
    expect_malformed(RAW("\x0e\x00"), -1);            /* wire type 6 */
    expect_malformed(RAW("\x0f\x00"), -1);            /* wire type 7 */
    expect_malformed(RAW("\x0c"), -1);                /* end of a group that has not begun */
    expect_malformed(RAW("\x0a\x02\x12"), 1);         /* length beyond the message */
    expect_malformed(RAW("\x0d\x01\x02\x03"), -1);    /* 32 bits cut off */
    expect_malformed(RAW("\x09\x01\x02\x03"), -1);    /* 64 bits cut off */
    expect_malformed(RAW("\x08"), 1);                 /* varint cut off */
    expect_malformed(RAW("\x08\x80\x80"), 1);
    expect_malformed(RAW("\x0a"), 1);                 /* no length */
    expect_malformed(RAW("\x80\x80\x80\x80\x10\x01"), 0); /* a tag above 32 bits */
    expect_malformed(RAW("\x12\xff\xff\xff\xff\x7f"), 1); /* unknown, far beyond */
    expect_malformed(EXAMPLE(field(1, RAW("\x0a\x05" "a"))), 5);
    expect_malformed(with(RAW("\x1a\x04\x0a\x01\x05")), -1);
    outcome out = variable(TFW_INT64, with(field(3, field(1, RAW("\x05\x80")))));
    CHECK_EQ(TFW_E_WIRE, out.status);
    CHECK_EQ(0, out.error.feature);
    CHECK_EQ(14, out.error.offset);
}

static void test_packed_floats_must_be_whole(void) {
    for (size_t len = 0; len < 9; len++) {
        blob message = with(field(2, field(1, repeat(RAW("x"), len))));
        CHECK_EQ(len % 4 == 0 ? TFW_OK : TFW_E_WIRE, variable(TFW_FLOAT, message).status);
    }
}

/* Values that nobody asked for are not looked into; those of another kind than asked for are. */
static void test_only_requested_values_are_looked_into(void) {
    blob garbage = RAW("\x07\xff\xff garbage");
    EXPECT_INTS(EXAMPLE(entry("b", garbage), entry("a", INTS(1)), entry("c", garbage)), 1);
    expect_malformed(with(garbage), -1);
    expect_malformed(with(field(2, field(1, RAW("xyz")))), -1);
    expect_malformed(with(JOIN(field(2, garbage), INTS(1))), -1);
    expect_malformed(EXAMPLE(entry("a", garbage), entry("a", INTS(1))), -1);
}

static void test_groups(void) {
    blob ok = with(INTS(3));
    blob nested = JOIN(repeat(tag(5, 3), 100), repeat(tag(5, 4), 100));
    EXPECT_INTS(JOIN(nested, ok, nested), 3);
    expect_malformed(JOIN(repeat(tag(5, 3), 101), repeat(tag(5, 4), 101), ok), 100);
    expect_malformed(JOIN(tag(5, 3), tag(6, 4), ok), 1);
    expect_malformed(JOIN(tag(5, 3), tag(6, 3), tag(5, 4), tag(6, 4), ok), 2);
    expect_malformed(JOIN(ok, tag(5, 3)), -1);
    expect_malformed(JOIN(tag(5, 3), RAW("\x02\x00"), tag(5, 4)), 1);
    expect_malformed(JOIN(tag(5, 3), RAW("\x0e"), tag(5, 4)), -1);
    expect_malformed(repeat(tag(5, 3), 200000), 100); /* costs no stack */
}

static blob sample(void) {
    return JOIN(unknown_fields(),
                EXAMPLE(entry("a", JOIN(INTS(1, 300, -1), NO_INTS)), entry("b", STRING("bytes")),
                        entry("a", JOIN(FLOATS(1), field(3, JOIN(tag(1, 0), varint(5)))))),
                EXAMPLE(entry("c", FLOATS(1, 2, 3)), unknown_fields()));
}

static void test_a_message_cut_anywhere_between_fields_is_refused(void) {
    blob whole = sample();
    expect_int64s((const int64_t[]){5}, 1, variable(TFW_INT64, whole));
    size_t clean = 0;
    for (size_t len = 0; len < whole.len; len++) {
        outcome out = variable(TFW_INT64, (blob){whole.data, len});
        clean += out.status == TFW_OK;
        CHECK(out.status == TFW_OK || out.status == TFW_E_WIRE);
    }
    CHECK_EQ(7, clean); /* before each of the five unknown fields and the two Features */
}

static void test_a_default_without_values_is_refused(void) {
    tfw_feature asked = feature("a", TFW_INT64, TFW_DENSE, 1);
    tfw_schema *schema;
    tfw_columns *columns;
    tfw_error error;
    asked.has_default = 1;
    CHECK_EQ(TFW_OK, tfw_schema_create(&asked, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_E_SCHEMA, tfw_columns_create(schema, 0, &columns, &error));
    CHECK(columns == NULL);
    CHECK_EQ(0, error.feature);
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, TFW_FEATURE_LISTS, &columns, &error));
    tfw_columns_free(columns);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_create(schema, 16, &columns, &error));
    tfw_schema_free(schema);
}

int main(void) {
    RUN(test_packed_and_unpacked_numbers_are_the_same);
    RUN(test_lists_of_one_kind_are_merged);
    RUN(test_the_last_kind_of_a_oneof_counts);
    RUN(test_int64s_wrap_and_floats_keep_their_bits);
    RUN(test_varints_may_be_longer_than_need_be);
    RUN(test_unknown_fields_are_skipped_at_every_level);
    RUN(test_known_fields_of_another_wire_type_are_unknown);
    RUN(test_map_entries_in_any_form);
    RUN(test_keys_are_any_bytes);
    RUN(test_messages_in_pieces_are_merged);
    RUN(test_the_last_entry_of_a_key_counts);
    RUN(test_a_last_entry_without_a_kind);
    RUN(test_repeated_features_hold_a_multiple);
    RUN(test_missing_features);
    RUN(test_an_empty_list_is_not_missing_unless_asked);
    RUN(test_misfits_are_told_with_what_was_found);
    RUN(test_values_beyond_the_slot_are_counted_not_written);
    RUN(test_malformed_messages_are_refused_with_their_place);
    RUN(test_packed_floats_must_be_whole);
    RUN(test_only_requested_values_are_looked_into);
    RUN(test_groups);
    RUN(test_a_message_cut_anywhere_between_fields_is_refused);
    RUN(test_a_default_without_values_is_refused);
    blobs_free();
    return check_report("decode");
}
