/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow data as columns: every type, offsets, nulls, lists of all kinds, dictionaries, and structs
 * that are not as the interface says. */
#include "arrow_columns.h"

#include <math.h>

enum { ROOM = 1 << 20 };

static imported t;

/* Imports records of an array of simple values, and gives their input. */
static const tfw_input *import_values(const char *format, struct ArrowArray array) {
    struct ArrowSchema type = type_of(format, NULL);
    CHECK_EQ(TFW_OK, import_one(&t, &type, &array, array.length, ROOM));
    CHECK_EQ(array.length, (int64_t)t.records);
    return t.inputs;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

#define CHECK_INTS(input, ...)                                                     \
    do {                                                                           \
        const int64_t expected[] = {__VA_ARGS__};                                  \
        CHECK_EQ(TFW_INT64, (input)->kind);                                        \
        CHECK_EQ(sizeof expected / 8, (input)->value_count);                       \
        CHECK(memcmp(expected, (input)->values, sizeof expected) == 0);            \
    } while (0)

static void test_integers_of_every_width(void) {
#define WIDTH(format, type, ...)                                                             \
    do {                                                                                     \
        const type values[] = {__VA_ARGS__};                                                 \
        const tfw_input *in = import_values(format, array_of(3, 2, BUFFERS(NULL, values), NULL)); \
        CHECK_INTS(in, __VA_ARGS__);                                                         \
        CHECK(in->presence == NULL && in->splits == NULL && in->count == 1);                 \
        import_end(&t);                                                                      \
    } while (0)
    WIDTH("c", int8_t, -128, 0, 127);
    WIDTH("C", uint8_t, 0, 128, 255);
    WIDTH("s", int16_t, INT16_MIN, 7, INT16_MAX);
    WIDTH("S", uint16_t, 0, 1, UINT16_MAX);
    WIDTH("i", int32_t, INT32_MIN, -1, INT32_MAX);
    WIDTH("I", uint32_t, 0, 5, UINT32_MAX);
    WIDTH("l", int64_t, INT64_MIN, -1, INT64_MAX);
    WIDTH("L", uint64_t, 0, 1, INT64_MAX);
    const uint8_t bits = 0xed; /* from bit 3 on: 1 0 1 */
    struct ArrowArray bools = array_of(3, 2, BUFFERS(NULL, &bits), NULL);
    bools.offset = 3;
    const tfw_input *of_bools = import_values("b", bools);
    CHECK_INTS(of_bools, 1, 0, 1);
    import_end(&t);
}

static void test_fractions_of_every_width(void) {
    static const uint16_t halves[] = {0x3c00, 0x8001, 0x7c00, 0xfbff, 0x0000, 0x03ff};
    static const float expected[] = {
        1.0f, -0x1p-24f, INFINITY, -65504.0f, 0.0f, 1023 * 0x1p-24f};
    const tfw_input *in = import_values("e", array_of(6, 2, BUFFERS(NULL, halves), NULL));
    CHECK_EQ(TFW_FLOAT, in->kind);
    CHECK(memcmp(expected, in->values, sizeof expected) == 0);
    import_end(&t);
    static const uint16_t nan = 0x7e01;
    in = import_values("e", array_of(1, 2, BUFFERS(NULL, &nan), NULL));
    CHECK(*(const float *)in->values != *(const float *)in->values);
    import_end(&t);
    static const double doubles[] = {0.1, 1e300, -1e300, -0.0};
    static const float narrow[] = {0.1f, INFINITY, -INFINITY, -0.0f};
    in = import_values("g", array_of(4, 2, BUFFERS(NULL, doubles), NULL));
    CHECK(memcmp(narrow, in->values, sizeof narrow) == 0);
    import_end(&t);
}

static void test_numbers_of_the_right_type_are_not_copied(void) {
    int64_t ints[4] = {1, 2, 3, 4};
    struct ArrowArray array = array_of(2, 2, BUFFERS(NULL, ints), NULL);
    array.offset = 1;
    CHECK(import_values("l", array)->values == ints + 1);
    import_end(&t);
    CHECK(import_values("f", array)->values == (float *)(void *)ints + 1);
    import_end(&t);
    /* An address that is no multiple of their size is one of bytes. */
    const int64_t nine = 9;
    uint8_t bytes[20] = {0};
    memcpy(bytes + 4, &nine, sizeof nine);
    array = array_of(2, 2, BUFFERS(NULL, bytes + 4), NULL);
    const tfw_input *in = import_values("l", array);
    CHECK((uintptr_t)in->values % 8 == 0);
    CHECK_INTS(in, 9, 0);
    import_end(&t);
}

static void test_uint64_beyond_int64_is_refused_unless_it_is_null(void) {
    static const uint64_t values[] = {1, UINT64_MAX, UINT64_C(1) << 63};
    struct ArrowSchema type = type_of("L", NULL);
    struct ArrowArray array = array_of(3, 2, BUFFERS(NULL, values), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 3, ROOM));
    CHECK_EQ(1, t.error.record);
    CHECK_EQ(0, t.error.feature);
    import_end(&t);
    const uint8_t bits = 1;
    array = array_of(3, 2, BUFFERS(&bits, values), NULL);
    array.null_count = 2;
    CHECK_EQ(TFW_OK, import_one(&t, &type, &array, 3, ROOM));
    CHECK(memcmp("\1\0\0", t.inputs->presence, 3) == 0);
    import_end(&t);
}

