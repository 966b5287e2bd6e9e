/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow data whose elements lie anywhere: list views, dictionaries and lists inside of them, over
 * values of every type; nulls at every level; each with every allocation failing. */
#include "arrow_columns.h"

enum { ROOM = 1 << 20, MOST_FAILURES = 30 };

static imported t;

/* Imports records once with each allocation failing, and at last with none. */
static int import_failing(struct ArrowSchema *type, struct ArrowArray *array, int64_t records) {
    for (long n = 0; n < MOST_FAILURES; n++) {
        tfwi_test_fail_allocation = n;
        int status = import_one(&t, type, array, records, ROOM);
        const bool failed = tfwi_test_fail_allocation < 0;
        tfwi_test_fail_allocation = -1;
        if (!failed) {
            return status;
        }
        CHECK_EQ(TFW_E_MEMORY, status);
        import_end(&t);
        type->release = release_schema;
    }
    CHECK(false);
    return TFW_E_MEMORY;
}

/* ---- Values --------------------------------------------------------------------------------- */

static int32_t begins[] = {4, 0, 0, 2}, sizes[] = {1, 2, 0, 2};
enum { LISTS = 4, TAKEN = 5 };
static const int64_t taken[TAKEN] = {4, 0, 1, 2, 3}; /* the elements of the lists */
static const int64_t splits[] = {0, 1, 3, 3, 5};

/* Lists of six elements of a type, anywhere. */
static int import_views(struct ArrowSchema *element, struct ArrowArray *values) {
    struct ArrowSchema *elements[] = {element}, type = type_of("+vl", elements);
    struct ArrowArray *children[] = {values};
    struct ArrowArray lists = array_of(LISTS, 3, BUFFERS(NULL, begins, sizes), children);
    int status = import_failing(&type, &lists, LISTS);
    CHECK(status != TFW_OK || memcmp(splits, t.inputs->splits, sizeof splits) == 0);
    return status;
}

static void check_numbers(const char *format, const void *values, double factor) {
    struct ArrowSchema element = type_of(format, NULL);
    struct ArrowArray array = array_of(5, 2, BUFFERS(NULL, values), NULL);
    array.offset = 1;
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    const bool is_float = t.inputs->kind == TFW_FLOAT;
    CHECK(is_float == (strchr("efg", format[0]) != NULL));
    for (size_t i = 0; i < TAKEN; i++) {
        const double expected = (double)(taken[i] + 1) * factor;
        CHECK(is_float ? ((const float *)t.inputs->values)[i] == (float)expected
                       : ((const int64_t *)t.inputs->values)[i] == (int64_t)expected);
    }
    import_end(&t);
}

static void test_numbers_of_every_type(void) {
#define NUMBERS(type) (const type[]){0, 1, 2, 3, 4, 5}
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
    check_numbers("c", NUMBERS(int8_t), 1);
    check_numbers("C", NUMBERS(uint8_t), 1);
    check_numbers("s", NUMBERS(int16_t), 1);
    check_numbers("S", NUMBERS(uint16_t), 1);
    check_numbers("i", NUMBERS(int32_t), 1);
    check_numbers("I", NUMBERS(uint32_t), 1);
    check_numbers("l", NUMBERS(int64_t), 1);
    check_numbers("L", NUMBERS(uint64_t), 1);
    check_numbers("e", halves, 1);
    check_numbers("f", NUMBERS(float), 1);
    check_numbers("g", NUMBERS(double), 1);
}

static void test_bits(void) {
    const uint8_t bits = 0x2a; /* elements 0, 2 and 4, after the first bit */
    struct ArrowSchema element = type_of("b", NULL);
    struct ArrowArray array = array_of(5, 2, BUFFERS(NULL, &bits), NULL);
    array.offset = 1;
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    for (size_t i = 0; i < TAKEN; i++) {
        CHECK_EQ(taken[i] % 2 == 0, ((const int64_t *)t.inputs->values)[i]);
    }
    import_end(&t);
}

static void check_text(const char *expected) {
    CHECK_EQ(TFW_BYTES, t.inputs->kind);
    CHECK_EQ(strlen(expected), t.inputs->byte_count);
    CHECK(memcmp(expected, t.inputs->values, strlen(expected)) == 0);
    import_end(&t);
}

