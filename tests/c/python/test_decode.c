/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a schema to flat arrays, which are compared as text. */
#include "proto.h"

#include "python/decode.h"

/* ---- Decoded messages as text --------------------------------------------------------------- */

enum { TEXT_SIZE = 1 << 16 };

/* }( entries u: a map; 'abc': a key; i<1 2>, f<1>, b<>: numbers, and no strings; ]( "abc" or steps
 * e: a list; ]: a Feature without a kind; t: the end of a sequence. */
typedef struct listing {
    char text[TEXT_SIZE];
    size_t len;
} listing;

static void say(listing *l, const void *text, size_t len) {
    if (l->len + len < TEXT_SIZE) {
        memcpy(l->text + l->len, text, len);
        l->len += len;
    }
}

static void say_quoted(listing *l, const char *quote, const void *text, size_t len) {
    say(l, quote, 1);
    say(l, text, len);
    say(l, quote, 1);
}

static void say_value(listing *l, const tfwi_decoded *d, const tfwi_value *value) {
    const size_t count = value->end - value->begin;
    if (value->kind == TFW_NONE) {
        say(l, "]", 1);
        return;
    }
    const bool list = value->kind == TFWI_STEPS || (value->kind == TFW_BYTES && count != 0);
    const char *open = value->kind == TFW_INT64 ? "i<" : value->kind == TFW_FLOAT ? "f<" : "b<";
    say(l, list ? "](" : open, 2);
    for (size_t i = value->begin; i < value->end; i++) {
        char number[40];
        if (value->kind == TFWI_STEPS) {
            say_value(l, d, &d->values.of[i]);
        } else if (value->kind == TFW_BYTES) {
            const tfw_span string = d->strings.of[i];
            say_quoted(l, "\"", (const void *)(uintptr_t)string.offset, (size_t)string.length);
        } else {
            const double found = value->kind == TFW_INT64 ? (double)d->int64s.of[i]
                                                          : (double)d->floats.of[i];
            say(l, number, (size_t)snprintf(number, sizeof number, "%s%.0f",
                                            i != value->begin ? " " : "", found));
        }
    }
    say(l, list ? "e" : ">", 1);
}

static size_t say_map(listing *l, const tfwi_decoded *d, size_t begin, size_t end) {
    say(l, "}(", 2);
    for (size_t i = begin; i < end;) {
        const tfwi_value *value = &d->values.of[i];
        say_quoted(l, "'", value->key, value->key_len);
        say_value(l, d, value);
        i = value->kind == TFWI_STEPS ? value->end : i + 1;
    }
    say(l, "u", 1);
    return end;
}

static void expect_text(const char *expected, const tfwi_decoded *d, bool sequence) {
    static listing l;
    memset(&l, 0, sizeof l);
    for (size_t i = 0, begin = 0; i < d->ends.count; i++) {
        begin = say_map(&l, d, begin, d->ends.of[i]);
        say(&l, "t", sequence && i % 2 == 1);
    }
    if (strcmp(expected, l.text) != 0) {
        fprintf(stderr, "expected %s\n   found %s\n", expected, l.text);
    }
    CHECK(strcmp(expected, l.text) == 0);
}

/* ---- Checks --------------------------------------------------------------------------------- */

/* Decodes a message, whose strings lie in the page until the next call. */
static int decode(blob message, unsigned flags, tfwi_decoded *d, tfw_error *error) {
    static guarded page;
    static bool used;
    if (used) {
        guarded_free(page);
    }
    used = true;
    page = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(page.data, message.data, message.len);
    }
    const tfw_span span = {0, message.len};
    tfwi_messages messages;
    CHECK_EQ(TFW_OK, tfwi_messages_init(&messages, page.data, message.len, &span, 1, flags, NULL));
    return tfwi_decode(d, &messages, 1, flags, error);
}

static void expect(const char *expected, blob message, unsigned flags) {
    tfwi_decoded d = {0};
    CHECK_EQ(TFW_OK, decode(message, flags, &d, NULL));
    expect_text(expected, &d, (flags & TFW_SEQUENCE) != 0);
    tfwi_decoded_clear(&d);
}

static void test_kinds(void) {
    expect("}(u", NOTHING, 0);
    expect("}('a'i<1 -2>u", EXAMPLE(entry("a", INTS(1, -2))), 0);
    expect("}('a'f<1 2>u", EXAMPLE(entry("a", FLOATS(1, 2))), 0);
    expect("}('a'](\"x\"\"\"eu", EXAMPLE(entry("a", JOIN(STRING("x"), STRING("")))), 0);
    expect("}('a'i<>'b'f<>'c'b<>'d']u",
           EXAMPLE(entry("a", NO_INTS), entry("b", NO_FLOATS), entry("c", NO_STRINGS),
                   entry("d", NOTHING)), 0);
}

