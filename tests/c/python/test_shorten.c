/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_measure and tfw_shorten: what a message decodes to, and messages with their first parts. */
#include "proto.h"
#include "tfwire_python.h"

#define EVERYTHING {UINT32_MAX, UINT64_MAX, UINT64_MAX}
enum { MOST_CUTS = 64 };

typedef struct shortened {
    int status;
    blob message;
    tfw_cut cuts[MOST_CUTS];
    size_t count;
    uint64_t left_out;
} shortened;

/* Both between pages that nobody may touch. */
static shortened shorten(blob message, tfw_extent most) {
    guarded in = guarded_new(message.len, true), out = guarded_new(message.len, true);
    shortened s = {.status = TFW_OK};
    size_t len;
    if (message.len != 0) {
        memcpy(in.data, message.data, message.len);
    }
    most.features = most.features < MOST_CUTS / 2 ? most.features : MOST_CUTS / 2;
    s.status = tfw_shorten(in.data, message.len, &most, out.data, &len, s.cuts, MOST_CUTS,
                           &s.count, &s.left_out, NULL);
    CHECK(len <= message.len);
    s.message = raw(out.data, len);
    guarded_free(in);
    guarded_free(out);
    return s;
}

static tfw_extent measured(blob message) {
    tfw_extent extent = {0};
    guarded in = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(in.data, message.data, message.len);
    }
    CHECK_EQ(TFW_OK, tfw_measure(in.data, message.len, &extent, NULL));
    guarded_free(in);
    return extent;
}

static bool same(blob a, blob b) { return a.len == b.len && memcmp(a.data, b.data, a.len) == 0; }

static void expect_extent(blob message, uint64_t features, uint64_t objects, uint64_t bytes) {
    const tfw_extent found = measured(message);
    CHECK_EQ(features, found.features);
    CHECK_EQ(objects, found.objects);
    CHECK_EQ(bytes, found.bytes);
}

/* What is left of a message, where one entry is cut or none. */
static void expect(blob expected, uint64_t values, uint64_t steps, blob message, tfw_extent most) {
    const shortened s = shorten(message, most);
    CHECK_EQ(TFW_OK, s.status);
    CHECK(same(expected, s.message));
    CHECK_EQ(values != 0 || steps != 0, s.count);
    CHECK_EQ(values, s.count != 0 ? s.cuts[0].values : 0);
    CHECK_EQ(steps, s.count != 0 ? s.cuts[0].steps : 0);
    const tfw_extent found = measured(s.message);
    CHECK(found.objects <= most.objects && found.bytes <= most.bytes);
}

static void test_extents(void) {
    expect_extent(NOTHING, 0, 0, 0);
    expect_extent(EXAMPLE(entry("a", INTS(1, 2)), entry("bc", FLOATS(3))), 2, 2, 3 + 16 + 4);
    expect_extent(EXAMPLE(entry("a", JOIN(STRING("xyz"), STRING("")))), 1, 3, 4);
    const blob steps = JOIN(field(1, STRING("x")), field(1, NOTHING), field(1, INTS(7)));
    expect_extent(field(2, entry("s", steps)), 1, 1 + 3 + 1, 1 + 1 + 8);
    /* Fields of no meaning, and values that others have made void, are nothing. */
    const blob unknown = repeat(JOIN(tag(9, 0), varint(1)), 100);
    expect_extent(unknown, 0, 0, 0);
    expect_extent(EXAMPLE(unknown, entry("a", JOIN(STRING("x"), unknown, INTS(1)))), 1, 1, 1 + 8);
    expect_extent(EXAMPLE(entry("a", JOIN(STRING("x"), INTS(1), NO_STRINGS))), 1, 1, 1);
    /* Every entry counts, also of one key; a long key counts by its bytes. */
    expect_extent(EXAMPLE(entry("a", NOTHING), entry("a", NOTHING)), 2, 2, 2);
    expect_extent(EXAMPLE(field(1, field(1, repeat(RAW("k"), 300)))), 1, 1 + 300 - 256, 300);
}

