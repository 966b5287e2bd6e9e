/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages: the bytes of protobuf, exact bounds, splits and offsets that lie. */
#include "check.h"

static uint8_t out[1 << 16];
static tfw_span spans[256];
static size_t done;
static size_t len;
static tfw_error error;

static const int64_t ints[] = {0, 1, 127, 128, -1, INT64_MIN, INT64_MAX, 300};
static const float floats[] = {0.0f, 1.0f, -2.5f, 0.5f};
static const char text[] = "catgoathorse";
static const int64_t text_offsets[] = {0, 3, 7, 12};

static tfw_input int_input(const char *name, uint64_t count) {
    return (tfw_input){.name = name, .name_len = strlen(name), .kind = TFW_INT64, .count = count,
                       .values = ints, .value_count = 8, .byte_count = sizeof ints};
}

static tfw_input float_input(const char *name, uint64_t count) {
    return (tfw_input){.name = name, .name_len = strlen(name), .kind = TFW_FLOAT, .count = count,
                       .values = floats, .value_count = 4, .byte_count = sizeof floats};
}

static tfw_input text_input(const char *name, uint64_t count) {
    return (tfw_input){.name = name, .name_len = strlen(name), .kind = TFW_BYTES, .count = count,
                       .values = text, .value_count = 3, .byte_count = 12,
                       .offsets = text_offsets};
}

static int encode(const tfw_input *inputs, size_t input_count, uint64_t count) {
    return tfw_encode(inputs, input_count, 0, count, 0, 0, out, sizeof out, spans, &done, &len,
                      &error);
}

/* Record i is the bytes of a string literal. */
#define CHECK_RECORD(literal, i)                                            \
    do {                                                                    \
        CHECK_EQ(sizeof(literal) - 1, spans[i].length);                     \
        CHECK(memcmp(literal, out + spans[i].offset, spans[i].length) == 0); \
    } while (0)

static void test_one_feature_of_each_kind(void) {
    tfw_input in = int_input("i", 1);
    CHECK_EQ(TFW_OK, encode(&in, 1, 8));
    CHECK_EQ(8, done);
    CHECK_RECORD("\n\x0c\n\x0a\n\x01i\x12\x05\x1a\x03\n\x01\x00", 0);
    CHECK_RECORD("\n\x0c\n\x0a\n\x01i\x12\x05\x1a\x03\n\x01\x7f", 2);
    CHECK_RECORD("\n\x0d\n\x0b\n\x01i\x12\x06\x1a\x04\n\x02\x80\x01", 3);
    CHECK_RECORD("\n\x15\n\x13\n\x01i\x12\x0e\x1a\x0c\n\x0a"
                 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 4);
    CHECK_RECORD("\n\x15\n\x13\n\x01i\x12\x0e\x1a\x0c\n\x0a"
                 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 5);
    CHECK_RECORD("\n\x14\n\x12\n\x01i\x12\x0d\x1a\x0b\n\x09"
                 "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 6);
    in = float_input("f", 2);
    CHECK_EQ(TFW_OK, encode(&in, 1, 2));
    CHECK_RECORD("\n\x13\n\x11\n\x01" "f\x12\x0c\x12\x0a\n\x08\0\0\x20\xc0\0\0\0\x3f", 1);
    in = text_input("b", 1);
    CHECK_EQ(TFW_OK, encode(&in, 1, 3));
    CHECK_RECORD("\n\x10\n\x0e\n\x01" "b\x12\x09\n\x07\n\x05horse", 2);
    in = text_input("b", 3);
    CHECK_EQ(TFW_OK, encode(&in, 1, 1));
    CHECK_RECORD("\n\x1b\n\x19\n\x01" "b\x12\x14\n\x12\n\x03" "cat\n\x04goat\n\x05horse", 0);
}

static void test_presence_and_empty_lists(void) {
    static const uint8_t presence[] = {TFW_PRESENT, TFW_ABSENT, TFW_KINDLESS};
    tfw_input in = int_input("i", 0);
    in.presence = presence;
    CHECK_EQ(TFW_OK, encode(&in, 1, 3));
    CHECK_RECORD("\n\x09\n\x07\n\x01i\x12\x02\x1a\x00", 0);
    CHECK_RECORD("\n\x00", 1);
    CHECK_RECORD("\n\x07\n\x05\n\x01i\x12\x00", 2);
    CHECK_EQ(TFW_OK, encode(NULL, 0, 2));
    CHECK_RECORD("\n\x00", 1);
}

static void test_splits_choose_the_values_of_each_record(void) {
    static const int64_t splits[] = {0, 0, 1, 3};
    tfw_input in = text_input("", 7);
    in.splits = splits;
    in.cell_count = 3;
    CHECK_EQ(TFW_OK, encode(&in, 1, 3));
    CHECK_RECORD("\n\x08\n\x06\n\x00\x12\x02\n\x00", 0);
    CHECK_RECORD("\n\x0d\n\x0b\n\x00\x12\x07\n\x05\n\x03" "cat", 1);
    CHECK_RECORD("\n\x15\n\x13\n\x00\x12\x0f\n\x0d\n\x04goat\n\x05horse", 2);
}

static void test_first_and_count_choose_the_records(void) {
    tfw_input in = int_input("i", 2);
    CHECK_EQ(TFW_OK, tfw_encode(&in, 1, 1, 2, 0, 0, out, sizeof out, spans, &done, &len, &error));
    CHECK_EQ(2, done);
    CHECK_RECORD("\n\x0e\n\x0c\n\x01i\x12\x07\x1a\x05\n\x03\x7f\x80\x01", 0);
}

static void test_room_is_left_around_every_payload(void) {
    tfw_input in = text_input("b", 1);
    CHECK_EQ(TFW_OK, tfw_encode(&in, 1, 0, 3, 12, 4, out, sizeof out, spans, &done, &len, &error));
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(at + 12, spans[i].offset);
        at = spans[i].offset + spans[i].length + 4;
    }
    CHECK_EQ(at, len);
    CHECK_RECORD("\n\x10\n\x0e\n\x01" "b\x12\x09\n\x07\n\x05horse", 2);
}

