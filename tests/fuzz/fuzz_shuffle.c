/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_exchange and tfw_gather against plain loops, with room that does not suffice; the orders of
 * tfw_permute, of any size. */
#include "common/fuzz.h"

enum { MAX_HELD = 16, MAX_OTHERS = 32 };

typedef struct buffer {
    tfw_span held[MAX_HELD], others[MAX_OTHERS];
    int64_t held_numbers[MAX_HELD], other_numbers[MAX_OTHERS];
} buffer;

static void swap(buffer *b, size_t slot, size_t i) {
    tfw_span span = b->held[slot];
    int64_t number = b->held_numbers[slot];
    b->held[slot] = b->others[i];
    b->held_numbers[slot] = b->other_numbers[i];
    b->others[i] = span;
    b->other_numbers[i] = number;
}

/* Number i of SplitMix64, as a place in a buffer. */
static size_t slot_of(uint64_t key, uint64_t i, size_t num_held) {
    uint64_t z = key + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(((z ^ (z >> 31)) >> 32) * num_held >> 32);
}

/* The strings of the buffer, each in a block of its own, moved into one. */
static void gather(buffer *b, size_t num_held, const uint8_t *const *strings, size_t capacity) {
    tfw_span before[MAX_HELD];
    memcpy(before, b->held, sizeof before);
    uint8_t *out = fuzz_alloc(capacity);
    size_t count = 0, at = 0;
    int status = tfw_gather(b->held, num_held, out, capacity, &count);
    CHECK(count <= num_held);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ((uintptr_t)(out + at), b->held[i].offset);
        CHECK_EQ(before[i].length, b->held[i].length);
        CHECK(memcmp(strings[b->held_numbers[i]], out + at, (size_t)before[i].length) == 0);
        at += (size_t)before[i].length;
    }
    CHECK(at <= capacity);
    CHECK_EQ(count == num_held ? TFW_OK : TFW_NEED_SPACE, status);
    CHECK(count == num_held || before[count].length > capacity - at);
    free(out);
}

/* Some numbers of an order: each another one, and within it. */
static void permute(uint64_t key, uint64_t size) {
    int64_t numbers[100];
    const size_t count = size < 100 ? (size_t)size : 100;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (int64_t)(i % 2 != 0 ? size - 1 - i / 2 : i / 2);
    }
    CHECK_EQ(TFW_OK, tfw_permute(key, size, numbers, count, NULL));
    for (size_t i = 0; i < count; i++) {
        CHECK((uint64_t)numbers[i] < size);
        for (size_t k = 0; k < i; k++) {
            CHECK(numbers[k] != numbers[i]);
        }
    }
}

/* how many are held and come; strings by length and byte; a key and where it begins; room. */
static void run(input *in) {
    buffer b, expected;
    uint8_t *strings[MAX_HELD + MAX_OTHERS];
    memset(&b, 0, sizeof b);
    size_t num_held = input_byte(in) % (MAX_HELD + 1), count = input_byte(in) % (MAX_OTHERS + 1);
    for (size_t i = 0; i < num_held + count; i++) {
        size_t length = input_byte(in);
        strings[i] = fuzz_alloc(length);
        memset(strings[i], input_byte(in), length);
        bool held = i < num_held;
        *(held ? &b.held[i] : &b.others[i - num_held]) = (tfw_span){(uintptr_t)strings[i], length};
        *(held ? &b.held_numbers[i] : &b.other_numbers[i - num_held]) = (int64_t)i;
    }
    const uint64_t key = input_number(in, 8), first = input_number(in, 8);
    expected = b;
    for (size_t i = 0; num_held != 0 && i < count; i++) {
        swap(&expected, slot_of(key, first + i, num_held), i);
    }
    CHECK_EQ(num_held != 0 || count == 0 ? TFW_OK : TFW_E_ARGUMENT,
             tfw_exchange(key, first, b.held, b.held_numbers, num_held, b.others, b.other_numbers,
                          sizeof(tfw_span), count, NULL));
    CHECK(memcmp(&expected, &b, sizeof b) == 0);
    permute((uint64_t)expected.held_numbers[0] * UINT64_C(0x9e3779b97f4a7c15) + num_held,
            (input_number(in, 8) >> (input_byte(in) & 63)) % INT64_MAX);
    gather(&b, num_held, (const uint8_t *const *)strings, (size_t)input_number(in, 2) % 4096);
    for (size_t i = 0; i < num_held + count; i++) {
        free(strings[i]);
    }
}

FUZZ_TARGET(run)