static void test_what_fits_is_kept(void) {
    const tfw_extent everything = EVERYTHING;
    const blob words = entry("w", JOIN(field(1, STRING("x")), field(1, NOTHING)));
    const blob message = JOIN(EXAMPLE(entry("a", JOIN(INTS(1), INTS(2, 300))), entry("b", NO_INTS)),
                              field(2, words), EXAMPLE(entry("f", FLOATS(1, 2))));
    expect(message, 0, 0, message, everything);
    expect(NOTHING, 0, 0, NOTHING, everything);
    /* But fields of no meaning, void values, and all keys but the last are not. */
    const blob unknown = JOIN(tag(9, 0), varint(1)), key = field(1, RAW("k"));
    const blob odd = field(1, JOIN(key, unknown, field(1, RAW("a")), field(2, INTS(1))));
    expect(EXAMPLE(entry("a", INTS(1))), 0, 0, JOIN(unknown, EXAMPLE(odd)), everything);
    const blob voided = entry("a", JOIN(INTS(4), STRING("x"), unknown, INTS(1)));
    expect(EXAMPLE(entry("a", INTS(1))), 0, 0, EXAMPLE(voided), everything);
}

static void test_the_first_values_are_kept(void) {
    const tfw_extent some = {4, 1, 1 + 2 * 8};
    expect(EXAMPLE(entry("a", INTS(1, 300))), 2, 0, EXAMPLE(entry("a", INTS(1, 300, 5, 6))), some);
    const blob singly = field(3, repeat(JOIN(tag(1, 0), varint(300)), 5));
    const blob two = field(3, repeat(JOIN(tag(1, 0), varint(300)), 2));
    expect(EXAMPLE(entry("a", two)), 3, 0, EXAMPLE(entry("a", singly)), some);
    const tfw_extent floats = {4, 1, 1 + 2 * 4};
    expect(EXAMPLE(entry("a", FLOATS(1, 2))), 1, 0, EXAMPLE(entry("a", FLOATS(1, 2, 3))), floats);
    /* None after one that does not fit, though it would. */
    const tfw_extent short_strings = {4, 9, 1 + 3};
    const blob strings = field(1, JOIN(field(1, RAW("ab")), field(1, RAW("long")),
                                       field(1, RAW("c"))));
    expect(EXAMPLE(entry("a", field(1, field(1, RAW("ab"))))), 2, 0,
           EXAMPLE(entry("a", strings)), short_strings);
    const tfw_extent one_string = {4, 2, 99};
    expect(EXAMPLE(entry("a", field(1, field(1, RAW("ab"))))), 2, 0,
           EXAMPLE(entry("a", strings)), one_string);
}

static void test_the_first_steps_are_kept(void) {
    const blob x = field(1, STRING("x")), xy = field(1, field(1, JOIN(field(1, RAW("x")),
                                                                     field(1, RAW("y")))));
    const blob all = field(2, entry("s", JOIN(xy, xy, xy)));
    expect(field(2, entry("s", JOIN(xy, xy))), 2, 1, all, (tfw_extent){4, 1 + 2 * 3, 99});
    expect(field(2, entry("s", JOIN(xy, x))), 1 + 2, 1, all, (tfw_extent){4, 1 + 3 + 2, 99});
    expect(field(2, entry("s", NOTHING)), 6, 3, all, (tfw_extent){4, 1, 99});
    const blob empty = repeat(field(1, NOTHING), 50);
    expect(field(2, entry("s", repeat(field(1, NOTHING), 9))), 0, 41, field(2, entry("s", empty)),
           (tfw_extent){4, 10, 99});
}