static void test_a_sequence_has_context_and_lists(void) {
    static const int64_t splits[] = {0, 2, 2, 3};
    static const int64_t steps[] = {0, 3, 3};
    tfw_input context = int_input("n", 1);
    tfw_input list = int_input("w", 0);
    list.splits = splits;
    list.steps = steps;
    list.cell_count = 3;
    CHECK_EQ(TFW_OK, tfw_encode_sequence(&context, 1, &list, 1, 0, 2, 0, 0, out, sizeof out, spans,
                                         &done, &len, &error));
    CHECK_EQ(2, done);
    CHECK_RECORD("\n\x0c\n\x0a\n\x01n\x12\x05\x1a\x03\n\x01\x00"
                 "\x12\x1a\n\x18\n\x01w\x12\x13\n\x06\x1a\x04\n\x02\x00\x01\n\x02\x1a\x00"
                 "\n\x05\x1a\x03\n\x01\x7f", 0);
    CHECK_RECORD("\n\x0c\n\x0a\n\x01n\x12\x05\x1a\x03\n\x01\x01\x12\x07\n\x05\n\x01w\x12\x00", 1);
}

static void test_steps_may_have_no_kind(void) {
    static const int64_t steps[] = {0, 3};
    static const uint8_t presence[] = {TFW_PRESENT, TFW_KINDLESS, TFW_PRESENT};
    static const uint8_t unknown[] = {TFW_PRESENT, TFW_ABSENT, TFW_PRESENT};
    tfw_input list = int_input("w", 1);
    list.steps = steps;
    list.cell_count = 3;
    list.step_presence = presence;
    CHECK_EQ(TFW_OK, tfw_encode_sequence(NULL, 0, &list, 1, 0, 1, 0, 0, out, sizeof out, spans,
                                         &done, &len, &error));
    CHECK_RECORD("\n\x00\x12\x17\n\x15\n\x01w\x12\x10\n\x05\x1a\x03\n\x01\x00\n\x00"
                 "\n\x05\x1a\x03\n\x01\x7f", 0);
    list.step_presence = unknown;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encode_sequence(NULL, 0, &list, 1, 0, 1, 0, 0, out, sizeof out,
                                                 spans, &done, &len, &error));
    CHECK_EQ(0, done);
}

