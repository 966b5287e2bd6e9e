/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_survey_*: what messages hold. */
#include "kernels.h"

#include <math.h>

static tfw_survey *survey_new(void) {
    tfw_survey *s;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &s, NULL));
    return s;
}

/* Adds a message from a block of just its size. */
static int add(tfw_survey *s, blob message, unsigned flags, tfw_error *error) {
    guarded page = guarded_new(message.len, true);
    if (message.len != 0) {
        memcpy(page.data, message.data, message.len);
    }
    const tfw_span span = {0, message.len};
    size_t done;
    int status = tfw_survey_add(s, page.data, message.len, &span, 1, flags, &done, error);
    CHECK_EQ(status == TFW_OK, done);
    guarded_free(page);
    return status;
}

/* The feature with a name of one letter. */
static tfw_feature_survey named(const tfw_survey *s, char name) {
    tfw_feature_survey f = {.size = sizeof f};
    for (size_t i = 0; i < tfw_survey_count(s); i++) {
        tfw_survey_get(s, i, &f);
        if (f.name_len == 1 && f.name[0] == (uint8_t)name) {
            return f;
        }
    }
    CHECK(false);
    return (tfw_feature_survey){0};
}

static void values_of_every_kind(void) {
    tfw_survey *s = survey_new();
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("i", INTS(3, -300, INT64_MAX)),
                                    entry("f", FLOATS(1.5F, NAN, -2)),
                                    entry("s", JOIN(STRING("abc"), STRING("")))), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("i", INTS(INT64_MIN)), entry("f", FLOATS(INFINITY))),
                         0, NULL));
    CHECK_EQ(3, tfw_survey_count(s));
    tfw_feature_survey f = named(s, 'i');
    const tfw_kind_survey *k = &f.kinds[TFW_INT64];
    CHECK(f.messages == 2 && f.least_values == 1 && f.most_values == 3 && !f.is_list);
    CHECK(k->messages == 2 && k->values == 4 && k->least == INT64_MIN && k->most == INT64_MAX);
    CHECK(f.kinds[TFW_NONE].messages + f.kinds[TFW_BYTES].messages + f.kinds[TFW_FLOAT].messages ==
          0);
    f = named(s, 'f');
    k = &f.kinds[TFW_FLOAT];
    CHECK(k->messages == 2 && k->values == 4 && k->nans == 1);
    CHECK(k->least_float <= -2 && k->least_float >= -2 && isinf(k->most_float) && isinf(k->sum));
    f = named(s, 's');
    k = &f.kinds[TFW_BYTES];
    CHECK(f.messages == 1 && k->values == 2 && k->least == 0 && k->most == 3);
    CHECK(k->sum >= 3 && k->sum <= 3);
    tfw_survey_free(s);
}

/* Lists without values have a kind; a Feature in which none is set has none. */
static void kinds_without_values(void) {
    tfw_survey *s = survey_new();
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("i", NO_INTS), entry("n", NOTHING)), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("i", FLOATS(1)), entry("n", NO_STRINGS)), 0, NULL));
    tfw_feature_survey f = named(s, 'i');
    CHECK(f.kinds[TFW_INT64].messages == 1 && f.kinds[TFW_INT64].values == 0);
    CHECK(f.kinds[TFW_FLOAT].messages == 1 && f.least_values == 0 && f.most_values == 1);
    f = named(s, 'n');
    CHECK(f.kinds[TFW_NONE].messages == 1 && f.kinds[TFW_BYTES].messages == 1);
    CHECK(f.least_values == 0 && f.most_values == 0);
    tfw_survey_free(s);
}

