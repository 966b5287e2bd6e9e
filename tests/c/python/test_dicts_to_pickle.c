/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to pickles of dicts: the streams are disassembled and compared as text. */
#include "proto.h"

/* ---- A disassembler ------------------------------------------------------------------------- */

enum { TEXT_SIZE = 1 << 16, MAX_KEYS = 1000 };

/* Text of a stream: opcodes by their letters, } ] ( u e t, strings as "abc", keys as 'abc' and,
 * when new, with a =, buffers as i<1 2>, f<1> and b<>. */
typedef struct listing {
    char text[TEXT_SIZE];
    size_t len;
    const uint8_t *p;
    const uint8_t *end;
    const uint8_t *keys[MAX_KEYS];
    size_t key_lens[MAX_KEYS];
    size_t key_count;
    const uint8_t *last;
    size_t last_len;
    uint64_t buffer;
} listing;

static void say(listing *l, const void *text, size_t len) {
    if (l->len + len < TEXT_SIZE) {
        memcpy(l->text + l->len, text, len);
        l->len += len;
    }
}

static void say_number(listing *l, const char *format, double value) {
    char number[40];
    say(l, number, (size_t)snprintf(number, sizeof number, format, value));
}

static uint64_t take_number(listing *l, size_t len) {
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        value |= (uint64_t)*l->p++ << (8 * i);
    }
    return value;
}

static void say_string(listing *l, size_t len_size, const char *quote) {
    l->last_len = (size_t)take_number(l, len_size);
    l->last = l->p;
    l->p += l->last_len;
    CHECK(l->p <= l->end);
    say(l, quote, 1);
    say(l, l->last, l->last_len);
    say(l, quote, 1);
}

static void say_key(listing *l, size_t number) {
    CHECK(number < l->key_count);
    if (number < l->key_count) {
        say(l, "'", 1);
        say(l, l->keys[number], l->key_lens[number]);
        say(l, "'", 1);
    }
}

static void memoize(listing *l) {
    if (l->key_count < MAX_KEYS) {
        l->keys[l->key_count] = l->last;
        l->key_lens[l->key_count++] = l->last_len;
    }
    say(l, "=", 1);
}

static void say_buffer(listing *l, const tfw_dicts *dicts) {
    CHECK(l->buffer < dicts->buffer_count);
    const int64_t *b = dicts->buffers + 3 * l->buffer++;
    bool ints = b[0] == TFW_INT64;
    say(l, ints ? "i<" : b[0] == TFW_FLOAT ? "f<" : "b<", 2);
    for (int64_t i = b[1]; i < b[2]; i++) {
        say_number(l, i > b[1] ? " %.0f" : "%.0f",
                   ints ? (double)dicts->int64s[i] : (double)dicts->floats[i]);
    }
    say(l, ">", 1);
}

static void say_opcode(listing *l, const tfw_dicts *dicts) {
    uint8_t opcode = *l->p++;
    switch (opcode) {
    case 0x80: CHECK_EQ(5, *l->p++); break;
    case 'C': say_string(l, 1, "\""); break;
    case 'B': say_string(l, 4, "\""); break;
    case 0x8c: say_string(l, 1, "'"); break;
    case 'X': say_string(l, 4, "'"); break;
    case 0x94: memoize(l); break;
    case 'h': say_key(l, (size_t)take_number(l, 1)); break;
    case 'j': say_key(l, (size_t)take_number(l, 4)); break;
    case 0x97: say_buffer(l, dicts); break;
    case 0x86: say(l, "t", 1); break;
    default: say(l, &opcode, 1); break;
    }
}

/* The text of everything but the outer list; static, until the next call. */
static const char *text_of(const tfw_dicts *dicts) {
    static listing l;
    memset(&l, 0, sizeof l);
    l.p = dicts->pickle;
    l.end = dicts->pickle + dicts->pickle_len;
    while (l.p < l.end) {
        say_opcode(&l, dicts);
    }
    CHECK_EQ(dicts->buffer_count, l.buffer);
    CHECK(l.len >= 4 && memcmp(l.text, "](", 2) == 0 && memcmp(l.text + l.len - 2, "e.", 2) == 0);
    l.text[l.len - 2] = 0;
    return l.text + 2;
}