/* Ends in an unreadable page, capacity rising until everything fits. */
static void test_a_full_output_is_never_overrun(void) {
    static const int64_t splits[] = {0, 5, 5, 6, 8};
    tfw_input in[3] = {int_input("ints", 0), float_input("floats", 1), text_input("texts", 0)};
    static const int64_t text_splits[] = {0, 0, 1, 3, 3};
    in[0].splits = splits;
    in[0].cell_count = 4;
    in[2].splits = text_splits;
    in[2].cell_count = 4;
    CHECK_EQ(TFW_OK, encode(in, 3, 4));
    size_t whole = len;
    tfw_span expected[4];
    memcpy(expected, spans, sizeof expected);
    for (size_t capacity = 0; capacity <= whole + 512; capacity++) {
        guarded g = guarded_new(capacity, true);
        int status = tfw_encode(in, 3, 0, 4, 0, 0, g.data, capacity, spans, &done, &len, &error);
        CHECK(status == (done == 4 ? TFW_OK : TFW_NEED_SPACE));
        CHECK(len <= capacity);
        if (done != 0) {
            CHECK(memcmp(expected, spans, done * sizeof *spans) == 0);
            CHECK(memcmp(out, g.data, len) == 0);
        } else {
            CHECK(error.expected > (int64_t)capacity);
        }
        guarded_free(g);
    }
    CHECK_EQ(4, done);
}

static void test_the_room_asked_for_is_enough(void) {
    static const int64_t steps[] = {0, 8};
    tfw_input context[2] = {int_input("ints", 8), text_input("texts", 3)};
    tfw_input list = int_input("list", 1);
    list.steps = steps;
    list.cell_count = 8;
    CHECK_EQ(TFW_NEED_SPACE, tfw_encode_sequence(context, 2, &list, 1, 0, 1, 12, 4, out, 0, spans,
                                                 &done, &len, &error));
    CHECK_EQ(0, done);
    size_t room = (size_t)error.expected;
    guarded g = guarded_new(room, true);
    CHECK_EQ(TFW_OK, tfw_encode_sequence(context, 2, &list, 1, 0, 1, 12, 4, g.data, room, spans,
                                         &done, &len, &error));
    guarded_free(g);
}

/* A Feature without a kind takes room, too, though the splits of its cell are not looked at. */
static void test_the_room_asked_for_is_enough_for_cells_not_looked_at(void) {
    static const int64_t splits[] = {5, 3};
    static const uint8_t presence[] = {TFW_KINDLESS};
    tfw_input in = int_input("ints", 1);
    in.splits = splits;
    in.cell_count = 1;
    in.presence = presence;
    CHECK_EQ(TFW_NEED_SPACE,
             tfw_encode(&in, 1, 0, 1, 12, 4, out, 0, spans, &done, &len, &error));
    size_t room = (size_t)error.expected;
    CHECK_EQ(TFW_OK, tfw_encode(&in, 1, 0, 1, 12, 4, out, room, spans, &done, &len, &error));
}

/* Lengths that cross one, two and three bytes, in every order, with and without templates. */
static void test_lengths_of_every_size_follow_each_other(void) {
    enum { RECORDS = 64, VALUES = 40000 };
    static int64_t values[VALUES];
    static uint8_t big[1 << 20];
    int64_t splits[RECORDS + 1] = {0};
    static const int64_t sizes[] = {0, 1, 2, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120,
                                    121, 122, 123, 124, 125, 126, 127, 128, 129, 5000};
    uint64_t seed = 7;
    for (size_t i = 0; i < RECORDS; i++) {
        int64_t size = sizes[check_random(&seed) % (sizeof sizes / sizeof *sizes)];
        splits[i + 1] = splits[i] + (splits[i] + size <= VALUES ? size : 0);
    }
    tfw_input in = {.name = "key", .name_len = 3, .kind = TFW_INT64, .values = values,
                    .value_count = VALUES, .byte_count = sizeof values, .splits = splits,
                    .cell_count = RECORDS};
    CHECK_EQ(TFW_OK, tfw_encode(&in, 1, 0, RECORDS, 0, 0, big, sizeof big, spans, &done, &len,
                                &error));
    for (size_t i = 0; i < RECORDS; i++) {
        tfw_span alone;
        tfw_input one = in;
        one.splits = NULL;
        one.count = (uint64_t)(splits[i + 1] - splits[i]);
        CHECK_EQ(TFW_OK, tfw_encode(&one, 1, 0, 1, 0, 0, out, sizeof out, &alone, &done, &len,
                                    &error));
        CHECK_EQ(alone.length, spans[i].length);
        CHECK(memcmp(out, big + spans[i].offset, alone.length) == 0);
    }
}

