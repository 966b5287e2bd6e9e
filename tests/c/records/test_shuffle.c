/* SPDX-License-Identifier: Apache-2.0 */
/* Random orders, and the buffer of a shuffle. */
#include "check.h"
#include "proto.h"
#include "base/common.h"

enum { HELD = 3, OTHERS = 4 };

typedef struct buffer {
    uint64_t held[HELD][2], others[OTHERS][2];
    int64_t held_numbers[HELD], other_numbers[OTHERS];
} buffer;

/* Elements of a size, each filled with its number. */
static buffer begin(size_t size) {
    buffer b;
    memset(&b, 0xee, sizeof b);
    for (int64_t i = 0; i < HELD; i++) {
        b.held_numbers[i] = i;
        memset((uint8_t *)b.held + (size_t)i * size, (int)i, size);
    }
    for (int64_t i = 0; i < OTHERS; i++) {
        b.other_numbers[i] = HELD + i;
        memset((uint8_t *)b.others + (size_t)i * size, (int)(HELD + i), size);
    }
    return b;
}

static void expect(const int64_t *expected, const void *elements, const int64_t *numbers,
                   size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(expected[i], numbers[i]);
        for (size_t k = 0; k < size; k++) {
            CHECK_EQ((uint8_t)expected[i], ((const uint8_t *)elements)[i * size + k]);
        }
    }
}

static int exchange(buffer *b, size_t size, uint64_t first, size_t count) {
    return tfw_exchange(1, first, b->held, b->held_numbers, HELD, b->others, b->other_numbers, size,
                        count, NULL);
}

/* Random numbers 5 to 8 of key 1 draw 2, 2, 1 and 0 of three: what saved states mean. */
static void test_a_slot_drawn_again_gives_what_the_draw_before_put_there(void) {
    static const size_t sizes[3] = {4, 8, 16};
    const int64_t held[HELD] = {6, 5, 4}, others[OTHERS] = {2, 3, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        buffer b = begin(sizes[i]);
        CHECK_EQ(TFW_OK, exchange(&b, sizes[i], 5, 4));
        expect(held, b.held, b.held_numbers, HELD, sizes[i]);
        expect(others, b.others, b.other_numbers, OTHERS, sizes[i]);
    }
}

/* The same as all at once. */
static void test_one_by_one(void) {
    buffer all = begin(8), b = all;
    CHECK_EQ(TFW_OK, exchange(&all, 8, 7, OTHERS));
    for (size_t i = 0; i < OTHERS; i++) {
        CHECK_EQ(TFW_OK, tfw_exchange(1, 7 + i, b.held, b.held_numbers, HELD,
                                      (uint64_t *)b.others + i, b.other_numbers + i, 8, 1, NULL));
    }
    CHECK(memcmp(&all, &b, sizeof b) == 0);
    CHECK_EQ(TFW_OK, exchange(&b, 8, 0, 0));
    CHECK(memcmp(&all, &b, sizeof b) == 0);
    CHECK_EQ(TFW_OK, tfw_exchange(1, 0, NULL, NULL, 0, NULL, NULL, 8, 0, NULL));
}

static void test_a_buffer_that_cannot_be_changes_nothing(void) {
    const buffer before = begin(8);
    buffer b = before;
    static const uint64_t sizes[] = {0, UINT64_C(1) << 32, UINT64_MAX};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (sizes[i] <= SIZE_MAX) {
            CHECK_EQ(TFW_E_ARGUMENT,
                     tfw_exchange(1, 0, b.held, b.held_numbers, (size_t)sizes[i], b.others,
                                  b.other_numbers, 8, 1, NULL));
        }
    }
    CHECK_EQ(TFW_E_ARGUMENT, exchange(&b, 12, 0, 2));
    CHECK(memcmp(&before, &b, sizeof b) == 0);
}

static tfw_span span_of(const char *text) {
    return (tfw_span){(uintptr_t)text, strlen(text)};
}

static void test_strings_are_gathered_in_their_order(void) {
    tfw_span spans[4] = {span_of("dog"), span_of(""), span_of("chicken"), {0, 0}};
    guarded page = guarded_new(10, true);
    size_t count = 0;
    CHECK_EQ(TFW_OK, tfw_gather(spans, 4, page.data, 10, &count));
    CHECK_EQ(4u, count);
    CHECK(memcmp("dogchicken", page.data, 10) == 0);
    static const size_t ends[4] = {3, 3, 10, 10};
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ((uintptr_t)page.data + ends[i], spans[i].offset + spans[i].length);
    }
    guarded_free(page);
}

