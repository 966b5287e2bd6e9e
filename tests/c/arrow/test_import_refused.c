/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Arrow data that are refused: schemas, arrays and streams that are not as Arrow says. */
#include "arrow_columns.h"

#include <errno.h>

enum { ROOM = 1 << 20 };

static imported t;
static const void *no_buffers[1];
static int64_t ints[] = {0, 1, 2, 3};

/* ---- Tables --------------------------------------------------------------------------------- */

/* What becomes of a table, given as a schema and an array; both are released. */
static int import_table(struct ArrowSchema schema, struct ArrowArray array) {
    const int schemas = released_schemas, arrays = released_arrays;
    t = (imported){0};
    CHECK_EQ(TFW_OK, tfw_import_create(NULL, &schema, &array, &t.import, &t.error));
    int status = tfw_import_schema(t.import, &t.columns, &t.error);
    if (status == TFW_OK) {
        status = tfw_import_next(t.import, ROOM, &t.inputs, &t.records, &t.error);
    } else {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_import_schema(t.import, &t.columns, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_import_next(t.import, ROOM, &t.inputs, &t.records, NULL));
    }
    CHECK(strcmp("", tfw_import_name(t.import, 7)) == 0);
    tfw_import_free(t.import);
    CHECK_EQ(schemas + 1, released_schemas);
    CHECK_EQ(arrays + 1, released_arrays);
    return status;
}

static void test_schemas_that_are_no_tables(void) {
    struct ArrowSchema column = type_of("l", NULL), *columns[] = {&column}, *missing[] = {NULL};
    struct ArrowArray values = array_of(4, 2, BUFFERS(NULL, ints), NULL), *arrays[] = {&values};
    const struct ArrowArray batch = array_of(4, 1, no_buffers, arrays);
    const struct ArrowSchema good = type_of("+s", columns);
    struct ArrowSchema bad[] = {good, good, good, good, good, good, good};
    static const int expected[] = {TFW_E_UNSUPPORTED, TFW_E_UNSUPPORTED, TFW_E_UNSUPPORTED,
                                   TFW_E_ARGUMENT,    TFW_E_ARGUMENT,    TFW_E_ARGUMENT,
                                   TFW_E_ARGUMENT};
    CHECK_EQ(TFW_OK, import_table(good, batch));
    bad[0].format = NULL;
    bad[1].format = "l";
    bad[2].dictionary = &column;
    bad[3].n_children = -1;
    bad[4].n_children = (1 << 20) + 1;
    bad[5].children = NULL;
    bad[6].children = missing;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(expected[i], import_table(bad[i], batch));
        CHECK_EQ(i == 6 ? 0 : -1, t.error.feature);
    }
    column.name = NULL; /* the name of a column may be missing */
    CHECK_EQ(TFW_OK, import_table(good, batch));
    column.format = NULL;
    CHECK_EQ(TFW_E_ARGUMENT, import_table(good, batch));
}

static void test_batches_that_are_not_as_their_schema(void) {
    const uint8_t some = 5, all = 0x1f;
    struct ArrowSchema column = type_of("l", NULL), *columns[] = {&column};
    struct ArrowArray values = array_of(4, 2, BUFFERS(NULL, ints), NULL), *arrays[] = {&values};
    struct ArrowArray *missing[] = {NULL};
    const struct ArrowSchema schema = type_of("+s", columns);
    const struct ArrowArray good = array_of(3, 1, no_buffers, arrays);
    struct ArrowArray bad[] = {good, good, good, good, good, good};
    bad[0].n_children = 0;
    bad[1].children = NULL;
    bad[2].children = missing;
    bad[3].offset = 2;
    bad[4].null_count = 1;
    bad[5].buffers = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(TFW_E_ARGUMENT, import_table(schema, bad[i]));
    }
    struct ArrowArray with_nulls = good;
    with_nulls.null_count = -1;
    with_nulls.buffers = BUFFERS(&some);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_table(schema, with_nulls));
    with_nulls.buffers = BUFFERS(&all);
    with_nulls.offset = 1;
    CHECK_EQ(TFW_OK, import_table(schema, with_nulls));
    CHECK_EQ(3, t.records);
}