/* ---- Strings -------------------------------------------------------------------------------- */

static void check_strings(const tfw_input *in, const char *bytes, const int64_t *offsets) {
    CHECK_EQ(TFW_BYTES, in->kind);
    CHECK_EQ(strlen(bytes), in->byte_count);
    CHECK(bytes[0] == '\0' || memcmp(bytes, in->values, strlen(bytes)) == 0);
    CHECK(memcmp(offsets, in->offsets, (size_t)(in->value_count + 1) * 8) == 0);
}

static void test_strings_of_every_layout(void) {
    static const int64_t expected[] = {0, 3, 3, 7};
    static const int32_t narrow[] = {2, 5, 5, 9};
    static const int64_t wide[] = {2, 5, 5, 9};
    const char *text = "__catgoat";
    check_strings(import_values("u", array_of(3, 3, BUFFERS(NULL, narrow, text), NULL)), "catgoat",
                  expected);
    CHECK(t.inputs->values == text + 2);
    import_end(&t);
    check_strings(import_values("Z", array_of(3, 3, BUFFERS(NULL, wide, text), NULL)), "catgoat",
                  expected);
    import_end(&t);
    static const int64_t pairs[] = {0, 2, 4};
    struct ArrowArray fixed = array_of(2, 2, BUFFERS(NULL, text), NULL);
    fixed.offset = 1;
    check_strings(import_values("w:2", fixed), "catg", pairs);
    import_end(&t);
    static const int64_t nothing[] = {0, 0, 0};
    check_strings(import_values("w:0", array_of(2, 2, BUFFERS(NULL, NULL), NULL)), "", nothing);
    import_end(&t);
}

typedef struct view {
    int32_t len;
    char start[4];
    int32_t buffer;
    int32_t offset;
} view;

static void test_views_are_copied_one_after_the_other(void) {
    static const view views[] = {
        {3, "cat", 0, 0}, {13, "", 1, 2}, {0, "", 7, 7}, {14, "", 0, 0}};
    const char *first = "fourteen bytes", *second = "__thirteen here";
    static const int64_t sizes[] = {14, 15}, expected[] = {0, 3, 16, 16, 30};
    const tfw_input *in = import_values(
        "vu", array_of(4, 5, BUFFERS(NULL, views, first, second, sizes), NULL));
    check_strings(in, "catthirteen herefourteen bytes", expected);
    import_end(&t);
}

static void test_views_that_lie_are_refused(void) {
    static const view lies[] = {{-1, "", 0, 0},  {13, "", 1, 0},  {13, "", -1, 0},
                                {13, "", 0, -1}, {13, "", 0, 3}, {INT32_MAX, "", 0, INT32_MAX}};
    static const int64_t sizes[] = {15};
    const uint8_t none = 0;
    struct ArrowSchema type = type_of("vz", NULL);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct ArrowArray array =
            array_of(1, 4, BUFFERS(NULL, &lies[i], "fifteen bytes..", sizes), NULL);
        CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 1, ROOM));
        CHECK_EQ(0, t.error.record);
        import_end(&t);
        array = array_of(1, 4, BUFFERS(&none, &lies[i], "fifteen bytes..", sizes), NULL);
        array.null_count = 1; /* what is null may hold anything */
        CHECK_EQ(TFW_OK, import_one(&t, &type, &array, 1, ROOM));
        import_end(&t);
    }
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static int64_t ints[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* Imports lists of ints, of which the array has no children yet. */
static int import_list(const char *format, struct ArrowArray array, int64_t records) {
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowSchema type = type_of(format, elements);
    struct ArrowArray values = array_of(10, 2, BUFFERS(NULL, ints), NULL);
    struct ArrowArray *children[] = {&values};
    array.n_children = 1;
    array.children = children;
    return import_one(&t, &type, &array, records, ROOM);
}

static void test_lists_of_every_layout(void) {
    static const int32_t narrow[] = {1, 3, 3, 4}, begins[] = {5, 0, 3}, sizes[] = {2, 0, 1};
    static const int64_t wide[] = {1, 3, 3, 4}, splits[] = {0, 2, 2, 3};
    static const int64_t wide_begins[] = {5, 0, 3}, wide_sizes[] = {2, 0, 1};
    CHECK_EQ(TFW_OK, import_list("+l", array_of(3, 2, BUFFERS(NULL, narrow), NULL), 3));
    CHECK(t.inputs->values == ints + 1);
    CHECK(memcmp(splits, t.inputs->splits, sizeof splits) == 0);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_list("+L", array_of(3, 2, BUFFERS(NULL, wide), NULL), 3));
    CHECK(memcmp(splits, t.inputs->splits, sizeof splits) == 0);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_list("+vl", array_of(3, 3, BUFFERS(NULL, begins, sizes), NULL), 3));
    CHECK_INTS(t.inputs, 5, 6, 3);
    CHECK(memcmp(splits, t.inputs->splits, sizeof splits) == 0);
    import_end(&t);
    CHECK_EQ(TFW_OK,
             import_list("+vL", array_of(3, 3, BUFFERS(NULL, wide_begins, wide_sizes), NULL), 3));
    CHECK_INTS(t.inputs, 5, 6, 3);
    import_end(&t);
    struct ArrowArray fixed = array_of(2, 1, BUFFERS(NULL), NULL);
    fixed.offset = 1;
    CHECK_EQ(TFW_OK, import_list("+w:3", fixed, 2));
    CHECK(t.inputs->values == ints + 3 && t.inputs->count == 3 && t.inputs->splits == NULL);
    import_end(&t);
}