static void test_strings_of_every_layout(void) {
    static const int32_t narrow[] = {0, 1, 1, 3, 4, 5}, lies[] = {0, 1, 1, 3, 2, 5};
    static const int32_t negative[] = {-1, 0, 0, 0, 0, 0};
    static const int64_t wide[] = {0, 1, 1, 3, 4, 5};
    struct ArrowSchema element = type_of("u", NULL);
    struct ArrowArray array = array_of(5, 3, BUFFERS(NULL, narrow, "abcde"), NULL);
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    check_text("eabcd");
    element = type_of("Z", NULL);
    array = array_of(5, 3, BUFFERS(NULL, wide, "abcde"), NULL);
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    check_text("eabcd");
    element = type_of("w:2", NULL);
    array = array_of(5, 2, BUFFERS(NULL, "aabbccddee"), NULL);
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    check_text("eeaabbccdd");
    element = type_of("w:0", NULL);
    array = array_of(5, 2, BUFFERS(NULL, NULL), NULL);
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    check_text("");
    const void *const bad[][2] = {{lies, "abcde"}, {negative, "abcde"}, {narrow, NULL}};
    for (size_t i = 0; i < 3; i++) {
        element = type_of("u", NULL);
        array = array_of(5, 3, BUFFERS(NULL, bad[i][0], bad[i][1]), NULL);
        CHECK_EQ(TFW_E_ARGUMENT, import_views(&element, &array));
        import_end(&t);
    }
    static const int32_t nothing[] = {0, 0, 0, 0, 0, 0};
    element = type_of("u", NULL);
    array = array_of(5, 3, BUFFERS(NULL, nothing, NULL), NULL);
    CHECK_EQ(TFW_OK, import_views(&element, &array));
    check_text("");
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static int64_t ints[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

/* Lists within lists: one array of each format over the ints. */
static int import_nested(const char *outer, struct ArrowArray over, const char *inner,
                         struct ArrowArray lists, int64_t records) {
    struct ArrowSchema leaf = type_of("l", NULL), *leaves[] = {&leaf};
    struct ArrowSchema middle = type_of(inner, leaves), *middles[] = {&middle};
    struct ArrowSchema type = type_of(outer, middles);
    struct ArrowArray values = array_of(12, 2, BUFFERS(NULL, ints), NULL), *of_values[] = {&values};
    struct ArrowArray *of_lists[] = {&lists};
    lists.n_children = over.n_children = 1;
    lists.children = of_values;
    over.children = of_lists;
    return import_failing(&type, &over, records);
}

static void check_ints(size_t count, const int64_t *expected, int64_t first_split) {
    CHECK_EQ(count, t.inputs->value_count);
    CHECK(memcmp(expected, t.inputs->values, count * 8) == 0);
    CHECK_EQ(first_split, t.inputs->splits != NULL ? t.inputs->splits[1]
                                                   : (int64_t)t.inputs->count);
    import_end(&t);
}

/* The lists at one depth. */
static void check_level(size_t depth, uint64_t count, const int64_t *splits) {
    const tfw_level *levels;
    size_t depths;
    tfw_import_levels(t.import, 0, &levels, &depths);
    CHECK_EQ(2, depths);
    CHECK_EQ(count, levels[depth].count);
    CHECK(memcmp(splits, levels[depth].splits, ((size_t)count + 1) * sizeof *splits) == 0);
}

static void test_lists_in_lists(void) {
    static const int32_t offsets[] = {0, 1, 3, 3, 6}, outer[] = {0, 2, 4}, lies[] = {0, 5, 3, 3, 6};
    static const int64_t wide[] = {0, 1, 3, 3, 6};
    static const int64_t in_order[] = {0, 1, 2, 3, 4, 5}, viewed[] = {4, 0, 1, 2, 3};
    static const int64_t pairs[] = {8, 9, 0, 1, 2, 3, 4, 5, 6, 7}, sixes[] = {6, 7, 8, 9, 10, 11};
    const struct ArrowArray lists = array_of(4, 2, BUFFERS(NULL, offsets), NULL);
    const struct ArrowArray fixed = array_of(5, 1, BUFFERS(NULL), NULL);
    const struct ArrowArray two = array_of(2, 2, BUFFERS(NULL, outer), NULL);
    const struct ArrowArray views = array_of(4, 3, BUFFERS(NULL, begins, sizes), NULL);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_nested("+l", two, "+l", lists, 2));
    import_end(&t);
    CHECK_EQ(TFW_OK, import_nested("+l", two, "+w:1", fixed, 2));
    check_ints(4, in_order, 2);
    import_levels = true;
    CHECK_EQ(TFW_OK, import_nested("+l", two, "+l", lists, 2));
    static const int64_t of_records[] = {0, 2, 4};
    check_level(0, 2, of_records);
    check_level(1, 4, wide);
    check_ints(6, in_order, 3);
    CHECK_EQ(TFW_OK, import_nested("+w:2", array_of(2, 1, BUFFERS(NULL), NULL), "+L",
                                   array_of(4, 2, BUFFERS(NULL, wide), NULL), 2));
    check_ints(6, in_order, 3);
    CHECK_EQ(TFW_OK, import_nested("+l", two, "+vl", views, 2));
    check_ints(5, viewed, 3);
    CHECK_EQ(TFW_OK, import_nested("+l", two, "+w:1", fixed, 2));
    check_level(1, 4, in_order);
    check_ints(4, in_order, 2);
    CHECK_EQ(TFW_OK, import_nested("+vl", views, "+w:2", fixed, 4));
    check_ints(10, pairs, 2);
    struct ArrowArray later = array_of(1, 1, BUFFERS(NULL), NULL);
    later.offset = 1;
    CHECK_EQ(TFW_OK, import_nested("+w:2", later, "+w:3", array_of(4, 1, BUFFERS(NULL), NULL), 1));
    check_ints(6, sixes, 6);
    static const int32_t over[] = {3, 1, 1, 0}, of[] = {1, 2, 1, 0};
    static const int64_t overlapping[] = {3, 4, 5, 1, 2, 1, 2};
    const struct ArrowArray again = array_of(4, 3, BUFFERS(NULL, over, of), NULL);
    CHECK_EQ(TFW_OK, import_nested("+vl", again, "+l", lists, 4));
    check_ints(7, overlapping, 3);
    CHECK_EQ(TFW_E_ARGUMENT, import_nested("+vl", again, "+l",
                                           array_of(4, 2, BUFFERS(NULL, lies), NULL), 4));
    CHECK_EQ(1, t.error.record);
    import_end(&t);
    import_levels = false;
}

/* Steps that are null have no kind, and what lies under null is not there. */
static void test_null_in_lists_in_lists(void) {
    static const int32_t offsets[] = {0, 1, 3, 4, 6}, outer[] = {0, 2, 3, 4};
    static const uint8_t steps[] = {0x0d}, records[] = {0x05};
    static const int64_t of_records[] = {0, 2, 2, 3}, of_steps[] = {0, 1, 1, 3};
    static const int64_t left[] = {0, 4, 5};
    struct ArrowArray inner = array_of(4, 2, BUFFERS(steps, offsets), NULL);
    struct ArrowArray over = array_of(3, 2, BUFFERS(records, outer), NULL);
    inner.null_count = over.null_count = 1;
    import_levels = true;
    CHECK_EQ(TFW_OK, import_nested("+l", over, "+l", inner, 3));
    check_level(0, 3, of_records);
    check_level(1, 3, of_steps);
    const tfw_level *levels;
    size_t count;
    tfw_import_levels(t.import, 0, &levels, &count);
    static const uint8_t present[] = {TFW_PRESENT, TFW_ABSENT, TFW_PRESENT};
    static const uint8_t kinds[] = {TFW_PRESENT, TFW_KINDLESS, TFW_PRESENT};
    CHECK(memcmp(present, levels[0].presence, sizeof present) == 0);
    CHECK(memcmp(kinds, levels[1].presence, sizeof kinds) == 0);
    tfw_import_levels(t.import, 1, &levels, &count);
    CHECK(levels == NULL && count == 0);
    check_ints(3, left, 1);
    import_levels = false;
}

static void test_sizes_beyond_a_message_are_refused(void) {
    static const int32_t many[] = {0, 0}, all[] = {1, 1};
    struct ArrowArray outer = array_of(1, 3, BUFFERS(NULL, many, all), NULL);
    struct ArrowArray inner = array_of(1, 1, BUFFERS(NULL), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_nested("+vl", outer, "+w:2147483647", inner, 1));
    import_end(&t);
    import_levels = true;
    CHECK_EQ(TFW_E_ARGUMENT, import_nested("+vl", outer, "+w:2147483647", inner, 1));
    import_end(&t);
    import_levels = false;
}

/* ---- Nulls ---------------------------------------------------------------------------------- */

/* Lists of two elements with a null among those; each list is null or not. */
static int import_null_in(const char *format, struct ArrowArray lists, uint8_t bits) {
    static const uint8_t but_first = 0xfe;
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowSchema type = type_of(format, elements);
    struct ArrowArray values = array_of(8, 2, BUFFERS(&but_first, ints), NULL);
    struct ArrowArray *children[] = {&values};
    values.null_count = -1;
    lists.buffers[0] = &bits;
    lists.null_count = -1;
    lists.n_children = 1;
    lists.children = children;
    return import_failing(&type, &lists, 2);
}

static void test_null_in_a_list_is_refused_unless_the_list_is_null(void) {
    static const int32_t first[] = {0, 2, 4}, at[] = {0, 2}, of[] = {2, 2};
    CHECK_EQ(TFW_E_UNSUPPORTED,
             import_null_in("+l", array_of(2, 2, BUFFERS(NULL, first), NULL), 3));
    CHECK_EQ(0, t.error.record);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_null_in("+l", array_of(2, 2, BUFFERS(NULL, first), NULL), 2));
    CHECK(memcmp("\0\1", t.inputs->presence, 2) == 0);
    import_end(&t);
    CHECK_EQ(TFW_E_UNSUPPORTED,
             import_null_in("+vl", array_of(2, 3, BUFFERS(NULL, at, of), NULL), 3));
    import_end(&t);
    CHECK_EQ(TFW_OK, import_null_in("+vl", array_of(2, 3, BUFFERS(NULL, at, of), NULL), 2));
    import_end(&t);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_null_in("+w:2", array_of(2, 1, BUFFERS(NULL), NULL), 3));
    import_end(&t);
    CHECK_EQ(TFW_OK, import_null_in("+w:2", array_of(2, 1, BUFFERS(NULL), NULL), 2));
    import_end(&t);
}

