/* SPDX-License-Identifier: Apache-2.0 */
/* Elements are put into the first row with room, and their values beside each other. */
#include "proto.h"
#include "tfwire_python.h"

enum { ROWS = 2, PARTS = 2, MOST = 6 };

static const int64_t widths[PARTS] = {5, 3};

typedef struct state {
    int64_t filled[ROWS * PARTS], held[ROWS], places[(PARTS + 2) * MOST];
    size_t end;
} state;

static int fit(state *s, const int64_t *lengths, size_t count, size_t first) {
    const tfw_rows rows = {widths, s->filled, s->held, PARTS, ROWS};
    return tfw_first_fit(&rows, lengths, count, first, s->places, &s->end, NULL);
}

static void expect(const int64_t *expected, const int64_t *actual, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(expected[i], actual[i]);
    }
}

static void test_elements_go_to_the_first_row_with_room_for_all_parts(void) {
    static const int64_t lengths[] = {3, 2, 3, 2, 4, /* and */ 1, 2, 1, 1, 1};
    static const int64_t places[] = {0, 0, 1, 1, -1, /* rows */
                                     1, 2, 1, 2, -1, /* numbers */
                                     0, 3, 0, 3, -1, /* starts of the first part */
                                     0, 1, 0, 1, -1 /* and of the second */};
    state s = {.end = 99};
    memset(s.places, 0xff, sizeof s.places);
    CHECK_EQ(TFW_OK, fit(&s, lengths, 5, 0));
    CHECK_EQ(4u, s.end);
    expect(places, s.places, 20);
    CHECK_EQ(TFW_OK, fit(&s, lengths, 5, 4)); /* still in no row */
    CHECK_EQ(4u, s.end);
    state other = {.end = 99};
    CHECK_EQ(TFW_OK, fit(&other, lengths, 5, 4));
    CHECK_EQ(5u, other.end);
    CHECK_EQ(0, other.places[4]);
    CHECK_EQ(1, other.held[0]);
}

static void test_no_elements_and_no_rows(void) {
    static const int64_t lengths[] = {1, 1};
    const tfw_rows none = {widths, NULL, NULL, PARTS, 0};
    size_t end = 99;
    state s = {.end = 99};
    CHECK_EQ(TFW_OK, fit(&s, NULL, 0, 0));
    CHECK_EQ(0u, s.end);
    CHECK_EQ(TFW_OK, tfw_first_fit(&none, lengths, 1, 0, s.places, &end, NULL));
    CHECK_EQ(0u, end);
}

static void test_lengths_that_lie_change_nothing(void) {
    static const int64_t wrong[][2] = {{-1, 0}, {6, 0}, {0, 4}, {0, -1}, {INT64_MAX, 0},
                                       {INT64_MIN, 0}};
    static const int64_t right[2] = {1, 1};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        state s = {.end = 99};
        CHECK_EQ(TFW_E_ARGUMENT, fit(&s, wrong[i], 1, 0));
        CHECK_EQ(0, s.filled[0]);
        s.filled[2] = wrong[i][0] != 0 ? wrong[i][0] : wrong[i][1] + 9;
        CHECK_EQ(TFW_E_ARGUMENT, fit(&s, right, 1, 0));
    }
    state s = {.end = 99};
    CHECK_EQ(TFW_E_ARGUMENT, fit(&s, right, 1, 2));
}

static void test_segments_are_copied_with_numbers_and_positions(void) {
    static const int16_t values[5] = {1, 2, 3, 4, 5};
    static const int64_t begins[] = {0, 3, 3}, lengths[] = {3, 0, 2}, rows[] = {1, 0, 0},
                         numbers[] = {1, 1, 2}, starts[] = {0, 0, 1};
    const tfw_segments segments = {begins, lengths, rows, numbers, starts, 3};
    int16_t out[6] = {9, 9, 9, 9, 9, 9};
    static const int16_t expected[6] = {9, 4, 5, 1, 2, 3};
    static const int32_t ids[6] = {0, 2, 2, 1, 1, 1}, positions[6] = {0, 0, 1, 0, 1, 2};
    int32_t found_ids[6] = {0}, found_positions[6] = {0};
    CHECK_EQ(TFW_OK, tfw_copy_segments(&segments, values, 5, sizeof *out, 2, 3, out, found_ids,
                                       found_positions, NULL));
    CHECK(memcmp(expected, out, sizeof out) == 0);
    CHECK(memcmp(ids, found_ids, sizeof ids) == 0);
    CHECK(memcmp(positions, found_positions, sizeof positions) == 0);
    CHECK_EQ(TFW_OK, tfw_copy_segments(&segments, NULL, 5, 0, 2, 3, NULL, found_ids,
                                       found_positions, NULL));
    CHECK(memcmp(expected, out, sizeof out) == 0);
}

static void test_segments_that_lie_are_refused(void) {
    static const int64_t right[5] = {1, 2, 1, 1, 0}; /* begin, length, row, number, start */
    static const int64_t wrong[][2] = {{0, 4}, {0, -1}, {1, -1}, {1, 4}, {1, INT64_MAX},
                                       {2, 2}, {2, -1}, {4, 2},  {4, -1}, {0, INT64_MAX}};
    int64_t out[6] = {0};
    int32_t ids[6], positions[6];
    static const int64_t values[5] = {1, 2, 3, 4, 5};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int64_t s[5];
        memcpy(s, right, sizeof s);
        s[wrong[i][0]] = wrong[i][1];
        const tfw_segments segments = {s, s + 1, s + 2, s + 3, s + 4, 1};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_copy_segments(&segments, values, 5, 8, 2, 3, out, ids,
                                                   positions, NULL));
    }
}

int main(void) {
    RUN(test_elements_go_to_the_first_row_with_room_for_all_parts);
    RUN(test_no_elements_and_no_rows);
    RUN(test_lengths_that_lie_change_nothing);
    RUN(test_segments_are_copied_with_numbers_and_positions);
    RUN(test_segments_that_lie_are_refused);
    return check_report("packing");
}