static void test_lists_that_lie_are_refused(void) {
    static const int32_t lies[][3] = {{0, 3, 2}, {-1, 0, 1}, {0, 5, 11}, {-5, -3, -2}};
    for (size_t i = 0; i < 4; i++) {
        const int64_t wide[] = {lies[i][0], lies[i][1], lies[i][2]};
        CHECK_EQ(TFW_E_ARGUMENT,
                 import_list("+l", array_of(2, 2, BUFFERS(NULL, lies[i]), NULL), 2));
        import_end(&t);
        CHECK_EQ(TFW_E_ARGUMENT, import_list("+L", array_of(2, 2, BUFFERS(NULL, wide), NULL), 2));
        import_end(&t);
    }
    static const int64_t views[][2] = {{-1, 1}, {0, -1}, {11, 0}, {5, 6}, {INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < 5; i++) {
        struct ArrowArray array = array_of(1, 3, BUFFERS(NULL, &views[i][0], &views[i][1]), NULL);
        CHECK_EQ(TFW_E_ARGUMENT, import_list("+vL", array, 1));
        CHECK_EQ(0, t.error.record);
        import_end(&t);
    }
    CHECK_EQ(TFW_E_ARGUMENT, import_list("+w:4", array_of(3, 1, BUFFERS(NULL), NULL), 3));
    import_end(&t);
}

static void test_null_lists_are_absent_and_empty_ones_are_not(void) {
    static const int32_t offsets[] = {0, 2, 4, 4, 5};
    const uint8_t bits = 0x0d; /* the second is null, though it has elements */
    struct ArrowArray lists = array_of(4, 2, BUFFERS(&bits, offsets), NULL);
    lists.null_count = -1;
    CHECK_EQ(TFW_OK, import_list("+l", lists, 4));
    CHECK(memcmp("\1\0\1\1", t.inputs->presence, 4) == 0);
    CHECK_EQ(2, t.inputs->splits[1]);
    import_end(&t);
}

static void test_null_in_a_list_is_refused_unless_the_list_is_null(void) {
    static const int32_t offsets[] = {0, 2, 4};
    const uint8_t first_of_two = 0x01, all_but_third = 0xfb;
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowSchema type = type_of("+l", elements);
    struct ArrowArray values = array_of(10, 2, BUFFERS(&all_but_third, ints), NULL);
    struct ArrowArray *children[] = {&values};
    values.length = 8;
    values.null_count = 1;
    struct ArrowArray lists = array_of(2, 2, BUFFERS(NULL, offsets), children);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_one(&t, &type, &lists, 2, ROOM));
    CHECK_EQ(1, t.error.record);
    import_end(&t);
    lists = array_of(2, 2, BUFFERS(&first_of_two, offsets), children);
    lists.null_count = 1;
    CHECK_EQ(TFW_OK, import_one(&t, &type, &lists, 2, ROOM));
    import_end(&t);
}

/* ---- Dictionaries --------------------------------------------------------------------------- */