/* The bits of many records, from one that is in the middle of a byte on. */
static void test_nulls_of_many_records(void) {
    static int64_t numbers[200];
    uint8_t bits[25];
    struct ArrowSchema type = type_of("l", NULL);
    for (int64_t zero = 3; zero < 200; zero += 7) {
        struct ArrowArray array = array_of(197, 2, BUFFERS(bits, numbers), NULL);
        memset(bits, 0xff, sizeof bits);
        bits[zero / 8] &= (uint8_t)~(1u << zero % 8);
        array.offset = 3;
        array.null_count = 1;
        CHECK_EQ(TFW_OK, import_failing(&type, &array, 197));
        for (int64_t i = 0; i < (int64_t)t.records; i++) {
            CHECK_EQ(i + 3 == zero ? TFW_ABSENT : TFW_PRESENT, t.inputs->presence[i]);
        }
        import_end(&t);
    }
}

/* The type null: alone, in lists, and in dictionaries. */
static void test_values_of_the_type_null(void) {
    static const int32_t nothing[] = {0, 0, 0}, something[] = {0, 0, 1};
    const uint8_t first = 1, second = 2;
    struct ArrowSchema type = type_of("n", NULL), *elements[] = {&type};
    struct ArrowArray nulls = array_of(2, 0, NULL, NULL), *children[] = {&nulls};
    nulls.null_count = 2;
    CHECK_EQ(TFW_OK, import_failing(&type, &nulls, 2));
    CHECK(memcmp("\0\0", t.inputs->presence, 2) == 0);
    import_end(&t);
    const void *const offsets[] = {nothing, nothing, something, something};
    const uint8_t *const bits[] = {NULL, &first, NULL, &first};
    const int expected[] = {TFW_OK, TFW_OK, TFW_E_UNSUPPORTED, TFW_OK};
    for (size_t i = 0; i < 4; i++) {
        struct ArrowSchema list = type_of("+l", elements);
        struct ArrowArray lists = array_of(2, 2, BUFFERS(bits[i], offsets[i]), children);
        lists.null_count = bits[i] != NULL ? 1 : 0;
        CHECK_EQ(expected[i], import_failing(&list, &lists, 2));
        const uint8_t *presence = t.inputs->presence;
        CHECK(i != 0 || (presence[0] == TFW_KINDLESS && presence[1] == TFW_KINDLESS));
        CHECK(i != 3 || (presence[0] == TFW_KINDLESS && presence[1] == TFW_ABSENT));
        import_end(&t);
    }
    struct ArrowSchema indices = type_of("c", NULL);
    struct ArrowArray array = array_of(2, 2, BUFFERS(&second, "\0\0"), NULL);
    indices.dictionary = &type;
    array.dictionary = &nulls;
    array.null_count = 1;
    CHECK_EQ(TFW_OK, import_failing(&indices, &array, 2));
    CHECK(memcmp("\0\0", t.inputs->presence, 2) == 0);
    import_end(&t);
}