/* ---- Checks --------------------------------------------------------------------------------- */

static void expect_text(const char *expected, const tfw_dicts *dicts) {
    const char *actual = text_of(dicts);
    if (strcmp(expected, actual) != 0) {
        fprintf(stderr, "expected %s\n   found %s\n", expected, actual);
    }
    CHECK(strcmp(expected, actual) == 0);
}

static int decode(blob message, unsigned flags, tfw_dicts *dicts, tfw_error *error) {
    guarded page = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(page.data, message.data, message.len);
    }
    tfw_span span = {0, message.len};
    size_t done;
    int status = tfw_decode(page.data, message.len, &span, 1, flags, dicts, &done, error);
    CHECK_EQ(status == TFW_OK, done);
    guarded_free(page);
    return status;
}

static void expect(const char *expected, blob message, unsigned flags) {
    tfw_dicts dicts = {.pickle = NULL};
    CHECK_EQ(TFW_OK, decode(message, flags, &dicts, NULL));
    expect_text(expected, &dicts);
    tfw_dicts_free(&dicts);
}

static void test_kinds(void) {
    expect("}(u", NOTHING, 0);
    expect("}('a'=i<1 -2>u", EXAMPLE(entry("a", INTS(1, -2))), 0);
    expect("}('a'=f<1 2>u", EXAMPLE(entry("a", FLOATS(1, 2))), 0);
    expect("}('a'=](\"x\"\"\"eu", EXAMPLE(entry("a", JOIN(STRING("x"), STRING("")))), 0);
    expect("}('a'=i<>'b'=f<>'c'=b<>'d'=]u",
           EXAMPLE(entry("a", NO_INTS), entry("b", NO_FLOATS), entry("c", NO_STRINGS),
                   entry("d", NOTHING)), 0);
}

static void test_rare_forms(void) {
    blob unpacked = field(3, JOIN(tag(1, 0), varint(1), field(1, RAW("\x02\x03"))));
    blob single = field(2, JOIN(tag(1, 5), float_bits(4.f)));
    expect("}('a'=i<1 2 3 4>'b'=f<4 5>u",
           EXAMPLE(entry("a", JOIN(unpacked, INTS(4))), entry("b", JOIN(single, FLOATS(5)))), 0);
    /* Of a oneof's kinds the last counts; what the others had written is taken back. */
    expect("}('a'=f<3>u", EXAMPLE(entry("a", JOIN(FLOATS(1), INTS(2), FLOATS(3)))), 0);
    expect("}('a'=i<3>u", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3)))), 0);
    expect("}('a'=](\"y\"eu", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3), STRING("y")))), 0);
    expect("}('a'=b<>u", EXAMPLE(entry("a", JOIN(STRING("x"), INTS(3), NO_STRINGS))), 0);
    blob pieces = JOIN(field(2, INTS(1)), field(1, RAW("a")), field(2, INTS(2)));
    expect("}('a'=i<1 2>u", EXAMPLE(field(1, pieces)), 0);
    blob no_key = field(1, field(2, INTS(1))), no_value = field(1, field(1, RAW("b")));
    expect("}(''=i<1>'b'=]u", EXAMPLE(no_key, no_value), 0);
    /* Of a key's entries the last counts: SETITEMS sees to it. */
    blob first = EXAMPLE(entry("a", INTS(1)), entry("a", INTS(2)));
    expect("}('a'=i<1>'a'i<2>'a']u", JOIN(first, EXAMPLE(entry("a", NOTHING))), 0);
}