/* As in protobuf: the last value of a key, the last kind of a Feature; pieces are merged. */
static void what_is_there_twice(void) {
    tfw_survey *s = survey_new();
    blob pieces = field(1, JOIN(field(1, RAW("p")), field(2, INTS(1)), field(2, INTS(2, 3))));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("a", INTS(1, 2, 3)), entry("a", FLOATS(1))), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("b", JOIN(INTS(1, 2), FLOATS(5)))), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, JOIN(EXAMPLE(pieces), EXAMPLE(entry("c", INTS(1)))), 0, NULL));
    CHECK_EQ(4, tfw_survey_count(s));
    tfw_feature_survey f = named(s, 'a');
    CHECK(f.messages == 1 && f.kinds[TFW_INT64].messages == 0 && f.kinds[TFW_FLOAT].values == 1);
    f = named(s, 'b');
    CHECK(f.kinds[TFW_INT64].messages == 0 && f.kinds[TFW_FLOAT].values == 1);
    f = named(s, 'p');
    CHECK(f.kinds[TFW_INT64].values == 3 && f.most_values == 3);
    CHECK_EQ(1, named(s, 'c').messages);
    tfw_survey_free(s);
}

/* Of a feature whose strings are all UTF-8, and of others; what a malformed message has does not
 * count. */
static void strings_that_are_not_utf8(void) {
    tfw_survey *s = survey_new();
    blob text = STRING("caf\xc3\xa9"), bytes = STRING("caf\xe9");
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("t", text), entry("b", text)), 0, NULL));
    CHECK_EQ(TFW_E_WIRE, add(s, JOIN(EXAMPLE(entry("t", bytes)), RAW("\x0a\x05")), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("t", JOIN(bytes, INTS(1)))), 0, NULL));
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("t", bytes), entry("t", text)), 0, NULL));
    CHECK_EQ(0, named(s, 'b').not_utf8);
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("t", text), entry("b", bytes)), 0, NULL)); /* guessed */
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("m", JOIN(text, bytes, text))), 0, NULL)); /* several */
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("m", text), entry("b", text)), 0, NULL));
    CHECK_EQ(0, named(s, 't').not_utf8);
    CHECK_EQ(1, named(s, 'b').not_utf8);
    CHECK_EQ(1, named(s, 'm').not_utf8);
    tfw_survey_free(s);
}

static blob steps_of(const char *key, blob steps) {
    return field(2, field(1, JOIN(field(1, raw(key, strlen(key))), field(2, steps))));
}

static void feature_lists(void) {
    tfw_survey *s = survey_new();
    blob steps = JOIN(field(1, INTS(1, 2)), field(1, INTS(7)), field(1, STRING("x")));
    blob message = JOIN(EXAMPLE(entry("a", INTS(9))), steps_of("a", steps));
    CHECK_EQ(TFW_OK, add(s, message, 0, NULL));
    CHECK_EQ(1, tfw_survey_count(s));
    CHECK_EQ(TFW_OK, add(s, message, TFW_SEQUENCE, NULL));
    CHECK_EQ(TFW_OK, add(s, steps_of("a", NOTHING), TFW_SEQUENCE, NULL));
    CHECK_EQ(2, tfw_survey_count(s));
    tfw_feature_survey f = {.size = sizeof f};
    tfw_survey_get(s, 1, &f);
    CHECK(f.is_list == 1 && f.messages == 2 && f.least_steps == 0 && f.most_steps == 3);
    CHECK(f.least_values == 1 && f.most_values == 2);
    CHECK(f.kinds[TFW_INT64].messages == 1 && f.kinds[TFW_INT64].values == 3);
    CHECK(f.kinds[TFW_INT64].least == 1 && f.kinds[TFW_INT64].most == 7);
    CHECK(f.kinds[TFW_BYTES].messages == 1 && f.kinds[TFW_BYTES].values == 1);
    CHECK_EQ(2, named(s, 'a').messages);
    tfw_survey_free(s);
}

/* At the place of a feature list, the message before may have a feature; their keys are apart. */
static void a_feature_list_after_a_feature(void) {
    tfw_survey *s = survey_new();
    blob both = EXAMPLE(entry("a", INTS(1)), entry("b", INTS(2)));
    blob one = JOIN(EXAMPLE(entry("a", INTS(3))), steps_of("b", field(1, INTS(4))));
    CHECK_EQ(TFW_OK, add(s, both, TFW_SEQUENCE, NULL));
    CHECK_EQ(TFW_OK, add(s, one, TFW_SEQUENCE, NULL));
    CHECK_EQ(3, tfw_survey_count(s));
    CHECK_EQ(1, named(s, 'b').messages);
    tfw_survey_free(s);
}