/* ---- Dictionaries --------------------------------------------------------------------------- */

/* Records, or lists of them, of indices of 8 bits into numbers of which the third is null. */
static int import_indices(const char *indices, uint8_t bits, bool in_lists, bool null_list) {
    static const int32_t offsets[] = {0, 2, 4};
    static const uint8_t but_third = 0xfb;
    const uint8_t lists_present = null_list ? 1 : 3;
    struct ArrowSchema values = type_of("i", NULL), type = type_of("C", NULL), *types[] = {&type};
    struct ArrowArray dictionary = array_of(4, 2, BUFFERS(&but_third, offsets), NULL);
    struct ArrowArray array = array_of(4, 2, BUFFERS(&bits, indices), NULL), *arrays[] = {&array};
    struct ArrowSchema list = type_of("+l", types);
    struct ArrowArray lists = array_of(2, 2, BUFFERS(&lists_present, offsets), arrays);
    dictionary.length = 3;
    dictionary.null_count = array.null_count = lists.null_count = -1;
    type.dictionary = &values;
    array.dictionary = &dictionary;
    return in_lists ? import_failing(&list, &lists, 2) : import_failing(&type, &array, 4);
}

static void test_dictionaries(void) {
    CHECK_EQ(TFW_OK, import_indices("\1\2\0\2", 0x0f, false, false));
    CHECK(memcmp("\1\0\1\0", t.inputs->presence, 4) == 0);
    CHECK_EQ(2, *(const int64_t *)t.inputs->values);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_indices("\1\1\2\1", 0x0a, false, false));
    CHECK(memcmp("\0\1\0\1", t.inputs->presence, 4) == 0);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_indices("\1\0\0\1", 0x0f, true, false));
    CHECK_EQ(4, t.inputs->value_count);
    import_end(&t);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_indices("\1\0\0\2", 0x0f, true, false));
    CHECK_EQ(1, t.error.record);
    import_end(&t);
    CHECK_EQ(TFW_OK, import_indices("\1\0\0\2", 0x0f, true, true)); /* in a list that is null */
    import_end(&t);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_indices("\1\0\0\0", 0x07, true, false));
    import_end(&t);
    CHECK_EQ(TFW_E_ARGUMENT, import_indices("\1\0\3\0", 0x0f, true, false));
    import_end(&t);
}

