/* SPDX-License-Identifier: Apache-2.0 */
/* Varints of every length, one at a time and many. */
#include "proto.h"
#include "wire/varint.h"

/* Reads from a copy that ends at an unreadable page. */
static bool read_varint(blob bytes, uint64_t *value, size_t *len, tfwi_fault *fault) {
    guarded page = guarded_new(bytes.len, true);
    memcpy(page.data, bytes.data, bytes.len);
    const uint8_t *next = tfwi_read_varint(page.data, page.data + bytes.len, value, fault);
    *len = next != NULL ? (size_t)(next - page.data) : 0;
    if (next == NULL) {
        CHECK(fault->at == page.data);
        CHECK_EQ(TFW_E_WIRE, fault->status);
    }
    guarded_free(page);
    return next != NULL;
}

static void test_varints_of_every_length(void) {
    for (size_t bit = 0; bit < 64; bit++) {
        uint64_t value = UINT64_C(1) << bit | (bit > 3 ? 5 : 0), found;
        for (size_t len = bit / 7 + 1; len <= 10; len++) {
            size_t taken;
            tfwi_fault fault;
            blob bytes = JOIN(long_varint(value, len), RAW("\x00"));
            CHECK(read_varint(bytes, &found, &taken, &fault));
            CHECK_EQ(value, found);
            CHECK_EQ(len, taken);
            for (size_t cut = 0; cut < len; cut++) {
                CHECK(!read_varint((blob){bytes.data, cut}, &found, &taken, &fault));
            }
        }
    }
}

static void test_varints_of_more_than_ten_bytes_are_refused(void) {
    uint64_t value;
    size_t len;
    tfwi_fault fault;
    CHECK(!read_varint(long_varint(1, 11), &value, &len, &fault));
    CHECK(strcmp("a varint is too long", fault.text) == 0);
    CHECK(!read_varint(repeat(RAW("\xff"), 10), &value, &len, &fault));
    CHECK(!read_varint(repeat(RAW("\xff"), 9), &value, &len, &fault));
    CHECK(strcmp("ends inside a varint", fault.text) == 0);
}

/* Blocks of varints of all sizes, read with every room: the same values, one after the other. */
static void test_blocks_of_varints_are_read_piece_by_piece(void) {
    enum { VALUES = 200 };
    uint64_t state = 9;
    for (int round = 0; round < 20; round++) {
        int64_t expected[VALUES], actual[VALUES];
        for (size_t i = 0; i < VALUES; i++) {
            expected[i] = (int64_t)(check_random(&state) >> (check_random(&state) % 64));
        }
        blob block = packed_int64s(expected, VALUES);
        guarded page = guarded_new(block.len, true);
        memcpy(page.data, block.data, block.len);
        size_t room = round < 3 ? (size_t)round + 1 : check_random(&state) % VALUES + 1;
        size_t done = 0, count;
        const uint8_t *p = page.data, *end = page.data + block.len;
        tfwi_fault fault;
        while (p != end) {
            size_t left = VALUES - done < room ? VALUES - done : room;
            p = tfwi_read_varints(p, end, actual + done, left, &count, &fault);
            CHECK(p != NULL && count > 0);
            if (p == NULL) {
                break;
            }
            done += count;
        }
        CHECK_EQ(VALUES, done);
        CHECK(memcmp(expected, actual, sizeof expected) == 0);
        CHECK(tfwi_read_varints(page.data, end - 1 - (block.data[block.len - 1] == 0), actual, 0,
                                &count, &fault) == page.data);
        CHECK_EQ(0, count);
        guarded_free(page);
    }
}

int main(void) {
    RUN(test_varints_of_every_length);
    RUN(test_varints_of_more_than_ten_bytes_are_refused);
    RUN(test_blocks_of_varints_are_read_piece_by_piece);
    blobs_free();
    return check_report("varint");
}