/* Long packed blocks are read in pieces. */
static void many_values(void) {
    tfw_survey *s = survey_new();
    enum { MANY = 5000 };
    int64_t values[MANY];
    for (int i = 0; i < MANY; i++) {
        values[i] = (i % 2 == 0 ? 1 : -1) * (int64_t)i * 1000003;
    }
    CHECK_EQ(TFW_OK, add(s, EXAMPLE(entry("i", field(3, field(1, packed_int64s(values, MANY))))),
                         0, NULL));
    tfw_feature_survey f = named(s, 'i');
    CHECK(f.most_values == MANY && f.kinds[TFW_INT64].values == MANY);
    CHECK_EQ(values[MANY - 1], f.kinds[TFW_INT64].least);
    CHECK_EQ(values[MANY - 2], f.kinds[TFW_INT64].most);
    tfw_survey_free(s);
}

static void a_malformed_message_adds_nothing(void) {
    tfw_survey *s = survey_new();
    tfw_error error;
    blob good = EXAMPLE(entry("a", INTS(1)));
    blob bad = JOIN(EXAMPLE(entry("a", INTS(5)), entry("b", INTS(6))), RAW("\x0a\x7f"));
    blob all = JOIN(good, bad, good);
    const tfw_span spans[] = {{0, good.len}, {good.len, bad.len}, {good.len + bad.len, good.len}};
    size_t done;
    CHECK_EQ(TFW_E_WIRE, tfw_survey_add(s, all.data, all.len, spans, 3, 0, &done, &error));
    CHECK(done == 1 && error.record == 1 && error.offset >= (int64_t)bad.len - 2);
    CHECK_EQ(TFW_OK, tfw_survey_add(s, all.data, all.len, spans + 2, 1, 0, NULL, NULL));
    tfw_feature_survey f = named(s, 'a');
    CHECK(f.messages == 2 && f.kinds[TFW_INT64].most == 1);
    CHECK_EQ(0, named(s, 'b').messages);
    tfw_survey_free(s);
}

/* At every allocation: the messages before are added, and the rest when there is memory. */
static void memory_may_be_short(void) {
    blob message = NOTHING;
    for (int i = 0; i < 200; i++) {
        const char name[] = {(char)('a' + i / 26), (char)('a' + i % 26), 0};
        message = JOIN(message, EXAMPLE(entry(name, INTS(i))));
    }
    const tfw_span spans[] = {{0, message.len}, {0, message.len}};
    for (long failing = 0;; failing++) {
        tfw_survey *s;
        size_t done;
        tfwi_test_fail_allocation = failing;
        if (tfw_survey_create(SEED, &s, NULL) != TFW_OK) {
            CHECK(s == NULL);
            continue;
        }
        int status = tfw_survey_add(s, message.data, message.len, spans, 2, 0, &done, NULL);
        bool ended = tfwi_test_fail_allocation >= 0;
        tfwi_test_fail_allocation = -1;
        CHECK(status == (ended ? TFW_OK : TFW_E_MEMORY));
        CHECK_EQ(TFW_OK, tfw_survey_add(s, message.data, message.len, spans + done, 2 - done, 0,
                                        NULL, NULL));
        CHECK_EQ(200, tfw_survey_count(s));
        for (size_t i = 0; i < 200; i++) {
            tfw_feature_survey f = {.size = sizeof f};
            tfw_survey_get(s, i, &f);
            CHECK(f.messages == 2 && f.kinds[TFW_INT64].values == 2);
            CHECK_EQ(i, (uint64_t)f.kinds[TFW_INT64].most);
        }
        tfw_survey_free(s);
        if (ended) {
            break;
        }
    }
}