static void test_keys_that_are_not_utf8_are_escaped(void) {
    const struct {
        const char *key, *expected;
    } cases[] = {
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'="},
        {"\xff" "a", "'\xed\xb3\xbf" "a'"},
        {"a\x80", "'a\xed\xb2\x80'"},
        {"\xed\xa0\x80", "'\xed\xb3\xad\xed\xb2\xa0\xed\xb2\x80'"},            /* a surrogate */
        {"\xc0\x80", "'\xed\xb3\x80\xed\xb2\x80'"},                            /* overlong */
        {"\xe2\x82", "'\xed\xb3\xa2\xed\xb2\x82'"},                            /* cut off */
        {"\xe0\x9f\xbf", "'\xed\xb3\xa0\xed\xb2\x9f\xed\xb2\xbf'"},
        {"\xf4\x90\x80\x80", "'\xed\xb3\xb4\xed\xb2\x90\xed\xb2\x80\xed\xb2\x80'"},
        {"\xf0\x8f\xbf\xbf", "'\xed\xb3\xb0\xed\xb2\x8f\xed\xb2\xbf\xed\xb2\xbf'"},
        {"\xf0\x9f\x98", "'\xed\xb3\xb0\xed\xb2\x9f\xed\xb2\x98'"},
        {"\xe2\x28\xa1", "'\xed\xb3\xa2(\xed\xb2\xa1'"},
        {"\xf5\x80", "'\xed\xb3\xb5\xed\xb2\x80'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "}(%s]u", cases[i].expected);
        expect(expected, EXAMPLE(entry(cases[i].key, NOTHING)), 0);
    }
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
    expect("}('n'=i<3>'m'=i<4>u"
           "}('w'=](](\"x\"e]](\"y\"\"z\"ee'f'=](f<1 2>f<3>i<7>e'none'=](eut",
           message, TFW_SEQUENCE);
    expect("}('n'=i<3>'m'=i<4>u", message, 0); /* an Example has no field 2 */
    expect("}(u}(ut", NOTHING, TFW_SEQUENCE);
    /* A list's value in pieces: the steps follow each other. */
    blob two = field(1, JOIN(field(1, RAW("w")), field(2, field(1, INTS(1))),
                             field(2, field(1, INTS(2)))));
    expect("}(u}('w'=](i<1>i<2>eut", field(2, two), TFW_SEQUENCE);
}

/* More keys than the first table has slots, and than one byte can number. */
static void test_keys_are_written_once(void) {
    enum { KEYS = 600 };
    char name[20], *expected = (char *)blob_alloc(KEYS * 40);
    blob all = NOTHING;
    size_t len = (size_t)sprintf(expected, "}(");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            snprintf(name, sizeof name, "key%d", i);
            all = JOIN(all, entry(name, NO_INTS));
            len += (size_t)sprintf(expected + len, "'%s'%si<>", name, round == 0 ? "=" : "");
        }
    }
    expected[len++] = 'u';
    expected[len] = 0;
    tfw_dicts dicts = {.pickle = NULL};
    CHECK_EQ(TFW_OK, decode(field(1, all), 0, &dicts, NULL));
    /* A key or two may find no slot near, and be written in full each time. */
    const char *actual = text_of(&dicts);
    CHECK(strlen(actual) <= strlen(expected));
    size_t fresh = 0;
    for (const char *c = actual; *c != 0; c++) {
        fresh += *c == '=';
    }
    CHECK(fresh > KEYS - KEYS / 20 && fresh < KEYS + KEYS / 20);
    tfw_dicts_free(&dicts);
}

static void test_long_strings_and_keys(void) {
    char key[301];
    memset(key, 'k', 300);
    key[300] = 0;
    blob text = repeat(RAW("v"), 70000);
    blob message = EXAMPLE(entry(key, field(1, field(1, text))), entry(key, NOTHING));
    tfw_dicts dicts = {.pickle = NULL};
    CHECK_EQ(TFW_OK, decode(message, 0, &dicts, NULL));
    CHECK(dicts.pickle_len > 70300 && dicts.pickle_len < 70350); /* the key once */
    tfw_dicts_free(&dicts);
}