static void test_rare_forms(void) {
    blob unpacked = field(3, JOIN(tag(1, 0), varint(1), field(1, RAW("\x02\x03"))));
    blob single = field(2, JOIN(tag(1, 5), float_bits(4.f)));
    expect("}('a'i<1 2 3 4>'b'f<4 5>u",
           EXAMPLE(entry("a", JOIN(unpacked, INTS(4))), entry("b", JOIN(single, FLOATS(5)))), 0);
    /* Of a oneof's kinds the last counts; what the others had written is taken back. */
    expect("}('a'f<3>u", EXAMPLE(entry("a", JOIN(FLOATS(1), INTS(2), FLOATS(3)))), 0);
    expect("}('a'i<3>u", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3)))), 0);
    expect("}('a'](\"y\"eu", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3), STRING("y")))), 0);
    expect("}('a'b<>u", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3), NO_STRINGS))), 0);
    blob pieces = JOIN(field(2, INTS(1)), field(1, RAW("a")), field(2, INTS(2)));
    expect("}('a'i<1 2>u", EXAMPLE(field(1, pieces)), 0);
    blob no_key = field(1, field(2, INTS(1))), no_value = field(1, field(1, RAW("b")));
    expect("}(''i<1>'b']u", EXAMPLE(no_key, no_value), 0);
    /* Of a key's entries the last counts: a dict sees to it. */
    blob first = EXAMPLE(entry("a", INTS(1)), entry("a", INTS(2)));
    expect("}('a'i<1>'a'i<2>'a']u", JOIN(first, EXAMPLE(entry("a", NOTHING))), 0);
}

static blob steps(const char *key, const blob *features, size_t count) {
    blob all = NOTHING;
    for (size_t i = 0; i < count; i++) {
        all = JOIN(all, field(1, features[i]));
    }
    return entry(key, all);
}

static void test_sequences(void) {
    const blob words[] = {STRING("x"), NOTHING, JOIN(STRING("y"), STRING("z"))};
    const blob frames[] = {FLOATS(1, 2), JOIN(INTS(9), FLOATS(3)), INTS(7)};
    blob lists = JOIN(steps("f", frames, 3), steps("none", NULL, 0));
    blob message = JOIN(EXAMPLE(entry("n", INTS(3))), field(2, steps("w", words, 3)),
                        EXAMPLE(entry("m", INTS(4))), field(2, lists));
    expect("}('n'i<3>'m'i<4>u"
           "}('w'](](\"x\"e]](\"y\"\"z\"ee'f'](f<1 2>f<3>i<7>e'none'](eut",
           message, TFW_SEQUENCE);
    expect("}('n'i<3>'m'i<4>u", message, 0); /* an Example has no field 2 */
    expect("}(u}(ut", NOTHING, TFW_SEQUENCE);
    /* A list's value in pieces: the steps follow each other. */
    blob two = field(1, JOIN(field(1, RAW("w")), field(2, field(1, INTS(1))),
                             field(2, field(1, INTS(2)))));
    expect("}(u}('w'](i<1>i<2>eut", field(2, two), TFW_SEQUENCE);
}

static void test_malformed_values_are_refused(void) {
    const blob bad[] = {
        entry("a", field(3, field(1, RAW("\x01\x80")))),
        entry("a", field(2, field(1, RAW("12345")))),
        entry("a", RAW("\x1a\x05\x01")),
        entry("a", RAW("\x07")),
        field(1, RAW("\x0a\x02" "a")),
        RAW("\x0a\x02" "a"),
        RAW("\x0e"),
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        tfwi_decoded d = {0};
        CHECK_EQ(TFW_E_WIRE, decode(EXAMPLE(bad[i]), 0, &d, NULL));
        tfwi_decoded_clear(&d);
    }
    const blob bad_lists[] = {
        entry("w", field(1, RAW("\x1a\x05\x01"))),
        entry("w", RAW("\x0a\x05")),
        entry("w", RAW("\x07")),
        RAW("\x0a\x05"),
    };
    for (size_t i = 0; i < COUNT(bad_lists); i++) {
        tfwi_decoded d = {0};
        CHECK_EQ(TFW_E_WIRE, decode(field(2, bad_lists[i]), TFW_SEQUENCE, &d, NULL));
        tfwi_decoded_clear(&d);
        /* Not looked into where Examples are read. */
        const blob example = EXAMPLE(entry("a", INTS(1)));
        CHECK_EQ(TFW_OK, decode(JOIN(example, field(2, bad_lists[i])), 0, &d, NULL));
        tfwi_decoded_clear(&d);
    }
}

