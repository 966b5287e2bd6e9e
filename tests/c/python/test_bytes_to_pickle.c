/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings as pickle streams. */
#include "check.h"

#include "base/copy.h"

/* Reads the pickle that bytes_to_pickle.c may write: count strings equal to data[spans]. */
static bool pickle_holds(const uint8_t *pickle, size_t len, const uint8_t *data,
                         const tfw_span *spans, size_t count) {
    size_t at = 3;
    if (len < 5 || pickle[0] != 0x80 || pickle[1] != 4 || pickle[2] != '(') {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t length;
        if (pickle[at] == 'C') {
            length = pickle[at + 1];
            at += 2;
        } else if (pickle[at] == 'B') {
            length = tfwi_load32(pickle + at + 1);
            at += 5;
        } else {
            return false;
        }
        if (length != spans[i].length || length > len - at ||
            (length != 0 && memcmp(pickle + at, data + spans[i].offset, length) != 0)) {
            return false;
        }
        at += length;
    }
    return at + 2 == len && pickle[at] == 't' && pickle[at + 1] == '.';
}

static void strings_are_framed_where_they_lie(void) {
    enum { COUNT = 30, SIZE = 4096 };
    static uint8_t data[SIZE], copy[SIZE];
    tfw_span spans[COUNT], lain[COUNT];
    uint64_t state = 5;
    size_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        at += TFW_PICKLE_ROOM;
        spans[i] = (tfw_span){at, i % 3 == 0 ? i / 3 : check_random(&state) % 300};
        lain[i] = (tfw_span){at + TFW_PICKLE_HEAD, spans[i].length};
        at += spans[i].length;
    }
    for (size_t i = 0; i < SIZE; i++) {
        copy[i] = data[i] = (uint8_t)check_random(&state);
    }
    const size_t len = TFW_PICKLE_HEAD + at + TFW_PICKLE_TAIL;
    CHECK_EQ(TFW_OK, tfw_pickle_frame(data, len, spans, COUNT));
    CHECK(pickle_holds(data, len, copy, lain, COUNT));
    CHECK(memcmp(data + len, copy + len, SIZE - len) == 0);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, len - 1, spans, COUNT));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, len + 1, spans, COUNT));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, len, spans, COUNT - 1));
    spans[COUNT - 1].length = UINT64_MAX;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, len, spans, COUNT));
    spans[1].offset++;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, len, spans, COUNT));
    const size_t ends = TFW_PICKLE_HEAD + TFW_PICKLE_TAIL;
    CHECK_EQ(TFW_OK, tfw_pickle_frame(data, ends, NULL, 0));
    CHECK(pickle_holds(data, ends, copy, NULL, 0));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(data, ends - 1, NULL, 0));
}

/* Lengths around every class of opcode and copy, in a buffer that ends at an unreadable page. */
static void pickled_spans_read_back(void) {
    for (uint64_t seed = 1; seed < 200; seed++) {
        const size_t classes[] = {1, 20, 128, 129, 260, 700};
        tfw_span spans[40];
        uint64_t state = seed, payload_bytes = 0;
        size_t count = seed % 40, len = 0;
        for (size_t i = 0; i < count; i++) {
            len += check_random(&state) % 17; /* a gap */
            spans[i] = (tfw_span){len, check_random(&state) % classes[check_random(&state) % 6]};
            len += spans[i].length;
            payload_bytes += spans[i].length;
        }
        size_t bound = tfw_pickle_bound(count, payload_bytes), out_len = 99;
        guarded data = guarded_new(len, true), out = guarded_new(bound, true);
        for (size_t i = 0; i < len; i++) {
            data.data[i] = (uint8_t)check_random(&state);
        }
        CHECK_EQ(TFW_OK, tfw_pickle_spans(data.data, len, spans, count, out.data, bound, &out_len));
        CHECK(pickle_holds(out.data, out_len, data.data, spans, count));
        CHECK_EQ(TFW_NEED_SPACE,
                 tfw_pickle_spans(data.data, len, spans, count, out.data, bound - 1, &out_len));
        CHECK_EQ(0, out_len);
        guarded_free(data);
        guarded_free(out);
    }
}

static void spans_in_any_order_read_back(void) {
    uint8_t data[900], out[4096];
    const tfw_span spans[] = {{600, 300}, {0, 200}, {850, 50}, {0, 0}, {100, 700}, {10, 5}};
    size_t len = 0;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    CHECK_EQ(TFW_OK, tfw_pickle_spans(data, sizeof data, spans, 6, out, sizeof out, &len));
    CHECK(pickle_holds(out, len, data, spans, 6));
}

static void pickled_offsets_read_back(void) {
    uint8_t out[8192];
    for (uint64_t seed = 1; seed < 100; seed++) {
        int64_t offsets[21];
        tfw_span spans[20];
        uint64_t state = seed;
        size_t out_len = 99;
        offsets[0] = (int64_t)(seed % 7);
        for (size_t i = 0; i < 20; i++) {
            uint64_t length = check_random(&state) % (seed % 3 == 0 ? 300 : 12);
            spans[i] = (tfw_span){(uint64_t)offsets[i], length};
            offsets[i + 1] = offsets[i] + (int64_t)length;
        }
        guarded data = guarded_new((size_t)offsets[20], true);
        for (int64_t i = 0; i < offsets[20]; i++) {
            data.data[i] = (uint8_t)check_random(&state);
        }
        const size_t size = (size_t)offsets[20];
        CHECK_EQ(TFW_OK,
                 tfw_pickle_offsets(data.data, size, offsets, 20, out, sizeof out, &out_len));
        CHECK(pickle_holds(out, out_len, data.data, spans, 20));
        CHECK_EQ(TFW_NEED_SPACE,
                 tfw_pickle_offsets(data.data, size, offsets, 20, out, 60, &out_len));
        guarded_free(data);
    }
}

static void offsets_that_decrease_are_refused(void) {
    uint8_t data[16] = {0}, out[512];
    const int64_t decreasing[] = {0, 5, 4}, negative[] = {-1, 4, 5};
    size_t len = 99;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_offsets(data, 16, decreasing, 2, out, sizeof out, &len));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_offsets(data, 16, negative, 2, out, sizeof out, &len));
    CHECK_EQ(0, len);
}

static void no_strings_make_an_empty_tuple(void) {
    uint8_t out[512];
    size_t len = 0;
    CHECK_EQ(TFW_OK, tfw_pickle_spans(NULL, 0, NULL, 0, out, sizeof out, &len));
    CHECK(pickle_holds(out, len, NULL, NULL, 0));
    CHECK_EQ(TFW_OK, tfw_pickle_offsets(NULL, 0, NULL, 0, out, sizeof out, &len));
    CHECK(pickle_holds(out, len, NULL, NULL, 0));
}

static void the_bound_counts_the_long_opcodes(void) {
    const uint64_t gib4 = UINT64_C(1) << 32;
    CHECK(tfw_pickle_bound(2, 2 * gib4) >= 5 + 2 * (9 + gib4) + TFWI_COPY_SLACK);
    CHECK(tfw_pickle_bound(3, gib4 + 10) >= 5 + 9 + 5 + 5 + gib4 + 10 + TFWI_COPY_SLACK);
}

int main(void) {
    RUN(pickled_spans_read_back);
    RUN(strings_are_framed_where_they_lie);
    RUN(spans_in_any_order_read_back);
    RUN(pickled_offsets_read_back);
    RUN(offsets_that_decrease_are_refused);
    RUN(no_strings_make_an_empty_tuple);
    RUN(the_bound_counts_the_long_opcodes);
    return check_report("emit");
}
