/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: what is refused, and the columns that belong to one; arrays of no records. */
#include "arrow_records.h"

enum { PAIRS, BYTES, VALUES, NUMBERS, FLOATS_TOO, EMPTY, ELEMENTS, FEATURES };

static tfw_schema *new_schema(void) {
    const tfw_feature features[FEATURES] = {
        [PAIRS] = feature("d", TFW_INT64, TFW_DENSE, 2),
        [BYTES] = feature("s", TFW_BYTES, TFW_DENSE, 1),
        [VALUES] = feature("v", TFW_INT64, TFW_VARIABLE, 0),
        [NUMBERS] = feature("p", TFW_INT64, TFW_VARIABLE, 0),
        [FLOATS_TOO] = feature("f", TFW_FLOAT, TFW_VARIABLE, 0),
        [EMPTY] = feature("e", TFW_INT64, TFW_DENSE, 0),
        [ELEMENTS] = feature("r", TFW_INT64, TFW_REPEATED, 2),
    };
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, FEATURES, SEED, &schema, NULL));
    return schema;
}

static tfw_arrow_layout *new_layout(const tfw_arrow_field *fields, size_t count, unsigned flags) {
    tfw_arrow_layout *layout;
    CHECK_EQ(TFW_OK,
             tfw_arrow_layout_create(fields, count, new_schema(), NULL, flags, &layout, NULL));
    return layout;
}

/* ---- Fields --------------------------------------------------------------------------------- */

#define SHAPE(...) \
    .shape = (const uint64_t[]){__VA_ARGS__}, \
    .rank = sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)
#define PARTITION(...) .partitions = &(const tfw_partition){__VA_ARGS__}, .partition_count = 1
#define INDICES(...) \
    .index_columns = (const uint64_t[]){__VA_ARGS__}, \
    .index_count = sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

static void test_fields_that_fit(void) {
    const tfw_arrow_field good[] = {
        {.name = "a", .column = PAIRS, SHAPE(2)},
        {.name = "b", .column = PAIRS, SHAPE(1, 2, 1)},
        {.name = "c", .column = BYTES, .strings = TFW_STRING},
        {.name = "d", .column = VALUES, SHAPE(INT32_MAX, SIZE_MAX > UINT32_MAX ? INT32_MAX : 1)},
        {.name = "e", .column = ELEMENTS, SHAPE(2)},
        {.name = "f", .column = EMPTY, SHAPE(INT32_MAX, 0, INT32_MAX)},
        {.name = "g", .column = FLOATS_TOO, PARTITION(.kind = TFW_ROW_LENGTHS, .column = NUMBERS)},
        {.name = "h", .column = VALUES, PARTITION(.length = INT64_MAX)},
        {.name = "i", .column = FLOATS_TOO, INDICES(NUMBERS, VALUES)},
        {.name = "j", .column = PAIRS, SHAPE(1, 2, 1), .is_flat = 1},
        {.name = "k", .column = VALUES, .is_scalar = 1},
    };
    tfw_arrow_layout *layout = new_layout(good, sizeof good / sizeof good[0], 0);
    struct ArrowSchema *type;
    CHECK_EQ(TFW_OK, tfw_arrow_schema_create(layout, &type, NULL));
    CHECK_EQ(11, type->n_children);
    tfw_arrow_layout_free(layout);
    CHECK(strcmp("+w:2147483647", type->children[5]->format) == 0); /* and outlives it */
    CHECK(strcmp("+w:2", type->children[9]->format) == 0);
    CHECK(strcmp("l", type->children[9]->children[0]->format) == 0);
    CHECK(strcmp("l", type->children[10]->format) == 0);
    tfw_arrow_schema_free(type);
    tfw_arrow_schema_free(NULL);
    tfw_arrow_layout_free(NULL);
}

