/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_find: which records hold a value. */
#include "proto.h"
#include "tfwire_python.h"

enum { MOST = 64 };

static tfw_wanted text_wanted(const char *name, bool is_list, const char *part) {
    return (tfw_wanted){.name = (const uint8_t *)name,
                        .name_len = name != NULL ? strlen(name) : 0,
                        .part = (const uint8_t *)part,
                        .part_len = strlen(part),
                        .is_list = is_list};
}

static tfw_wanted number_wanted(const char *name, bool is_list, int64_t value, const char *part) {
    tfw_wanted wanted = text_wanted(name, is_list, part);
    wanted.integer = value;
    wanted.number = (float)value;
    wanted.has_integer = wanted.has_number = 1;
    return wanted;
}

/* Whether a record is found: among others, by its bytes, in blocks of them, and by a walk, between
 * pages that nobody may touch. */
static bool finds(blob record, tfw_wanted wanted) {
    static const size_t padded[] = {0, 1000, 9000};
    bool found[COUNT(padded)];
    for (size_t k = 0; k < COUNT(padded); k++) {
        const blob padding = repeat(RAW("\x48\x01"), padded[k]);
        const blob parts[] = {padding, record, RAW("\xff"), record, padding};
        const blob all = join(parts, COUNT(parts));
        guarded in = guarded_new(all.len, true);
        tfw_span spans[COUNT(parts)];
        uint32_t out[MOST];
        size_t at = 0;
        memcpy(in.data, all.data, all.len);
        for (size_t i = 0; i < COUNT(parts); i++) {
            spans[i] = (tfw_span){at, parts[i].len};
            at += parts[i].len;
        }
        size_t count = tfw_find(in.data, all.len, spans, COUNT(parts), &wanted, out);
        CHECK(count == 0 || (count == 2 && out[0] == 1 && out[1] == 3));
        found[k] = count != 0;
        guarded_free(in);
    }
    CHECK(found[0] == found[1] && found[1] == found[2]);
    return found[0];
}

static void test_strings(void) {
    const blob record = EXAMPLE(entry("a", JOIN(STRING("xyz"), STRING("needle"))),
                                entry("b", INTS(1, 300)), entry("", STRING("empty key")));
    CHECK(finds(record, text_wanted("a", false, "eedl")));
    CHECK(finds(record, text_wanted("a", false, "xyz")));
    CHECK(finds(record, text_wanted(NULL, false, "needle")));
    CHECK(finds(record, text_wanted("", false, "empty")));
    CHECK(!finds(record, text_wanted("a", false, "zn")));
    CHECK(!finds(record, text_wanted("b", false, "needle")));
    CHECK(!finds(record, text_wanted("ab", false, "needle")));
    CHECK(!finds(record, text_wanted("a", true, "needle")));
    CHECK(!finds(record, text_wanted(NULL, false, "needles")));
    /* A name alone; a key is no value. */
    CHECK(finds(record, text_wanted("b", false, "")));
    CHECK(!finds(record, text_wanted("c", false, "")));
    CHECK(!finds(EXAMPLE(entry("needle", INTS(1))), text_wanted(NULL, false, "needle")));
}

static void test_numbers(void) {
    const blob singly = field(3, JOIN(tag(1, 0), varint(7), tag(1, 0), varint(70000)));
    const blob record = EXAMPLE(entry("a", singly), entry("b", INTS(-1, 300)),
                                entry("f", FLOATS(2.5f, 12)), entry("s", STRING("a 450")));
    CHECK(finds(record, number_wanted("a", false, 7, "7")));
    CHECK(finds(record, number_wanted(NULL, false, 70000, "70000")));
    CHECK(finds(record, number_wanted("b", false, -1, "-1")));
    CHECK(finds(record, number_wanted("b", false, 300, "300")));
    CHECK(finds(record, number_wanted("f", false, 12, "12")));
    CHECK(finds(record, number_wanted("s", false, 450, "450")));
    CHECK(!finds(record, number_wanted("a", false, 300, "300")));
    CHECK(!finds(record, number_wanted("b", false, 299, "299")));
    CHECK(!finds(record, number_wanted(NULL, false, 13, "13")));
    CHECK(finds(EXAMPLE(entry("z", FLOATS(-0.0f))), number_wanted("z", false, 0, "0")));
    CHECK(finds(EXAMPLE(entry("z", NO_INTS)), number_wanted("z", false, 0, "")));
    int64_t many[1500] = {0};
    many[1499] = 12345;
    const blob packed = field(3, field(1, packed_int64s(many, COUNT(many))));
    CHECK(finds(EXAMPLE(entry("m", packed)), number_wanted("m", false, 12345, "12345")));
}