/* A dictionary that is empty, of which no index is used. */
static void test_an_empty_dictionary(void) {
    const uint8_t none = 0;
    struct ArrowSchema values = type_of("l", NULL), type = type_of("c", NULL);
    struct ArrowArray dictionary = array_of(0, 2, BUFFERS(NULL, NULL), NULL);
    struct ArrowArray array = array_of(3, 2, BUFFERS(&none, "\5\6\7"), NULL);
    dictionary.offset = 2;
    array.null_count = 3;
    type.dictionary = &values;
    array.dictionary = &dictionary;
    CHECK_EQ(TFW_OK, import_failing(&type, &array, 3));
    CHECK(memcmp("\0\0\0", t.inputs->presence, 3) == 0);
    import_end(&t);
}

/* ---- Much of it ----------------------------------------------------------------------------- */

enum { MANY = 10000 }; /* so that no two conversions share a block of memory */
static int32_t rising[MANY + 1], ones[MANY];

static struct ArrowArray array_of_many(const char *format, struct ArrowArray **child) {
    static const void *views[3] = {NULL, rising, ones}, *strings[3] = {NULL, rising, rising};
    switch (format[0] == '+' ? format[1] : format[0]) {
    case 'v': return array_of(MANY, 3, views, child);
    case 'w': return array_of(MANY, child != NULL ? 1 : 2, strings, child);
    case 'u': return array_of(MANY, 3, strings, child);
    default: return array_of(MANY, 2, strings, child);
    }
}