static void test_the_first_features_are_kept(void) {
    const blob a = entry("a", INTS(1)), b = entry("b", INTS(2)), w = entry("w", field(1, INTS(3)));
    const blob message = JOIN(EXAMPLE(a, b, a), field(2, JOIN(w, w, w)), EXAMPLE(a));
    const shortened s = shorten(message, (tfw_extent){2, 99, 99});
    /* The header of a piece stays as wide as it is, and a piece may become empty. */
    CHECK(same(JOIN(EXAMPLE(a, b), field(2, JOIN(w, w)), EXAMPLE(NOTHING)), s.message));
    CHECK_EQ(3, s.left_out);
    CHECK_EQ(0, s.count);
    /* What one does not use is for those after it. */
    const blob long_one = entry("c", INTS(1, 2, 3, 4, 5, 6));
    const shortened t = shorten(EXAMPLE(a, b, long_one), (tfw_extent){9, 9, 3 + 8 * 6});
    CHECK(same(EXAMPLE(a, b, entry("c", INTS(1, 2, 3, 4))), t.message));
    CHECK_EQ(1, t.count);
    CHECK_EQ(2, t.cuts[0].values);
    /* The key of one that is cut, in the message; and one whose key is too long. */
    const blob keyed = EXAMPLE(a, b, long_one);
    CHECK_EQ('c', keyed.data[t.cuts[0].key_at]);
    CHECK_EQ(1, t.cuts[0].key_len);
    CHECK_EQ(0, t.cuts[0].is_list);
    const shortened u = shorten(EXAMPLE(entry("long", INTS(1)), a), (tfw_extent){9, 9, 7});
    CHECK_EQ(1, u.left_out);
    CHECK_EQ(1, u.count);
}

static void test_lengths_stay_as_wide_as_they_are(void) {
    const blob strings = field(1, repeat(field(1, RAW("0123456789")), 100));
    const shortened s = shorten(EXAMPLE(entry("a", strings)), (tfw_extent){9, 4, 99});
    CHECK_EQ(TFW_OK, s.status);
    expect_extent(s.message, 1, 4, 31);
    const blob wide = JOIN(tag(1, 2), long_varint(strings.len + 6, 5), field(1, RAW("a")),
                           tag(2, 2), long_varint(strings.len, 2), strings);
    expect_extent(shorten(EXAMPLE(wide), (tfw_extent){9, 3, 99}).message, 1, 3, 21);
}

static void test_malformed_messages_are_refused(void) {
    tfw_error error = {0};
    tfw_extent extent;
    const blob cases[] = {RAW("\x0a"), RAW("\x0a\x05"), EXAMPLE(RAW("\x0a\x7f")), RAW("\x0c"),
                          EXAMPLE(entry("a", field(3, field(1, RAW("\x80"))))),
                          EXAMPLE(entry("a", field(2, field(1, RAW("abc"))))),
                          field(2, entry("a", field(1, RAW("\x0a\x09"))))};
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_EQ(TFW_E_WIRE, shorten(cases[i], (tfw_extent){1, 1, 1}).status);
        CHECK_EQ(TFW_E_WIRE, tfw_measure(cases[i].data, cases[i].len, &extent, &error));
        CHECK(error.offset >= 0 && (size_t)error.offset <= cases[i].len && error.text[0] != 0);
    }
}

static void test_arguments_are_checked(void) {
    tfw_extent extent, most = {2, 1, 1};
    tfw_cut cuts[3];
    size_t len = 9, count = 9;
    uint64_t left_out = 9;
    uint8_t out[99];
    const blob message = EXAMPLE(entry("a", INTS(1)));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_shorten(message.data, message.len, &most, out, &len, cuts, 3,
                                         &count, &left_out, NULL));
    CHECK(len == 0 && count == 0 && left_out == 0);
    most.features = 1;
    CHECK_EQ(TFW_OK, tfw_shorten(message.data, message.len, &most, out, &len, cuts, 3, &count,
                                 &left_out, NULL));
    CHECK_EQ(1, count);
    CHECK_EQ(TFW_OK, tfw_measure(NULL, 0, &extent, NULL));
    CHECK_EQ(TFW_OK, tfw_shorten(NULL, 0, &most, NULL, &len, NULL, 0, &count, &left_out, NULL));
    most.features = 0;
    CHECK_EQ(TFW_OK, tfw_shorten(message.data, message.len, &most, out, &len, NULL, 0, &count,
                                 &left_out, NULL));
    CHECK(count == 0 && left_out == 1);
}

int main(void) {
    RUN(test_extents);
    RUN(test_what_fits_is_kept);
    RUN(test_the_first_values_are_kept);
    RUN(test_the_first_steps_are_kept);
    RUN(test_the_first_features_are_kept);
    RUN(test_lengths_stay_as_wide_as_they_are);
    RUN(test_malformed_messages_are_refused);
    RUN(test_arguments_are_checked);
    blobs_free();
    return check_report("shorten");
}