static void test_fields_that_do_not_fit(void) {
    const tfw_arrow_field bad[] = {
        {.name = "no column", .column = FEATURES},
        {.name = "no feature list", .is_list = 1},
        {.name = "strings", .column = BYTES, .strings = -1},
        {.name = "strings", .column = BYTES, .strings = TFW_STRING + 1},
        {.name = "size", .column = PAIRS, SHAPE(3)},
        {.name = "no shape", .column = PAIRS},
        {.name = "int32", .column = VALUES, SHAPE((uint64_t)INT32_MAX + 1)},
        {.name = "flat", .column = VALUES, SHAPE(1 << 16, 1 << 15), .is_flat = 1},
        {.name = "product", .column = VALUES, SHAPE(INT32_MAX, INT32_MAX, INT32_MAX)},
        {.name = "lists of nothing", .column = EMPTY, SHAPE(1 << 16, 1 << 16, 0)},
        {.name = "too long", .column = VALUES, .shape = &(const uint64_t){1}, .rank = UINT64_MAX},
        {.name = "dense", .column = PAIRS, SHAPE(2), PARTITION(.length = 1)},
        {.name = "repeated", .column = ELEMENTS, SHAPE(2), PARTITION(.length = 1)},
        {.name = "kind", .column = VALUES, PARTITION(.kind = -1, .column = NUMBERS)},
        {.name = "kind", .column = VALUES, PARTITION(.kind = 6, .column = NUMBERS)},
        {.name = "scalar", .column = PAIRS, SHAPE(2), .is_scalar = 1},
        {.name = "scalar", .column = ELEMENTS, SHAPE(2), .is_scalar = 1},
        {.name = "scalar", .column = VALUES, .is_scalar = 2},
        {.name = "scalar", .column = VALUES, SHAPE(1), .is_scalar = 1},
        {.name = "scalar", .column = VALUES, PARTITION(.length = 1), .is_scalar = 1},
        {.name = "scalar", .column = VALUES, INDICES(NUMBERS), .is_scalar = 1},
        {.name = "reserved", .column = VALUES, PARTITION(.length = 1, .reserved = 1)},
        {.name = "length", .column = VALUES, PARTITION(.length = 0)},
        {.name = "length", .column = VALUES, PARTITION(.length = (uint64_t)INT64_MAX + 1)},
        {.name = "numbers", .column = VALUES, PARTITION(.kind = 1, .column = FEATURES)},
        {.name = "numbers", .column = VALUES, PARTITION(.kind = 1, .column = FLOATS_TOO)},
        {.name = "numbers", .column = VALUES, PARTITION(.kind = 1, .column = PAIRS)},
        {.name = "sparse", .column = PAIRS, INDICES(NUMBERS)},
        {.name = "sparse", .column = VALUES, INDICES(FLOATS_TOO)},
        {.name = "sparse", .column = VALUES, INDICES(NUMBERS, PAIRS)},
        {.name = "sparse", .column = VALUES, INDICES(NUMBERS), SHAPE(1)},
        {.name = "sparse", .column = VALUES, INDICES(NUMBERS), PARTITION(.length = 1)},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const tfw_arrow_field fields[] = {{.name = "good", .column = VALUES}, bad[i]};
        const bool memory = bad[i].rank == UINT64_MAX;
        tfw_schema *schema = new_schema();
        tfw_arrow_layout *layout;
        tfw_error error;
        CHECK_EQ(memory ? TFW_E_MEMORY : TFW_E_ARGUMENT,
                 tfw_arrow_layout_create(fields, 2, schema, NULL, 0, &layout, &error));
        CHECK(layout == NULL);
        CHECK_EQ(memory ? -1 : 1, error.feature);
        CHECK_EQ(memory ? TFW_E_MEMORY : TFW_E_ARGUMENT,
                 tfw_arrow_layout_create(fields, 2, schema, NULL, 0, &layout, NULL));
        tfw_schema_free(schema); /* which it did not take */
    }
}