static void test_tables_that_are_missing(void) {
    struct ArrowSchema schema = type_of("+s", NULL), gone = schema;
    struct ArrowArray array = array_of(0, 1, no_buffers, NULL), ended = array;
    struct ArrowArrayStream stream = {.release = NULL};
    tfw_import *import;
    gone.release = NULL;
    ended.release = NULL;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, NULL, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, &schema, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, NULL, &array, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, &gone, &array, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, &schema, &ended, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(&stream, NULL, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(&stream, &schema, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(&stream, NULL, &array, &import, NULL));
    CHECK(import == NULL && schema.release != NULL && array.release != NULL);
    tfw_import_free(NULL);
}

/* ---- Types ---------------------------------------------------------------------------------- */

static void test_dictionaries_that_cannot_be(void) {
    static const struct {
        const char *indices, *values;
        int status;
    } types[] = {
        {"f", "l", TFW_E_ARGUMENT},     {"b", "l", TFW_E_ARGUMENT},  {"?", "l", TFW_E_ARGUMENT},
        {"c", "tdD", TFW_E_UNSUPPORTED}, {"c", NULL, TFW_E_ARGUMENT}, {"+l", "l", TFW_E_ARGUMENT},
        {"c", "+l", TFW_E_UNSUPPORTED}, {"c", "l", TFW_OK},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct ArrowSchema values = type_of(types[i].values, NULL);
        struct ArrowSchema type = type_of(types[i].indices, NULL);
        struct ArrowArray dictionary = array_of(4, 2, BUFFERS(NULL, ints), NULL);
        struct ArrowArray array = array_of(2, 2, BUFFERS(NULL, "\0\1"), NULL);
        type.dictionary = &values;
        array.dictionary = &dictionary;
        CHECK_EQ(types[i].status, import_one(&t, &type, &array, 2, ROOM));
        import_end(&t);
        array.dictionary = NULL;
        CHECK(import_one(&t, &type, &array, 2, ROOM) != TFW_OK);
        import_end(&t);
        values.dictionary = &values;
        CHECK(import_one(&t, &type, &array, 2, ROOM) != TFW_OK);
        import_end(&t);
    }
}

static void test_lists_whose_type_is_not_whole(void) {
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element, &element};
    struct ArrowArray array = array_of(1, 2, BUFFERS(NULL, ints), NULL);
    struct ArrowSchema type = type_of("+l", elements);
    type.children = NULL;
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
    type = type_of("+l", elements);
    type.n_children = 2;
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
    type = type_of("+w", elements);
    CHECK_EQ(TFW_E_UNSUPPORTED, import_one(&t, &type, &array, 1, ROOM));
    import_end(&t);
}

/* ---- Sizes ---------------------------------------------------------------------------------- */

static int import_values(const char *format, struct ArrowArray array) {
    struct ArrowSchema type = type_of(format, NULL);
    int status = import_one(&t, &type, &array, 1, ROOM);
    import_end(&t);
    return status;
}

static void test_sizes_that_no_memory_holds(void) {
    const int64_t far = INT64_MAX / 64;
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowSchema type = type_of("+w:100", elements);
    struct ArrowArray values = array_of(4, 2, BUFFERS(NULL, ints), NULL), *arrays[] = {&values};
    struct ArrowArray lists = array_of(1, 1, no_buffers, arrays);
    lists.offset = far;
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &lists, 1, ROOM));
    import_end(&t);
    struct ArrowArray array = array_of(1, 2, BUFFERS(NULL, ints), NULL);
    array.offset = far;
    CHECK_EQ(TFW_E_ARGUMENT, import_values("w:100", array));
    array = array_of(far + 1, 2, BUFFERS(NULL, ints), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_values("l", array));
    array = array_of(1, (int64_t)INT32_MAX + 1, BUFFERS(NULL, ints), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_values("vz", array));
    array = array_of(1, 2, BUFFERS(NULL, ints), NULL);
    CHECK_EQ(TFW_E_ARGUMENT, import_values("vz", array));
    array.null_count = 2;
    CHECK_EQ(TFW_E_ARGUMENT, import_values("l", array));
}