static void test_messages_before_a_malformed_one_are_handed_over(void) {
    blob good = EXAMPLE(entry("a", INTS(1)), entry("b", STRING("x")));
    tfw_error error;
    for (size_t cut = 1; cut < good.len; cut++) {
        blob all = JOIN(good, good);
        const tfw_span spans[] = {{0, good.len}, {good.len, cut}, {0, good.len}};
        tfw_dicts dicts = {.pickle = NULL};
        size_t done;
        CHECK_EQ(TFW_E_WIRE,
                 tfw_decode(all.data, all.len, spans, 3, 0, &dicts, &done, &error));
        CHECK_EQ(1, done);
        CHECK_EQ(1, error.record);
        CHECK(error.offset >= 0 && error.offset <= (int64_t)cut);
        CHECK(error.text[0] != 0);
        expect_text("}('a'=i<1>'b'=](\"x\"eu", &dicts);
        tfw_dicts_free(&dicts);
    }
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
        tfw_dicts dicts = {.pickle = NULL};
        CHECK_EQ(TFW_E_WIRE, decode(EXAMPLE(bad[i]), 0, &dicts, NULL));
        expect_text("", &dicts);
        tfw_dicts_free(&dicts);
    }
    const blob bad_lists[] = {
        entry("w", field(1, RAW("\x1a\x05\x01"))),
        entry("w", RAW("\x0a\x05")),
        entry("w", RAW("\x07")),
        RAW("\x0a\x05"),
    };
    for (size_t i = 0; i < COUNT(bad_lists); i++) {
        tfw_dicts dicts = {.pickle = NULL};
        CHECK_EQ(TFW_E_WIRE, decode(field(2, bad_lists[i]), TFW_SEQUENCE, &dicts, NULL));
        tfw_dicts_free(&dicts);
        /* Not looked into where Examples are read. */
        CHECK_EQ(TFW_OK, decode(field(2, bad_lists[i]), 0, &dicts, NULL));
        tfw_dicts_free(&dicts);
    }
}

static void test_arguments_are_checked(void) {
    blob good = EXAMPLE(entry("a", INTS(1)));
    tfw_span outside = {1, good.len};
    tfw_dicts dicts = {.pickle = NULL};
    size_t done = 9;
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_decode(good.data, good.len, &outside, 1, 0, &dicts, &done, NULL));
    CHECK_EQ(0, done);
    CHECK_EQ(0, dicts.pickle_len);
    CHECK_EQ(TFW_E_ARGUMENT, decode(good, 1, &dicts, NULL));
    CHECK_EQ(TFW_OK, tfw_decode(NULL, 0, NULL, 0, 0, &dicts, NULL, NULL));
    expect_text("", &dicts);
    CHECK(dicts.int64s != NULL && dicts.floats != NULL && dicts.buffers != NULL);
    tfw_dicts_free(&dicts);
}

/* The same arrays in another place, where they have room there; in one or both if not. */
static void test_a_small_message_has_its_arrays_in_one_place(void) {
    static tfw_small_dict small;
    tfw_dicts dicts = {.pickle = NULL};
    const size_t strings[] = {0, 7000, 9000}, lists[] = {0, 1, 32, 33};
    for (size_t i = 0; i < COUNT(strings) * COUNT(lists); i++) {
        const size_t length = strings[i % COUNT(strings)], count = lists[i / COUNT(strings)];
        blob ints = entry("s", field(1, field(1, repeat(RAW("v"), length))));
        for (size_t k = 0; k < count; k++) {
            char key[8];
            snprintf(key, sizeof key, "%zu", k);
            ints = JOIN(ints, entry(key, k % 2 != 0 ? INTS((int64_t)k) : FLOATS((float)k)));
        }
        blob message = EXAMPLE(ints);
        const bool fits = length < 8192 - 1000 && count <= 32;
        CHECK_EQ(fits ? TFW_OK : TFW_NEED_SPACE,
                 tfw_decode_small(message.data, message.len, 0, &dicts, &small, NULL));
        CHECK_EQ(count, dicts.buffer_count);
        if (fits) {
            CHECK_EQ(count, small.buffer_count);
            CHECK_EQ(count / 2, small.int64_count);
            CHECK_EQ(count - count / 2, small.float_count);
            CHECK(memcmp(small.pickle, dicts.pickle, dicts.pickle_len) == 0);
            CHECK(memcmp(small.buffers, dicts.buffers, 24 * count) == 0);
            CHECK(count < 2 || (small.int64s[0] == 1 && small.floats[0] == 0));
        }
    }
    tfw_error error;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_decode_small(NULL, 0, TFW_ADDRESSES, &dicts, &small, NULL));
    CHECK_EQ(TFW_E_WIRE, tfw_decode_small((const uint8_t *)"\x0e", 1, 0, &dicts, &small, &error));
    CHECK_EQ(0, error.record);
    tfw_dicts_free(&dicts);
}