static void expect_fault(tfw_input in, bool is_list) {
    int status = is_list ? tfw_encode_sequence(NULL, 0, &in, 1, 0, 2, 0, 0, out, sizeof out, spans,
                                               &done, &len, &error)
                         : encode(&in, 1, 2);
    CHECK_EQ(TFW_E_ARGUMENT, status);
    CHECK_EQ(0, error.feature);
    CHECK_EQ(is_list, error.list);
    CHECK(done < 2);
}

static void test_splits_and_offsets_that_lie_are_refused(void) {
    static const int64_t bad[][3] = {{0, 1, 9}, {0, 2, 1}, {-1, 0, 1}, {0, INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < 4; i++) {
        tfw_input in = int_input("i", 0);
        in.splits = bad[i];
        in.cell_count = 2;
        expect_fault(in, false);
        in = int_input("i", 1);
        in.steps = bad[i];
        in.cell_count = 8;
        expect_fault(in, true);
    }
    static const int64_t bad_offsets[][4] = {{0, 1, 2, 13}, {0, 5, 4, 6}, {-1, 0, 1, 2},
                                             {0, 9, 4, 12}, {0, 1, INT64_MIN, 12}};
    static const int64_t splits[] = {0, 0, 3};
    for (size_t i = 0; i < 5; i++) {
        tfw_input in = text_input("b", 0);
        in.offsets = bad_offsets[i];
        in.splits = splits;
        in.cell_count = 2;
        expect_fault(in, false);
    }
}

static void test_inputs_that_cannot_be_are_refused(void) {
    tfw_input in = int_input("i", 1);
    in.kind = 4;
    expect_fault(in, false);
    expect_fault(int_input("i", 5), false); /* more records than values */
    expect_fault(int_input("i", UINT64_MAX / 2 + 1), false);
    expect_fault(int_input("i", (uint64_t)UINT32_MAX + 1), false); /* 0 as a size of 32 bits */
    in = text_input("b", 1);
    in.offsets = NULL;
    expect_fault(in, false);
    in = float_input("f", 1);
    in.values = NULL;
    expect_fault(in, false);
    static const int64_t steps[] = {0, 1, 2};
    in = int_input("i", 1);
    in.steps = steps;
    expect_fault(in, false); /* steps without a list */
    expect_fault(int_input("i", 1), true);
    in = int_input("i", 1);
    in.splits = steps;
    in.cell_count = 1;
    expect_fault(in, false); /* splits end before the records */
    in = int_input("i", 1);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encode(&in, 1, UINT64_MAX, 2, 0, 0, out, sizeof out, spans, &done,
                                        &len, &error));
}

/* UBSan of clang stops where something is added to NULL, even 0. */
static void test_columns_without_a_buffer(void) {
    static const int64_t none[] = {0, 0, 0, 0, 0}, splits[] = {0, 1, 3};
    tfw_input in[] = {text_input("", 1), text_input("", 2), text_input("", 0), int_input("", 0),
                      float_input("", 0)};
    for (size_t i = 0; i < 5; i++) {
        in[i].name = NULL;
        in[i].values = NULL;
        in[i].byte_count = 0;
        in[i].value_count = i < 3 ? 4 : 0;
        in[i].offsets = i < 3 ? none : NULL;
        in[i].splits = i == 2 ? splits : NULL;
        in[i].cell_count = 2;
    }
    CHECK_EQ(TFW_OK, encode(in, 5, 2));
    CHECK_EQ(2, done);
    CHECK_EQ(TFW_OK, encode(&in[2], 1, 2));
    CHECK_RECORD("\n\x0a\n\x08\n\0\x12\x04\n\x02\n\0", 0);
    CHECK_RECORD("\n\x0c\n\x0a\n\0\x12\x06\n\x04\n\0\n\0", 1);
}

static void test_more_inputs_that_cannot_be(void) {
    tfw_input in = int_input("i", 1);
    in.name = NULL;
    expect_fault(in, false);
    in.name_len = UINT64_C(1) << 31;
    expect_fault(in, false);
    in = int_input("i", 1);
    in.value_count = UINT64_MAX / 2;
    expect_fault(in, false);
    in = text_input("b", 1);
    in.byte_count = UINT64_MAX;
    expect_fault(in, false);
    in = text_input("b", 1);
    in.values = NULL;
    expect_fault(in, false);
    in = text_input("b", 1);
    in.kind = TFW_NONE;
    expect_fault(in, false);
    in = text_input("b", 1);
    in.reserved = 1;
    expect_fault(in, false);
}