/* A record of 2 GiB and more, of strings that lie over each other. */
static void test_messages_beyond_protobuf_are_refused(void) {
    static uint8_t views[4 * 16];
    static const int32_t begins[] = {0}, sizes[] = {4};
    const int32_t len = INT32_MAX / 2;
    const int64_t lens[] = {INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        memcpy(views + i * 16, &len, sizeof len);
    }
    struct ArrowSchema element = type_of("vz", NULL), *elements[] = {&element};
    struct ArrowSchema type = type_of("+vl", elements);
    struct ArrowArray strings = array_of(4, 4, BUFFERS(NULL, views, "never read", lens), NULL);
    struct ArrowArray *children[] = {&strings};
    struct ArrowArray lists = array_of(1, 3, BUFFERS(NULL, begins, sizes), children);
    CHECK_EQ(TFW_E_ARGUMENT, import_one(&t, &type, &lists, 1, ROOM));
    CHECK(strstr(t.error.text, "2 GiB") != NULL);
    import_end(&t);
}

static void test_strings_that_lie_are_refused(void) {
    static const int32_t decrease[] = {0, 3, 2}, negative[] = {-1, 0, 0}, good[] = {1, 2, 3};
    static const int32_t nothing[] = {5, 5, 5};
    static const struct {
        const int32_t *offsets;
        const char *bytes;
        int status;
    } cases[] = {
        {decrease, "abc", TFW_E_ARGUMENT}, {negative, "abc", TFW_E_ARGUMENT},
        {good, NULL, TFW_E_ARGUMENT},      {good, "abc", TFW_OK},
        {nothing, NULL, TFW_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ArrowSchema type = type_of("z", NULL);
        struct ArrowArray array =
            array_of(2, 3, BUFFERS(NULL, cases[i].offsets, cases[i].bytes), NULL);
        CHECK_EQ(cases[i].status, import_one(&t, &type, &array, 2, ROOM));
        CHECK(cases[i].status == TFW_OK || t.error.record >= 0);
        import_end(&t);
    }
}

/* ---- Streams -------------------------------------------------------------------------------- */

static const char *say_nothing(struct ArrowArrayStream *stream) {
    (void)stream;
    return NULL;
}

static int fail_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    (void)stream;
    (void)out;
    return ENOMEM;
}

static int fail_batch(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    (void)stream;
    (void)out;
    return EIO;
}

static void release_stream(struct ArrowArrayStream *stream) { stream->release = NULL; }

static void test_streams_without_functions_or_words(void) {
    struct ArrowArrayStream bare[] = {
        {fail_schema, NULL, say_nothing, release_stream, NULL},
        {fail_schema, fail_batch, say_nothing, release_stream, NULL},
        {fail_schema, fail_batch, NULL, release_stream, NULL},
    };
    for (size_t i = 0; i < 3; i++) {
        t = (imported){0};
        CHECK_EQ(TFW_OK, tfw_import_create(&bare[i], NULL, NULL, &t.import, NULL));
        CHECK_EQ(i == 0 ? TFW_E_ARGUMENT : TFW_E_IO,
                 tfw_import_schema(t.import, &t.columns, i == 1 ? &t.error : NULL));
        CHECK(strcmp("", tfw_import_message(t.import)) == 0);
        CHECK_EQ(i == 1 ? ENOMEM : 0, t.error.os_errno);
        tfw_import_free(t.import);
    }
}

int main(void) {
    RUN(test_schemas_that_are_no_tables);
    RUN(test_batches_that_are_not_as_their_schema);
    RUN(test_tables_that_are_missing);
    RUN(test_dictionaries_that_cannot_be);
    RUN(test_lists_whose_type_is_not_whole);
    RUN(test_sizes_that_no_memory_holds);
    RUN(test_messages_beyond_protobuf_are_refused);
    RUN(test_strings_that_lie_are_refused);
    RUN(test_streams_without_functions_or_words);
    return check_report("import of what is refused");
}
