/* SPDX-License-Identifier: Apache-2.0 */
/* Structs in a table: each field is a column, which only tfw_import_nest allows. */
#include "arrow_columns.h"

static int64_t ints[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const int32_t offsets[] = {0, 1, 3, 3, 6, 8};

/* A table of three records: the numbers a, and b, a struct of lists and of numbers. */
typedef struct table {
    struct ArrowSchema types[6], *columns[2], *fields[2], *items[1];
    struct ArrowArray arrays[6], *of_columns[2], *of_fields[2], *of_items[1];
    const void *buffers[6][2];
} table;

static struct ArrowSchema type_in(const char *format, const char *name, int64_t count,
                                  struct ArrowSchema **children) {
    struct ArrowSchema type = type_of(format, children);
    type.name = name;
    type.n_children = count;
    return type;
}

/* The struct begins at its second element; bits say which elements are not null. */
static void make(table *t, const uint8_t *bits) {
    *t = (table){.columns = {&t->types[1], &t->types[2]}, .fields = {&t->types[3], &t->types[4]},
                 .items = {&t->types[5]}, .of_columns = {&t->arrays[1], &t->arrays[2]},
                 .of_fields = {&t->arrays[3], &t->arrays[4]}, .of_items = {&t->arrays[5]}};
    t->types[0] = type_in("+s", "", 2, t->columns);
    t->types[1] = type_in("l", "a", 0, NULL);
    t->types[2] = type_in("+s", "b", 2, t->fields);
    t->types[3] = type_in("+l", "lists", 1, t->items);
    t->types[4] = type_in("l", "numbers", 0, NULL);
    t->types[5] = type_in("l", "item", 0, NULL);
    t->buffers[3][1] = offsets;
    t->buffers[1][1] = t->buffers[4][1] = t->buffers[5][1] = ints;
    t->buffers[2][0] = bits;
    static const int64_t lengths[] = {3, 3, 3, 5, 4, 10}, counts[] = {1, 2, 1, 2, 2, 2};
    struct ArrowArray **const children[] = {t->of_columns, NULL, t->of_fields,
                                            t->of_items, NULL, NULL};
    for (size_t i = 0; i < 6; i++) {
        t->arrays[i] = array_of(lengths[i], counts[i], t->buffers[i], children[i]);
        t->arrays[i].n_children = t->types[i].n_children;
    }
    t->arrays[2].offset = 1;
    t->arrays[2].null_count = bits != NULL ? -1 : 0;
}

/* The status of what came last. */
static int import(imported *t, table *of, bool nested, size_t room) {
    *t = (imported){0};
    int status = tfw_import_create(NULL, &of->types[0], &of->arrays[0], &t->import, &t->error);
    if (status == TFW_OK) {
        status = tfw_import_schema(t->import, &t->columns, &t->error);
    }
    for (size_t i = 1; nested && status == TFW_OK && i < t->columns; i++) {
        status = tfw_import_nest(t->import, i, &t->error);
    }
    return status != TFW_OK
               ? status : tfw_import_next(t->import, room, &t->inputs, &t->records, &t->error);
}

static void test_fields_are_columns(void) {
    static const uint8_t but_third = 0xfb; /* element 2, record 1 */
    static const int64_t splits[] = {0, 2, 2, 5}, values[] = {1, 2, 3, 4, 5};
    for (int i = 0; i < 2; i++) {
        table of;
        imported t;
        const tfw_level *levels;
        size_t depth;
        make(&of, i == 0 ? NULL : &but_third);
        CHECK_EQ(TFW_OK, import(&t, &of, true, 1 << 20));
        CHECK_EQ(3, t.columns);
        CHECK_EQ(3, t.records);
        CHECK(strcmp("a", tfw_import_name(t.import, 0)) == 0 &&
              strcmp("b", tfw_import_name(t.import, 1)) == 0 &&
              strcmp("b", tfw_import_name(t.import, 2)) == 0);
        CHECK(tfw_import_field(t.import, 0) == NULL && tfw_import_field(t.import, 3) == NULL);
        CHECK(strcmp("lists", tfw_import_field(t.import, 1)) == 0 &&
              strcmp("numbers", tfw_import_field(t.import, 2)) == 0);
        tfw_import_levels(t.import, 1, &levels, &depth);
        CHECK_EQ(1, depth);
        CHECK(memcmp(splits, levels[0].splits, sizeof splits) == 0);
        CHECK(memcmp(values, t.inputs[1].values, sizeof values) == 0);
        CHECK_EQ(1, ((const int64_t *)t.inputs[2].values)[0]);
        CHECK_EQ(3, ((const int64_t *)t.inputs[2].values)[2]);
        for (size_t k = 1; k < 3; k++) {
            const uint8_t *presence = t.inputs[k].presence;
            CHECK(i == 0 ? presence == NULL
                         : presence[0] == TFW_PRESENT && presence[1] == TFW_ABSENT &&
                               presence[2] == TFW_PRESENT);
        }
        tfw_import_free(t.import);
    }
}

/* What lies under a struct that is null is not there, and a field may be null by itself. */
static void test_null_in_a_struct_hides_its_fields(void) {
    static const uint8_t but_second = 0xfd, but_last = 0xf7;
    static const int64_t splits[] = {0, 0, 0, 0};
    table of;
    imported t;
    const tfw_level *levels;
    size_t depth;
    make(&of, &but_second); /* record 0 */
    of.buffers[3][0] = &but_last;
    of.arrays[3].null_count = 1; /* record 2 */
    CHECK_EQ(TFW_OK, import(&t, &of, true, 1 << 20));
    tfw_import_levels(t.import, 1, &levels, &depth);
    CHECK(memcmp(splits, levels[0].splits, sizeof splits) == 0);
    CHECK(levels[0].presence[0] == TFW_ABSENT && levels[0].presence[1] == TFW_PRESENT &&
          levels[0].presence[2] == TFW_ABSENT);
    CHECK(t.inputs[2].presence[0] == TFW_ABSENT && t.inputs[2].presence[2] == TFW_PRESENT);
    tfw_import_free(t.import);
}

static void test_structs_are_refused_unless_their_fields_are_asked_for(void) {
    table of;
    imported t;
    make(&of, NULL);
    CHECK_EQ(TFW_E_UNSUPPORTED, import(&t, &of, false, 1 << 20));
    CHECK_EQ(1, t.error.feature);
    CHECK(strstr(t.error.text, "a struct cannot be a feature") != NULL);
    tfw_import_free(t.import);
    make(&of, NULL);
    of.types[2].n_children = 0; /* it would be no column */
    CHECK_EQ(TFW_E_UNSUPPORTED, import(&t, &of, true, 1 << 20));
    tfw_import_free(t.import);
}

static void test_structs_that_lie_are_refused(void) {
    for (int lie = 0; lie < 7; lie++) {
        table of;
        imported t;
        make(&of, NULL);
        of.types[2].n_children = lie == 0 ? INT64_MAX : lie == 1 ? 1 << 20 : 2;
        of.arrays[2].n_children = lie == 2 ? 1 : 2;
        of.arrays[2].offset = lie == 3 ? 2 : lie == 4 ? INT64_MAX : 1;
        of.arrays[2].null_count = lie == 5 ? 1 : 0; /* without a bitmap */
        of.arrays[2].length = lie == 6 ? 2 : 3;
        CHECK_EQ(TFW_E_ARGUMENT, import(&t, &of, true, 1 << 20));
        tfw_import_free(t.import);
    }
}

static void test_one_struct_may_have_too_many_fields(void) {
    table of;
    imported t;
    make(&of, NULL);
    of.columns[0] = &of.types[2];
    of.types[0].n_children = of.arrays[0].n_children = 1;
    of.types[2].n_children = (1 << 20) + 1;
    CHECK_EQ(TFW_E_ARGUMENT, import(&t, &of, true, 1 << 20));
    CHECK(strstr(t.error.text, "an impossible number of columns") != NULL);
    tfw_import_free(t.import);
}

static void test_no_memory_at_any_place(void) {
    static const uint8_t but_third = 0xfb;
    int status = TFW_E_MEMORY;
    for (long fail = 0; status == TFW_E_MEMORY; fail++) {
        table of;
        imported t;
        make(&of, &but_third);
        tfwi_test_fail_allocation = fail;
        status = import(&t, &of, true, 1 << 20);
        tfwi_test_fail_allocation = -1;
        tfw_import_free(t.import);
    }
    CHECK_EQ(TFW_OK, status);
}

int main(void) {
    RUN(test_fields_are_columns);
    RUN(test_null_in_a_struct_hides_its_fields);
    RUN(test_structs_are_refused_unless_their_fields_are_asked_for);
    RUN(test_structs_that_lie_are_refused);
    RUN(test_one_struct_may_have_too_many_fields);
    RUN(test_no_memory_at_any_place);
    return check_report("structs in tables");
}