/* Formats from the outside to the inside: every conversion in memory of its own, which may fail. */
static void import_many(const char *const formats[3]) {
    struct ArrowSchema types[3], *of[3][1];
    struct ArrowArray arrays[3], *in[3][1];
    for (size_t i = 3; i-- > 0;) {
        of[i][0] = i < 2 ? &types[i + 1] : NULL;
        in[i][0] = i < 2 ? &arrays[i + 1] : NULL;
        types[i] = type_of(formats[i], i < 2 ? of[i] : NULL);
        arrays[i] = array_of_many(formats[i], i < 2 ? in[i] : NULL);
    }
    for (long n = 0; n < MOST_FAILURES; n++) {
        tfwi_test_fail_allocation = n;
        int status = import_one(&t, &types[0], &arrays[0], MANY, (size_t)1 << 30);
        const bool failed = tfwi_test_fail_allocation < 0;
        tfwi_test_fail_allocation = -1;
        CHECK_EQ(failed ? TFW_E_MEMORY : TFW_OK, status);
        import_end(&t);
    }
}

static void test_every_conversion_may_lack_memory(void) {
    static const char *const formats[][3] = {
        {"+vl", "+l", "u"}, {"+l", "+vl", "i"},   {"+l", "+w:1", "u"},
        {"+l", "+l", "w:1"}, {"+l", "+vl", "u"}, {"+vl", "+w:1", "w:1"},
    };
    for (int32_t i = 0; i < MANY; i++) {
        rising[i + 1] = i + 1;
        ones[i] = 1;
    }
    import_levels = true;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        import_many(formats[i]);
    }
    import_levels = false;
}

/* Refused without an error to write to. */
static void test_errors_may_be_left_out(void) {
    static const int32_t offsets[] = {0, 2, 4}, lies[] = {0, 2, 1};
    static const uint8_t first_bit = 1;
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowSchema list = type_of("+l", elements), *lists[] = {&list};
    for (size_t i = 0; i < 4; i++) {
        struct ArrowSchema schema = type_of("+s", lists);
        struct ArrowArray values = array_of(8, 2, BUFFERS(&first_bit, ints), NULL);
        struct ArrowArray *of_values[] = {&values}, column, *columns[] = {&column};
        struct ArrowArray batch = array_of(2, 1, BUFFERS(NULL), columns);
        column = array_of(2, 2, BUFFERS(NULL, i == 0 ? lies : offsets), of_values);
        values.null_count = i == 1 ? -1 : 0;
        column.n_buffers = i == 2 ? 3 : 2;
        element.format = i == 3 ? "tdD" : "l";
        CHECK_EQ(TFW_OK, tfw_import_create(NULL, &schema, &batch, &t.import, NULL));
        int status = tfw_import_schema(t.import, &t.columns, NULL);
        CHECK_EQ(i == 2 ? TFW_E_ARGUMENT : i == 3 ? TFW_E_UNSUPPORTED : TFW_OK, status);
        status = tfw_import_next(t.import, ROOM, &t.inputs, &t.records, NULL);
        CHECK_EQ(i == 1 ? TFW_E_UNSUPPORTED : TFW_E_ARGUMENT, status);
        tfw_import_free(t.import);
    }
}

int main(void) {
    RUN(test_numbers_of_every_type);
    RUN(test_bits);
    RUN(test_strings_of_every_layout);
    RUN(test_lists_in_lists);
    RUN(test_null_in_lists_in_lists);
    RUN(test_sizes_beyond_a_message_are_refused);
    RUN(test_null_in_a_list_is_refused_unless_the_list_is_null);
    RUN(test_nulls_of_many_records);
    RUN(test_values_of_the_type_null);
    RUN(test_dictionaries);
    RUN(test_an_empty_dictionary);
    RUN(test_every_conversion_may_lack_memory);
    RUN(test_errors_may_be_left_out);
    return check_report("import of what is taken");
}
