/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Arrow data batch by batch: memory, streams, and what is released. */
#include "arrow_columns.h"

#include <errno.h>

enum { ROOM = 1 << 20 };

static imported t;
static int released_streams;
static int64_t ints[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const void *no_buffers[1];
static const void *int_buffers[2] = {NULL, ints};

/* ---- Memory --------------------------------------------------------------------------------- */

/* Sums up int32s, converted in pieces of the room; how many pieces there were. */
static int sum_in_pieces(size_t room, int64_t expected) {
    static int32_t many[1000];
    static const void *buffers[2] = {NULL, many};
    int pieces = 0;
    int64_t sum = 0;
    for (int32_t i = 0; i < 1000; i++) {
        many[i] = i;
    }
    struct ArrowSchema type = type_of("i", NULL);
    struct ArrowArray array = array_of(1000, 2, buffers, NULL);
    int status = import_one(&t, &type, &array, 1000, room);
    for (; status == TFW_OK; pieces++) {
        for (uint64_t i = 0; i < t.records; i++) {
            sum += ((const int64_t *)t.inputs->values)[i];
        }
        status = tfw_import_next(t.import, room, &t.inputs, &t.records, &t.error);
    }
    CHECK_EQ(TFW_END, status);
    CHECK_EQ(expected, sum);
    tfw_import_free(t.import);
    return pieces;
}

static void test_conversions_take_no_more_than_the_room(void) {
    CHECK_EQ(1000, sum_in_pieces(0, 499500));
    CHECK_EQ(1000, sum_in_pieces(15, 499500));
    CHECK(sum_in_pieces(800, 499500) >= 10);
    CHECK(sum_in_pieces(1 << 20, 499500) <= 2);
    CHECK_EQ(1, sum_in_pieces(SIZE_MAX, 499500));
}

static void test_every_failing_allocation_is_reported(void) {
    static const int32_t narrow[] = {1, 3, 3, 4}, begins[] = {5, 0, 3}, sizes[] = {2, 0, 1};
    struct ArrowSchema element = type_of("l", NULL), *elements[] = {&element};
    struct ArrowArray values = array_of(10, 2, int_buffers, NULL), *children[] = {&values};
    for (int is_view = 0; is_view < 2; is_view++) {
        int status = TFW_E_MEMORY;
        for (long n = 0; status != TFW_OK; n++) {
            struct ArrowSchema type = type_of(is_view ? "+vl" : "+l", elements);
            struct ArrowArray lists =
                is_view ? array_of(3, 3, BUFFERS(NULL, begins, sizes), children)
                        : array_of(3, 2, BUFFERS(NULL, narrow), children);
            tfwi_test_fail_allocation = n;
            status = import_one(&t, &type, &lists, 3, ROOM);
            CHECK(status == TFW_OK || (status == TFW_E_MEMORY && n < 20));
            import_end(&t);
        }
    }
    tfwi_test_fail_allocation = -1;
}

/* ---- Streams -------------------------------------------------------------------------------- */

/* A stream of batches of three ints, and how it fails. */
typedef struct source {
    struct ArrowSchema type, *types[1];
    struct ArrowArray values, *arrays[1];
    int batches;
    int fail_schema;
    int fail_at; /* when so many batches are left */
} source;

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    source *s = stream->private_data;
    if (s->fail_schema == 0) {
        *out = import_as_column ? s->type : type_of("+s", s->types);
    }
    return s->fail_schema > 0 ? s->fail_schema : 0;
}

static int give_batch(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    source *s = stream->private_data;
    if (s->batches == s->fail_at) {
        out->release = release_array; /* after an error nothing was handed over */
        return EIO;
    }
    *out = s->batches-- <= 0  ? (struct ArrowArray){0}
           : import_as_column ? s->values : array_of(3, 1, no_buffers, s->arrays);
    return 0;
}

static const char *say_why(struct ArrowArrayStream *stream) {
    (void)stream;
    return "the disk is gone";
}

static void release_stream(struct ArrowArrayStream *stream) {
    released_streams++;
    stream->release = NULL;
}

static struct ArrowArrayStream stream_of(source *s) {
    s->type = type_of("l", NULL);
    s->types[0] = &s->type;
    s->values = array_of(3, 2, int_buffers, NULL);
    s->arrays[0] = &s->values;
    return (struct ArrowArrayStream){give_schema, give_batch, say_why, release_stream, s};
}

/* Imports a stream to its end; how many records it had. */
static uint64_t import_stream(struct ArrowArrayStream stream, int *out_status) {
    uint64_t records = 0;
    t = (imported){0};
    CHECK_EQ(TFW_OK, (import_as_column ? tfw_import_create_column : tfw_import_create)(
                         &stream, NULL, NULL, &t.import, &t.error));
    CHECK(stream.release == NULL);
    *out_status = tfw_import_schema(t.import, &t.columns, &t.error);
    while (*out_status == TFW_OK) {
        *out_status = tfw_import_next(t.import, ROOM, &t.inputs, &t.records, &t.error);
        records += t.records;
    }
    return records;
}

static void test_streams_are_read_batch_by_batch(void) {
    source s = {.batches = 4, .fail_at = -9};
    int status;
    released_arrays = released_schemas = released_streams = 0;
    CHECK_EQ(12, import_stream(stream_of(&s), &status));
    CHECK_EQ(TFW_END, status);
    CHECK_EQ(4, released_arrays);
    CHECK(strcmp("", tfw_import_message(t.import)) == 0);
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_import_next(t.import, ROOM, &t.inputs, &t.records, &t.error));
    tfw_import_free(t.import);
    CHECK_EQ(4, released_arrays);
    CHECK_EQ(1, released_schemas);
    CHECK_EQ(1, released_streams);
}

static void test_streams_that_fail(void) {
    source late = {.batches = 4, .fail_at = 2};
    int status;
    released_arrays = released_schemas = released_streams = 0;
    CHECK_EQ(6, import_stream(stream_of(&late), &status));
    CHECK_EQ(TFW_E_IO, status);
    CHECK_EQ(EIO, t.error.os_errno);
    CHECK(strcmp("the disk is gone", tfw_import_message(t.import)) == 0);
    tfw_import_free(t.import);
    CHECK_EQ(2, released_arrays);
    CHECK_EQ(1, released_schemas);
    CHECK_EQ(1, released_streams);
    source early = {.fail_schema = EINVAL};
    import_stream(stream_of(&early), &status);
    CHECK_EQ(TFW_E_IO, status);
    CHECK_EQ(EINVAL, t.error.os_errno);
    tfw_import_free(t.import);
    source none = {.fail_schema = -1}; /* no error, and no schema */
    import_stream(stream_of(&none), &status);
    CHECK_EQ(TFW_E_ARGUMENT, status);
    tfw_import_free(t.import);
    struct ArrowArrayStream bare = {.release = release_stream};
    import_stream(bare, &status);
    CHECK_EQ(TFW_E_ARGUMENT, status);
    tfw_import_free(t.import);
    CHECK_EQ(4, released_streams);
    CHECK_EQ(1, released_schemas);
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        import_as_column = i != 0;
        RUN(test_conversions_take_no_more_than_the_room);
        RUN(test_every_failing_allocation_is_reported);
        RUN(test_streams_are_read_batch_by_batch);
        RUN(test_streams_that_fail);
    }
    return check_report("import of streams");
}