static void test_messages_of_other_types_are_refused(void) {
    const blob others[] = {RAW("\x08\x01"), field(5, RAW("x")), EXAMPLE(RAW("\x08\x01")),
                           JOIN(EXAMPLE(RAW("")), RAW("\x10\x01")), field(2, RAW("\x08\x01"))};
    for (size_t i = 0; i < COUNT(others); i++) {
        for (unsigned flags = 0; flags <= TFW_SEQUENCE; flags += TFW_SEQUENCE) {
            tfwi_decoded d = {0};
            tfw_error error;
            CHECK_EQ(TFW_E_WIRE, decode(others[i], flags, &d, &error));
            CHECK_EQ(0, strcmp("no features, but other fields", error.text));
            tfwi_decoded_clear(&d);
        }
    }
    tfwi_decoded d = {0};
    const blob empty = JOIN(EXAMPLE(RAW("")), EXAMPLE(RAW("")));
    CHECK_EQ(TFW_OK, decode(empty, 0, &d, NULL));
    CHECK_EQ(TFW_OK, decode(JOIN(empty, field(2, RAW(""))), TFW_SEQUENCE, &d, NULL));
    CHECK_EQ(TFW_E_WIRE, decode(JOIN(empty, field(2, RAW(""))), 0, &d, NULL));
    tfwi_decoded_clear(&d);
}

static void test_a_malformed_message_is_named(void) {
    blob good = EXAMPLE(entry("a", INTS(1)), entry("b", STRING("x")));
    for (size_t cut = 1; cut < good.len; cut++) {
        blob all = JOIN(good, good);
        const tfw_span spans[] = {{0, good.len}, {good.len, cut}, {0, good.len}};
        tfwi_messages messages;
        tfwi_decoded d = {0};
        tfw_error error;
        CHECK_EQ(TFW_OK, tfwi_messages_init(&messages, all.data, all.len, spans, 3, 0, NULL));
        CHECK_EQ(TFW_E_WIRE, tfwi_decode(&d, &messages, 3, 0, &error));
        CHECK_EQ(1, error.record);
        CHECK(error.offset >= 0 && error.offset <= (int64_t)cut);
        CHECK(error.text[0] != 0);
        CHECK_EQ(1, d.ends.count);
        expect_text("}('a'i<1>'b'](\"x\"eu", &d, false);
        tfwi_decoded_clear(&d);
    }
}

/* Whatever the messages before took, or failed at. */
static void test_memory_is_used_again(void) {
    const blob long_one = EXAMPLE(entry("i", INTS(1, 2)), entry("f", FLOATS(1, 2, 3)),
                                  entry("s", field(1, field(1, repeat(RAW("v"), 5000)))));
    const blob short_one = EXAMPLE(entry("i", INTS(7)), entry("f", FLOATS(8)));
    const blob bad = EXAMPLE(entry("i", INTS(1)), entry("a", RAW("\x07")));
    tfwi_decoded d = {0};
    for (int round = 0; round < 4; round++) {
        CHECK_EQ(TFW_OK, decode(long_one, 0, &d, NULL));
        CHECK_EQ(2, d.int64s.count);
        CHECK_EQ(3, d.floats.count);
        const int64_t *int64s = d.int64s.of;
        CHECK_EQ(TFW_E_WIRE, decode(bad, 0, &d, NULL));
        CHECK_EQ(TFW_OK, decode(short_one, 0, &d, NULL));
        expect_text("}('i'i<7>'f'f<8>u", &d, false);
        CHECK(int64s == d.int64s.of);
        if ((round & 1) != 0) {
            tfwi_decoded_clear(&d);
            CHECK(d.int64s.of == NULL && d.values.capacity == 0);
        }
    }
    tfwi_decoded_clear(&d);
}

static void test_every_failing_allocation_is_reported(void) {
#ifdef TFW_TEST_FAULTS
    blob all = NOTHING;
    char name[20];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "key%d", i);
        all = JOIN(all, entry(name, JOIN(INTS(1, 2), field(3, JOIN(tag(1, 0), varint(1))))),
                   entry("f", FLOATS(1, 2, 3)), entry("s", JOIN(STRING("x"), STRING("yz"))));
    }
    blob message = JOIN(field(1, all), field(2, steps("w", (const blob[]){INTS(1)}, 1)));
    bool complete = false;
    long n = 0;
    for (; !complete; n++) {
        tfwi_decoded d = {0};
        tfw_error error;
        tfwi_test_fail_allocation = n;
        int status = decode(message, TFW_SEQUENCE, &d, &error);
        complete = tfwi_test_fail_allocation >= 0;
        tfwi_test_fail_allocation = -1;
        CHECK_EQ(complete ? TFW_OK : TFW_E_MEMORY, status);
        CHECK(complete || error.status == TFW_E_MEMORY);
        tfwi_decoded_clear(&d);
    }
    CHECK(n > 10);
#endif
}

int main(void) {
    RUN(test_kinds);
    RUN(test_rare_forms);
    RUN(test_sequences);
    RUN(test_malformed_values_are_refused);
    RUN(test_messages_of_other_types_are_refused);
    RUN(test_a_malformed_message_is_named);
    RUN(test_memory_is_used_again);
    RUN(test_every_failing_allocation_is_reported);
    blobs_free();
    return check_report("decode");
}