/* Whatever the messages before took, failed at, or whose caller kept it. */
static void test_memory_is_used_again(void) {
    const blob long_one = EXAMPLE(entry("i", INTS(1, 2)), entry("f", FLOATS(1, 2, 3)),
                                  entry("s", field(1, field(1, repeat(RAW("v"), 5000)))));
    const blob short_one = EXAMPLE(entry("i", INTS(7)), entry("f", FLOATS(8)));
    const blob bad = EXAMPLE(entry("i", INTS(1)), entry("a", RAW("\x07")));
    tfw_dicts dicts = {.pickle = NULL};
    for (int round = 0; round < 8; round++) {
        CHECK_EQ(TFW_OK, decode(long_one, 0, &dicts, NULL));
        CHECK_EQ(2, dicts.int64_count);
        CHECK_EQ(3, dicts.float_count);
        CHECK_EQ(TFW_E_WIRE, decode(bad, 0, &dicts, NULL));
        expect_text("", &dicts);
        CHECK_EQ(TFW_E_ARGUMENT, decode(short_one, 1, &dicts, NULL));
        CHECK_EQ(0, dicts.pickle_len + dicts.int64_count + dicts.float_count);
        const uint8_t *pickle = dicts.pickle;
        if ((round & 1) != 0) {
            tfw_free(dicts.int64s);
            dicts.int64s = NULL;
        }
        if ((round & 2) != 0) {
            tfw_free(dicts.floats);
            dicts.floats = NULL;
        }
        CHECK_EQ(TFW_OK, decode(short_one, 0, &dicts, NULL));
        expect_text("}('i'=i<7>'f'=f<8>u", &dicts);
        CHECK(pickle == dicts.pickle);
        if ((round & 4) != 0) {
            tfw_dicts_free(&dicts);
            CHECK(dicts.pickle == NULL && dicts.buffers == NULL && dicts.capacities[3] == 0);
        }
    }
    tfw_dicts_free(&dicts);
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
        tfw_dicts dicts = {.pickle = NULL};
        tfw_error error;
        tfwi_test_fail_allocation = n;
        int status = decode(message, TFW_SEQUENCE, &dicts, &error);
        complete = tfwi_test_fail_allocation >= 0;
        tfwi_test_fail_allocation = -1;
        CHECK_EQ(complete ? TFW_OK : TFW_E_MEMORY, status);
        CHECK(complete || dicts.pickle_len + dicts.int64_count + dicts.buffer_count == 0);
        CHECK(complete || error.status == TFW_E_MEMORY);
        tfw_dicts_free(&dicts);
    }
    CHECK(n > 10);
#endif
}

int main(void) {
    RUN(test_kinds);
    RUN(test_rare_forms);
    RUN(test_keys_that_are_not_utf8_are_escaped);
    RUN(test_sequences);
    RUN(test_keys_are_written_once);
    RUN(test_long_strings_and_keys);
    RUN(test_messages_before_a_malformed_one_are_handed_over);
    RUN(test_malformed_values_are_refused);
    RUN(test_arguments_are_checked);
    RUN(test_a_small_message_has_its_arrays_in_one_place);
    RUN(test_memory_is_used_again);
    RUN(test_every_failing_allocation_is_reported);
    blobs_free();
    return check_report("dicts");
}