/* The error object is optional everywhere. */
static void test_failures_without_an_error_object(void) {
    static const int64_t bad[] = {0, 3, 1};
    tfw_input in = int_input("i", 1);
    CHECK_EQ(TFW_NEED_SPACE, tfw_encode(&in, 1, 0, 1, 0, 0, out, 8, spans, &done, &len, NULL));
    CHECK_EQ(TFW_NEED_SPACE, tfw_encode(&in, 1, 0, 1, 12, 4, out, 8, spans, &done, &len, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encode(&in, 1, 0, 9, 0, 0, out, 99, spans, &done, &len, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encode(&in, 1, 0, 1, SIZE_MAX, 2, out, sizeof out, spans, &done,
                                        &len, NULL));
    in.splits = bad;
    in.cell_count = 2;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encode(&in, 1, 0, 2, 0, 0, out, sizeof out, spans, &done, &len,
                                        NULL));
    CHECK_EQ(1, done);
}

/* A key too long for a template, and values that outgrow one. */
static void test_long_keys_and_long_strings(void) {
    static char name[300], data[4096];
    static int64_t offsets[33];
    memset(name, 'k', sizeof name);
    for (size_t i = 0; i < 32; i++) {
        offsets[i + 1] = offsets[i] + (int64_t)(i * 8);
    }
    for (size_t name_len = 0; name_len < 300; name_len += 9) {
        tfw_input in = {.name = name, .name_len = name_len, .kind = TFW_BYTES, .count = 1,
                        .values = data, .value_count = 32, .byte_count = sizeof data,
                        .offsets = offsets};
        CHECK_EQ(TFW_OK, encode(&in, 1, 32));
        for (size_t i = 0; i < 32; i++) {
            static uint8_t one[4096];
            tfw_span span;
            CHECK_EQ(TFW_OK, tfw_encode(&in, 1, i, 1, 0, 0, one, sizeof one, &span, &done, &len,
                                        NULL));
            CHECK_EQ(span.length, spans[i].length);
            CHECK(memcmp(one, out + spans[i].offset, span.length) == 0);
        }
    }
}

static void test_templates_serve_the_steps_of_lists(void) {
    static const int64_t steps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    tfw_input lists[2] = {int_input("i", 1), int_input("j", 1)};
    lists[0].steps = lists[1].steps = steps;
    lists[0].cell_count = lists[1].cell_count = 8;
    CHECK_EQ(TFW_OK, tfw_encode_sequence(NULL, 0, lists, 2, 0, 8, 0, 0, out, sizeof out, spans,
                                         &done, &len, &error));
    CHECK_RECORD("\n\x00\x12\x1e\n\x0d\n\x01i\x12\x08\n\x06\x1a\x04\n\x02\xac\x02"
                 "\n\x0d\n\x01j\x12\x08\n\x06\x1a\x04\n\x02\xac\x02", 7);
}

static void test_failing_memory_is_reported(void) {
#ifdef TFW_TEST_FAULTS
    tfw_input in = int_input("i", 1);
    tfwi_test_fail_allocation = 0;
    CHECK_EQ(TFW_E_MEMORY, encode(&in, 1, 1));
    CHECK_EQ(TFW_OK, encode(&in, 1, 1));
#endif
}

int main(void) {
    RUN(test_one_feature_of_each_kind);
    RUN(test_presence_and_empty_lists);
    RUN(test_splits_choose_the_values_of_each_record);
    RUN(test_first_and_count_choose_the_records);
    RUN(test_room_is_left_around_every_payload);
    RUN(test_a_sequence_has_context_and_lists);
    RUN(test_a_full_output_is_never_overrun);
    RUN(test_the_room_asked_for_is_enough);
    RUN(test_the_room_asked_for_is_enough_for_cells_not_looked_at);
    RUN(test_lengths_of_every_size_follow_each_other);
    RUN(test_splits_and_offsets_that_lie_are_refused);
    RUN(test_inputs_that_cannot_be_are_refused);
    RUN(test_columns_without_a_buffer);
    RUN(test_more_inputs_that_cannot_be);
    RUN(test_failures_without_an_error_object);
    RUN(test_long_keys_and_long_strings);
    RUN(test_steps_may_have_no_kind);
    RUN(test_templates_serve_the_steps_of_lists);
    RUN(test_failing_memory_is_reported);
    return check_report("encode");
}