static int import_dictionary(const int16_t *indices, uint8_t bits, uint8_t value_bits) {
    static const int32_t offsets[] = {0, 3, 7, 7};
    struct ArrowSchema values = type_of("u", NULL);
    struct ArrowSchema type = type_of("s", NULL);
    type.dictionary = &values;
    struct ArrowArray dictionary =
        array_of(3, 3, BUFFERS(&value_bits, offsets, "catgoat"), NULL);
    dictionary.null_count = -1;
    struct ArrowArray array = array_of(3, 2, BUFFERS(&bits, indices), NULL);
    array.null_count = -1;
    array.dictionary = &dictionary;
    return import_one(&t, &type, &array, 3, ROOM);
}

static void test_dictionaries(void) {
    static const int16_t indices[] = {1, 0, 1}, lies[] = {0, 3, 0}, negative[] = {-1, 0, 0};
    static const int64_t expected[] = {0, 4, 7, 11};
    CHECK_EQ(TFW_OK, import_dictionary(indices, 7, 7));
    check_strings(t.inputs, "goatcatgoat", expected);
    import_end(&t);
    CHECK_EQ(TFW_E_ARGUMENT, import_dictionary(lies, 7, 7));
    CHECK_EQ(1, t.error.record);
    import_end(&t);
    CHECK_EQ(TFW_E_ARGUMENT, import_dictionary(negative, 7, 7));
    import_end(&t);
    CHECK_EQ(TFW_OK, import_dictionary(lies, 5, 7)); /* an index that is null may be any */
    CHECK(memcmp("\1\0\1", t.inputs->presence, 3) == 0);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_dictionary(indices, 7, 5)); /* "goat" is null */
    CHECK(memcmp("\0\1\0", t.inputs->presence, 3) == 0);
    import_end(&t);
}

/* ---- Structs -------------------------------------------------------------------------------- */

static void test_types_that_no_feature_holds_are_refused(void) {
    static const char *const formats[] = {
        "tsu:UTC", "tdD", "ttm", "tDs", "tiM", "d:10,2", "+s", "+m", "+us:0", "+ud:0", "+r",
        "?", "", "+w:", "+w:-1", "+w:99999999999", "w:x", "ll", "v"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct ArrowSchema type = type_of(formats[i], NULL);
        struct ArrowArray array = array_of(1, 2, BUFFERS(NULL, ints), NULL);
        CHECK_EQ(TFW_E_UNSUPPORTED, import_one(&t, &type, &array, 1, ROOM));
        CHECK_EQ(0, t.error.feature);
        import_end(&t);
    }
}

static void test_arrays_that_are_not_as_their_type_says_are_refused(void) {
    struct ArrowArray good = array_of(4, 2, BUFFERS(NULL, ints), NULL), child = good;
    struct ArrowArray *children[] = {&child};
    struct ArrowArray bad[] = {good, good, good, good, good, good, good, good, good, good, good};
    bad[0].length = 3;
    bad[1].length = -1;
    bad[2].offset = -1;
    bad[3].offset = INT64_MAX - 1;
    bad[4].null_count = 1;
    bad[5].null_count = -2;
    bad[6].n_buffers = 3;
    bad[7].buffers = NULL;
    bad[8].buffers = BUFFERS(NULL, NULL);
    bad[9].n_children = 1;
    bad[9].children = children;
    bad[10].dictionary = &child;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ArrowSchema type = type_of("l", NULL);
        CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &bad[i], 4, ROOM));
        CHECK_EQ(0, t.error.feature);
        import_end(&t);
    }
    struct ArrowSchema type = type_of("l", NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, NULL, 4, ROOM));
    import_end(&t);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, NULL, &good, 4, ROOM));
    import_end(&t);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &good, -1, ROOM));
    import_end(&t);
}

static void test_lists_without_children_are_refused(void) {
    struct ArrowSchema type = type_of("+l", NULL), *itself[] = {&type};
    struct ArrowArray array = array_of(1, 2, BUFFERS(NULL, ints), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
    type = type_of("+l", itself); /* no end of lists */
    CHECK_EQ(TFW_E_UNSUPPORTED, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    type = type_of("+l", elements);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
}

int main(void) {
    RUN(test_integers_of_every_width);
    RUN(test_fractions_of_every_width);
    RUN(test_numbers_of_the_right_type_are_not_copied);
    RUN(test_uint64_beyond_int64_is_refused_unless_it_is_null);
    RUN(test_strings_of_every_layout);
    RUN(test_views_are_copied_one_after_the_other);
    RUN(test_views_that_lie_are_refused);
    RUN(test_lists_of_every_layout);
    RUN(test_lists_that_lie_are_refused);
    RUN(test_null_lists_are_absent_and_empty_ones_are_not);
    RUN(test_null_in_a_list_is_refused_unless_the_list_is_null);
    RUN(test_dictionaries);
    RUN(test_types_that_no_feature_holds_are_refused);
    RUN(test_arrays_that_are_not_as_their_type_says_are_refused);
    RUN(test_lists_without_children_are_refused);
    return check_report("import");
}