static void test_small_numbers(void) {
    /* By a walk over entries of the usual form, and by the byte and the one before it. */
    for (int value = 1; value < 128; value += 21) {
        for (int others = 0; others < 20; others++) {
            const blob values = JOIN(repeat(varint(70000), (size_t)others), varint((size_t)value));
            const blob ints = field(3, field(1, JOIN(values, varint(128 + (uint64_t)value))));
            const blob record = EXAMPLE(entry("s", STRING("text")), entry("f", FLOATS(2.5f)),
                                        entry("a", ints), entry("b", INTS(200)));
            char part[8];
            snprintf(part, sizeof part, "%d", value);
            CHECK(finds(record, number_wanted("a", false, value, part)));
            CHECK(finds(record, number_wanted(NULL, false, value, part)));
            CHECK(!finds(record, number_wanted("b", false, value, part)));
            CHECK(!finds(record, number_wanted(NULL, false, value - 1, "?")));
        }
    }
}

static void test_feature_lists(void) {
    const blob steps = JOIN(field(1, STRING("x")), field(1, NOTHING), field(1, INTS(700)));
    const blob record = JOIN(EXAMPLE(entry("s", STRING("context"))), field(2, entry("s", steps)));
    CHECK(finds(record, text_wanted("s", true, "x")));
    CHECK(finds(record, number_wanted("s", true, 700, "700")));
    CHECK(finds(record, number_wanted(NULL, false, 700, "700")));
    CHECK(finds(record, text_wanted("s", true, "")));
    CHECK(finds(record, text_wanted("s", false, "text")));
    CHECK(!finds(record, text_wanted("s", true, "context")));
    CHECK(!finds(record, number_wanted("s", false, 700, "700")));
}

static void test_what_counts_of_a_feature(void) {
    /* Pieces are merged, the last kind counts. */
    const blob pieces = JOIN(field(1, RAW("a")), field(2, STRING("x")), field(2, STRING("y")));
    CHECK(finds(EXAMPLE(field(1, pieces)), text_wanted("a", false, "x")));
    CHECK(finds(EXAMPLE(field(1, pieces)), text_wanted("a", false, "y")));
    const blob voided = EXAMPLE(entry("a", JOIN(STRING("x"), INTS(200))));
    CHECK(!finds(voided, text_wanted("a", false, "x")));
    CHECK(finds(voided, number_wanted("a", false, 200, "200")));
}

static void test_text_without_a_name(void) {
    /* Of images and the like it is not looked for; a record without features may be text. */
    const blob image = STRING("\xff\xd8 needle"), late = STRING("needle, then \xff");
    CHECK(!finds(EXAMPLE(entry("a", image)), text_wanted(NULL, false, "needle")));
    CHECK(finds(EXAMPLE(entry("a", image)), text_wanted("a", false, "needle")));
    CHECK(!finds(EXAMPLE(entry("a", late)), text_wanted(NULL, false, "needle")));
    const blob accent = STRING("\xc3\xa9 needle");
    CHECK(finds(EXAMPLE(entry("a", accent)), text_wanted(NULL, false, "needle")));
    CHECK(finds(RAW("{\"json\": \"needle\"}"), text_wanted(NULL, false, "needle")));
    CHECK(!finds(RAW("{\"json\": \"needle\"}"), text_wanted("json", false, "needle")));
    CHECK(!finds(RAW("{\"json\": \"needl\"}"), text_wanted(NULL, false, "needle")));
}

static void test_odd_messages(void) {
    const blob cut = EXAMPLE(entry("a", STRING("needle")));
    for (size_t len = 0; len <= cut.len; len++) {
        finds(raw(cut.data, len), text_wanted("a", false, "needle"));
        finds(raw(cut.data, len), number_wanted(NULL, false, 0, "0"));
        finds(raw(cut.data, len), text_wanted("a", true, ""));
    }
    const blob floats = field(2, field(1, RAW("abc"))), varints = field(3, field(1, RAW("\xff")));
    CHECK(!finds(EXAMPLE(entry("a", floats)), number_wanted("a", false, 9, "9")));
    CHECK(!finds(EXAMPLE(entry("a", varints)), number_wanted("a", false, 9, "9")));
}

static void test_spans_that_do_not_fit(void) {
    const blob record = EXAMPLE(entry("a", STRING("x")));
    const tfw_wanted wanted = text_wanted("a", false, "x");
    const tfw_span spans[] = {{0, record.len}, {0, record.len + 1}, {UINT64_MAX, 2}};
    uint32_t out[3];
    CHECK_EQ(1, tfw_find(record.data, record.len, spans, 3, &wanted, out));
    CHECK_EQ(0, tfw_find(record.data, record.len, spans, 0, &wanted, out));
}

int main(void) {
    RUN(test_strings);
    RUN(test_numbers);
    RUN(test_small_numbers);
    RUN(test_feature_lists);
    RUN(test_what_counts_of_a_feature);
    RUN(test_text_without_a_name);
    RUN(test_odd_messages);
    RUN(test_spans_that_do_not_fit);
    blobs_free();
    return check_report("find");
}