/* Whether two surveys have found the same, up to their last bit. */
static bool same(const tfw_survey *one, const tfw_survey *other) {
    bool good = tfw_survey_count(one) == tfw_survey_count(other);
    for (size_t i = 0; good && i < tfw_survey_count(one); i++) {
        tfw_feature_survey a = {.size = sizeof a}, b = {.size = sizeof b};
        tfw_survey_get(one, i, &a);
        tfw_survey_get(other, i, &b);
        good = a.name_len == b.name_len && memcmp(a.name, b.name, (size_t)a.name_len) == 0;
        a.name = b.name = NULL;
        good = good && memcmp(&a, &b, sizeof a) == 0;
    }
    return good;
}

/* Entries in the order of the message before may take another way than those after an empty
 * message. */
static void both_ways_find_the_same(void) {
    static const char *const names[] = {"i", "f", "s", "number", "", "name_of_some_length"};
    enum { FEATURES = COUNT(names) };
    tfw_feature features[FEATURES];
    for (size_t i = 0; i < FEATURES; i++) {
        features[i] = (tfw_feature){.name = names[i], .name_len = strlen(names[i]),
                                    .kind = TFW_BYTES + (int32_t)(i % 3), .layout = TFW_DENSE,
                                    .count = 1};
    }
    state = 3;
    for (int round = 0; round < 50; round++) {
        tfw_survey *usual = survey_new(), *complete = survey_new();
        for (int i = 0; i < 50; i++) {
            odd = one_in(3);
            const unsigned flags = round % 2 == 0 ? 0 : TFW_SEQUENCE;
            blob message = field(1, some_map(features, FEATURES, false));
            message = flags == 0 ? message
                                 : JOIN(message, field(2, some_map(features, FEATURES, true)));
            message = one_in(8) ? damage(message) : message;
            CHECK_EQ(TFW_OK, add(complete, (blob){0}, flags, NULL));
            CHECK_EQ(add(complete, message, flags, NULL), add(usual, message, flags, NULL));
            blobs_free();
        }
        CHECK(same(usual, complete));
        tfw_survey_free(usual);
        tfw_survey_free(complete);
    }
}

/* A list of floats, with a new block after each of two numbers of them. */
static blob floats_in_blocks(const float *values, size_t count, size_t first, size_t second) {
    blob a = field(1, packed_floats(values, first));
    blob b = field(1, packed_floats(values + first, second - first));
    blob c = field(1, packed_floats(values + second, count - second));
    return EXAMPLE(entry("f", field(2, JOIN(a, b, c))));
}

static void floats_do_not_depend_on_blocks(void) {
    enum { LENGTH = 24 };
    float values[LENGTH];
    state = 4;
    for (int kind = 0; kind < 3; kind++) { /* any, zeros of both signs, both infinities */
        for (size_t i = 0; i < LENGTH; i++) {
            const float number = (float)(below(1000) + 1) / 7 * (one_in(2) ? 1e12F : -1);
            values[i] = kind == 1 ? 1 : number;
        }
        if (kind != 0) { /* the second one may be met first, in an earlier lane */
            values[2] = kind == 1 ? 0.0F : INFINITY;
            values[9] = -values[2];
        }
        tfw_survey *whole = survey_new();
        CHECK_EQ(TFW_OK, add(whole, floats_in_blocks(values, LENGTH, 0, 0), 0, NULL));
        for (size_t first = 0; first <= LENGTH; first++) {
            for (size_t second = first; second <= LENGTH; second++) {
                tfw_survey *s = survey_new();
                CHECK_EQ(TFW_OK, add(s, floats_in_blocks(values, LENGTH, first, second), 0, NULL));
                CHECK(same(whole, s));
                tfw_survey_free(s);
            }
        }
        tfw_survey_free(whole);
        blobs_free();
    }
}

int main(void) {
    RUN(values_of_every_kind);
    RUN(kinds_without_values);
    RUN(what_is_there_twice);
    RUN(strings_that_are_not_utf8);
    RUN(feature_lists);
    RUN(a_feature_list_after_a_feature);
    RUN(many_values);
    RUN(a_malformed_message_adds_nothing);
    RUN(memory_may_be_short);
    RUN(both_ways_find_the_same);
    RUN(floats_do_not_depend_on_blocks);
    blobs_free();
    return check_report("survey");
}
