/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow data as tests make it: structs whose release is counted. */
#ifndef TFWIRE_TESTS_ARROW_COLUMNS_H
#define TFWIRE_TESTS_ARROW_COLUMNS_H

#include "check.h"

#include "arrow/abi.h"

#define BUFFERS(...) (const void *[]){__VA_ARGS__}

static int released_schemas, released_arrays;

/* ---- Schemas -------------------------------------------------------------------------------- */

static inline void release_schema(struct ArrowSchema *schema) {
    released_schemas++;
    schema->release = NULL;
}

static inline void release_array(struct ArrowArray *array) {
    released_arrays++;
    array->release = NULL;
}

/* A type with at most one child. Nothing of it is freed: it points to what the test has. */
static inline struct ArrowSchema type_of(const char *format, struct ArrowSchema **child) {
    return (struct ArrowSchema){.format = format, .name = "x", .n_children = child != NULL,
                                .children = child, .release = release_schema};
}

/* ---- Arrays --------------------------------------------------------------------------------- */

/* An array that owns nothing. */
static inline struct ArrowArray array_of(int64_t length, int64_t n_buffers, const void **buffers,
                                         struct ArrowArray **child) {
    return (struct ArrowArray){.length = length, .n_buffers = n_buffers, .buffers = buffers,
                               .n_children = child != NULL, .children = child,
                               .release = release_array};
}

/* ---- Importing ------------------------------------------------------------------------------ */

typedef struct imported {
    tfw_import *import;
    size_t columns;
    const tfw_input *inputs;
    uint64_t records;
    tfw_error error;
} imported;

static bool import_as_column; /* the column alone, with all of its records, not in a table */
static bool import_levels;    /* the lengths of its lists are kept */
static bool import_field;     /* the column is the field of a struct; with import_levels */

/* Imports one column, x, and the first records of it; the status of what came last. */
static inline int import_one(imported *t, struct ArrowSchema *type, struct ArrowArray *array,
                             int64_t records, size_t room) {
    static const void *no_buffers[1] = {NULL};
    static struct ArrowSchema *types[1], *structs[1], outer;
    static struct ArrowArray *arrays[1], *of_structs[1], of_outer;
    types[0] = type;
    arrays[0] = array;
    structs[0] = &outer;
    of_structs[0] = &of_outer;
    outer = type_of("+s", types);
    of_outer = array_of(records, 1, no_buffers, arrays);
    struct ArrowSchema schema = import_as_column ? *type
                                                 : type_of("+s", import_field ? structs : types);
    struct ArrowArray batch = import_as_column
                                  ? *array
                                  : array_of(records, 1, no_buffers,
                                             import_field ? of_structs : arrays);
    const int schemas = released_schemas, batches = released_arrays;
    *t = (imported){0};
    int status = (import_as_column ? tfw_import_create_column : tfw_import_create)(
        NULL, &schema, &batch, &t->import, &t->error);
    if (status == TFW_OK) {
        CHECK(schema.release == NULL && batch.release == NULL);
        status = tfw_import_schema(t->import, &t->columns, &t->error);
    }
    if (status == TFW_OK) {
        CHECK_EQ(1, t->columns);
        CHECK(strcmp(import_as_column ? "" : "x", tfw_import_name(t->import, 0)) == 0);
        status = import_levels ? tfw_import_nest(t->import, 0, &t->error) : TFW_OK;
    }
    if (status == TFW_OK) {
        status = tfw_import_next(t->import, room, &t->inputs, &t->records, &t->error);
    }
    CHECK_EQ(schemas, released_schemas);
    CHECK_EQ(batches + (status == TFW_END), released_arrays);
    return status;
}

static inline void import_end(imported *t) {
    const int schemas = released_schemas, batches = released_arrays;
    const bool was_made = t->import != NULL;
    tfw_import_free(t->import);
    CHECK_EQ(schemas + was_made, released_schemas);
    CHECK_EQ(batches + was_made, released_arrays);
}

#endif /* TFWIRE_TESTS_ARROW_COLUMNS_H */