static void test_schemas_that_do_not_fit(void) {
    const tfw_arrow_field sparse = {.name = "s", .column = VALUES, .is_list = 1, INDICES(NUMBERS)};
    tfw_schema *schema = new_schema();
    tfw_arrow_layout *layout;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_layout_create(NULL, 0, NULL, NULL, 0, &layout, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_layout_create(NULL, 0, schema, schema, 0, &layout, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_layout_create(NULL, 0, schema, NULL, 8, &layout, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_layout_create(&sparse, 1, NULL, schema, TFW_ARROW_SEQUENCE,
                                                     &layout, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(NULL, 0, NULL, NULL, TFW_ARROW_SEQUENCE, &layout,
                                             NULL));
    tfw_arrow_layout_free(layout);
    tfw_schema_free(schema);
}

/* ---- Arrays --------------------------------------------------------------------------------- */

static const tfw_arrow_field FIELDS[] = {
    {.name = "d", .column = PAIRS, SHAPE(2)},
    {.name = "s", .column = BYTES, .strings = TFW_STRING},
    {.name = "v", .column = VALUES},
    {.name = "rows", .column = VALUES, PARTITION(.kind = TFW_ROW_SPLITS, .column = NUMBERS)},
    {.name = "sparse", .column = FLOATS_TOO, INDICES(NUMBERS, VALUES)},
    {.name = "r", .column = ELEMENTS, SHAPE(2)},
    {.name = "e", .column = EMPTY, SHAPE(3, 0)},
};
enum { FIELD_COUNT = sizeof FIELDS / sizeof FIELDS[0] };

static tfw_chunk *chunk_of_one(const tfw_schema *schema) {
    const blob message = EXAMPLE(entry("d", INTS(1, 2)), entry("s", STRING("text")),
                                 entry("v", INTS(1, 2)), entry("p", INTS(0, 2)),
                                 entry("f", FLOATS(1, 2)), entry("e", NO_INTS));
    file f = {0};
    file_append_record(&f, message.data, message.len);
    tfw_chunk *chunk = chunk_of(schema, NULL, &f);
    free(f.data);
    blobs_free();
    return chunk;
}

static void test_no_records_are_an_array(void) {
    static const char *const name = "one";
    tfw_schema *schema = new_schema();
    tfw_arrow_layout *layout;
    struct ArrowArray *array, *shared;
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(FIELDS, FIELD_COUNT, schema, NULL,
                                             TFW_ARROW_POSITIONS, &layout, NULL));
    tfw_chunk *chunk = chunk_of_one(schema);
    CHECK_EQ(TFW_OK, tfw_arrow_chunk_create(layout, chunk, 1, 0, &name, &array, NULL));
    tfw_chunk_release(chunk);
    CHECK_EQ(FIELD_COUNT + 3, array->n_children);
    CHECK_EQ(TFW_OK, tfw_arrow_array_share(array, 0, 0, &shared, NULL));
    for (int64_t i = 0; i < array->n_children; i++) {
        CHECK_EQ(0, shared->children[i]->length);
    }
    CHECK_EQ(2, array->children[2]->n_buffers); /* a list has offsets even so */
    CHECK_EQ(0, *(const int64_t *)array->children[2]->buffers[1]);
    tfw_arrow_array_free(shared);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_array_share(array, 1, 0, &shared, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_array_share(array, 0, 1, &shared, NULL));
    CHECK(shared == NULL);
    tfw_arrow_array_free(array);
    tfw_arrow_array_free(NULL);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    tfw_arrow_layout_free(layout);
}

static void test_every_allocation_may_fail(void) {
    tfw_schema *schema = new_schema();
    tfw_arrow_layout *layout;
    struct ArrowArray *array = NULL;
    struct ArrowSchema *type = NULL;
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(FIELDS, FIELD_COUNT, schema, NULL, 0, &layout, NULL));
    tfw_chunk *chunk = chunk_of_one(schema);
    for (long n = 0; type == NULL || array == NULL; n++) {
        tfwi_test_fail_allocation = n;
        int status = tfw_arrow_schema_create(layout, &type, NULL);
        CHECK_EQ(tfwi_test_fail_allocation < 0 ? TFW_E_MEMORY : TFW_OK, status);
        tfw_arrow_schema_free(type);
        tfwi_test_fail_allocation = n;
        status = tfw_arrow_chunk_create(layout, chunk, 0, 1, NULL, &array, NULL);
        CHECK_EQ(tfwi_test_fail_allocation < 0 ? TFW_E_MEMORY : TFW_OK, status);
        CHECK((array == NULL) == (status != TFW_OK));
        tfw_arrow_array_free(array);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
        tfwi_test_fail_allocation = -1;
    }
    tfw_chunk_release(chunk);
    tfw_arrow_layout_free(layout);
}

int main(void) {
    RUN(test_fields_that_fit);
    RUN(test_fields_that_do_not_fit);
    RUN(test_schemas_that_do_not_fit);
    RUN(test_no_records_are_an_array);
    RUN(test_every_allocation_may_fail);
    return check_report("layouts");
}