static void test_only_what_there_is_room_for_is_gathered(void) {
    tfw_span spans[3] = {span_of("dog"), span_of("chicken"), span_of("cat")};
    const tfw_span before = spans[1];
    guarded page = guarded_new(9, true);
    size_t count = 0;
    CHECK_EQ(TFW_NEED_SPACE, tfw_gather(spans, 3, page.data, 9, &count));
    CHECK_EQ(1u, count);
    CHECK(memcmp("dog", page.data, 3) == 0);
    CHECK(memcmp(&before, &spans[1], sizeof before) == 0);
    guarded_free(page);
}

static void test_strings_of_no_bytes_need_no_memory(void) {
    tfw_span spans[2] = {span_of(""), {0, 0}};
    size_t count = 0;
    CHECK_EQ(TFW_OK, tfw_gather(spans, 2, NULL, 0, &count));
    CHECK_EQ(2u, count);
    CHECK_EQ(0u, spans[0].offset);
}

/* The element sizes that the header names, and no others. */
static void test_sizes_of_elements(void) {
    uint8_t held[64] = {0}, others[64] = {0};
    int64_t numbers[2] = {0};
    for (size_t size = 0; size <= 64; size++) {
        const bool known = size == 4 || size == 8 || size == 16;
        CHECK_EQ(known ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_exchange(0, 0, held, numbers, 1, others, numbers + 1, size, 1, NULL));
    }
}

/* Every number once, whatever the size, and the same ones one by one. */
static void test_a_random_order_has_every_number_once(void) {
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 17, 63, 64, 65, 1000, 1024, 1025};
    for (uint64_t key = 0; key < 20; key++) {
        for (size_t k = 0; k < COUNT(sizes); k++) {
            int64_t numbers[1025];
            uint8_t seen[1025] = {0};
            const size_t size = (size_t)sizes[k];
            for (size_t i = 0; i < size; i++) {
                numbers[i] = (int64_t)i;
            }
            CHECK_EQ(TFW_OK, tfw_permute(key, size, numbers, size, NULL));
            for (size_t i = 0; i < size; i++) {
                int64_t alone = (int64_t)i;
                CHECK(numbers[i] >= 0 && (uint64_t)numbers[i] < size);
                seen[numbers[i]]++;
                CHECK_EQ(TFW_OK, tfw_permute(key, size, &alone, 1, NULL));
                CHECK_EQ(numbers[i], alone);
            }
            CHECK(memchr(seen, 0, size) == NULL);
        }
    }
}

/* Of 1,000, and of 3 * 2^40: the orders that saved states mean. */
static void test_random_orders_stay_what_they_are(void) {
    int64_t numbers[5] = {0, 1, 2, 3, 4};
    const int64_t few[5] = {656, 928, 205, 309, 206},
                  many[5] = {2058917691946, 562451938797, 1107055162924, 3258893006560,
                             64537483661};
    CHECK_EQ(TFW_OK, tfw_permute(1, 1000, numbers, 5, NULL));
    CHECK(memcmp(few, numbers, sizeof few) == 0);
    for (int64_t i = 0; i < 5; i++) {
        numbers[i] = i;
    }
    CHECK_EQ(TFW_OK, tfw_permute(UINT64_MAX, UINT64_C(3) << 40, numbers, 5, NULL));
    CHECK(memcmp(many, numbers, sizeof many) == 0);
}

static void test_a_number_outside_of_an_order_changes_nothing(void) {
    const int64_t wrong[] = {-1, 10, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int64_t numbers[2] = {3, wrong[i]};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_permute(1, 10, numbers, 2, NULL));
        CHECK(numbers[0] == 3 && numbers[1] == wrong[i]);
    }
}

int main(void) {
    RUN(test_a_slot_drawn_again_gives_what_the_draw_before_put_there);
    RUN(test_one_by_one);
    RUN(test_a_buffer_that_cannot_be_changes_nothing);
    RUN(test_strings_are_gathered_in_their_order);
    RUN(test_only_what_there_is_room_for_is_gathered);
    RUN(test_strings_of_no_bytes_need_no_memory);
    RUN(test_sizes_of_elements);
    RUN(test_a_random_order_has_every_number_once);
    RUN(test_random_orders_stay_what_they_are);
    RUN(test_a_number_outside_of_an_order_changes_nothing);
    return check_report("shuffle");
}
