/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and files as Arrow data: the values, the nulls, who owns what, and every allocation that
 * fails. tfwi_test_buffers counts the buffers that live. */
#include "arrow_records.h"

#include "arrow/export.h"

#include <errno.h>
#include <pthread.h>

/* ---- What arrives --------------------------------------------------------------------------- */

static void files_become_arrays(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    for (int32_t strings = TFW_LARGE_BINARY; strings <= TFW_STRING; strings++) {
        for (size_t batch_size = 1; batch_size < 60; batch_size += 7) {
            tfw_arrow_layout *layout;
            struct ArrowArrayStream *stream;
            struct ArrowArray array;
            int64_t first = 0;
            CHECK_EQ(TFW_OK, layout_of_records(TFW_ARROW_POSITIONS, strings, &layout));
            CHECK_EQ(TFW_OK, open_stream(layout, s.path, batch_size, &stream));
            tfw_arrow_layout_free(layout); /* the stream has its share */
            while (stream->get_next(stream, &array) == 0 && array.release != NULL) {
                const int64_t *records = array.children[6]->buffers[1];
                CHECK_EQ(8, array.n_children);
                CHECK_EQ(first, records[0]);
                check_array(&array, first);
                first += array.length;
                array.release(&array);
                CHECK(array.release == NULL);
            }
            CHECK_EQ(RECORDS, first);
            end_stream(stream);
        }
    }
    close(s.fd);
    free(f.data);
}

static void errors_come_after_the_records_before(void) {
    file f = file_of_records(RECORDS, 31);
    stored s = store(&f);
    for (size_t batch_size = 1; batch_size < 60; batch_size += 7) {
        tfw_arrow_layout *layout;
        struct ArrowArrayStream *stream;
        struct ArrowArray array;
        int64_t first = 0;
        int status;
        CHECK_EQ(TFW_OK, layout_of_records(0, TFW_LARGE_BINARY, &layout));
        CHECK_EQ(TFW_OK, open_stream(layout, s.path, batch_size, &stream));
        while ((status = stream->get_next(stream, &array)) == 0 && array.release != NULL) {
            check_array(&array, first);
            first += array.length;
            array.release(&array);
        }
        CHECK_EQ(31, first);
        CHECK_EQ(EINVAL, status);
        CHECK(strcmp(stream->get_last_error(stream),
                     "the file: record 31: Key: n.  Data types don't match. "
                     "Data type: float32 but expected type: int64") == 0);
        CHECK_EQ(EINVAL, stream->get_next(stream, &array));
        tfw_arrow_stream_free(stream);
        tfw_arrow_layout_free(layout);
    }
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    close(s.fd);
    free(f.data);
}

/* ---- Who owns what -------------------------------------------------------------------------- */

static struct ArrowArray *array_of_records(size_t count) {
    file f = file_of_records(count, SIZE_MAX);
    stored s = store(&f);
    tfw_arrow_layout *layout;
    struct ArrowArrayStream *stream;
    struct ArrowArray *array = calloc(1, sizeof *array);
    CHECK_EQ(TFW_OK, layout_of_records(TFW_ARROW_POSITIONS, TFW_LARGE_STRING, &layout));
    CHECK_EQ(TFW_OK, open_stream(layout, s.path, count, &stream));
    CHECK_EQ(0, stream->get_next(stream, array));
    tfw_arrow_stream_free(stream);
    tfw_arrow_layout_free(layout);
    close(s.fd);
    free(f.data);
    return array;
}

/* Each share is released once; buffers live as long as one of them. */
static void shares_are_released_in_any_order(void) {
    for (unsigned order = 0; order < 4; order++) {
        struct ArrowArray *array = array_of_records(20), *one, *other;
        const long alone = atomic_load(&tfwi_test_buffers);
        CHECK(alone > 10);
        CHECK_EQ(TFW_OK, tfw_arrow_array_share(array, 0, 20, &one, NULL));
        CHECK_EQ(TFW_OK, tfw_arrow_array_share(one, 3, 9, &other, NULL));
        CHECK_EQ(alone, atomic_load(&tfwi_test_buffers));
        CHECK(one->children[0]->buffers[1] == array->children[0]->buffers[1]);
        tfw_arrow_array_free((order & 1) != 0 ? array : one);
        check_array(other, 3);
        tfw_arrow_array_free((order & 2) != 0 ? other : (order & 1) != 0 ? one : array);
        CHECK_EQ(alone, atomic_load(&tfwi_test_buffers));
        tfw_arrow_array_free((order & 2) == 0 ? other : (order & 1) != 0 ? one : array);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    }
}

/* A consumer may move a child to a place of its own, and release all others. */
static void children_may_be_moved(void) {
    struct ArrowArray *array = array_of_records(20);
    struct ArrowArray child = *array->children[2];
    array->children[2]->release = NULL;
    tfw_arrow_array_free(array);
    CHECK_EQ(20, child.length);
    CHECK_EQ(1, list_length(&child, 1));
    CHECK_EQ(1, ((const int64_t *)child.children[0]->buffers[1])[0]);
    child.release(&child);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

/* Returns NULL. Checks are counted, and threads would race for the counter. */
static void *share_and_release(void *array) {
    void *failed = NULL;
    for (int i = 0; i < 2000; i++) {
        struct ArrowArray *shared;
        if (tfw_arrow_array_share(array, 0, 20, &shared, NULL) != TFW_OK) {
            failed = array;
        }
        tfw_arrow_array_free(shared);
    }
    return failed;
}

static void threads_share_buffers(void) {
    struct ArrowArray *array = array_of_records(20);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, share_and_release, array));
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed;
        CHECK_EQ(0, pthread_join(threads[i], &failed));
        CHECK(failed == NULL);
    }
    check_array(array, 0);
    tfw_arrow_array_free(array);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

/* Arrays, and an error after them, instead of files. */
static void streams_deliver_given_arrays(void) {
    struct ArrowArray *given = array_of_records(20), *const arrays[] = {given, given};
    const tfw_arrow_stream_options options = {
        .size = sizeof options, .batch_size = 1, .arrays = arrays, .array_count = 2,
        .message = "the reason", .os_errno = ENOENT};
    for (unsigned read = 0; read < 4; read++) {
        tfw_arrow_layout *layout;
        struct ArrowArrayStream *stream;
        struct ArrowArray array;
        struct ArrowSchema schema;
        CHECK_EQ(TFW_OK, layout_of_records(0, TFW_LARGE_BINARY, &layout));
        CHECK_EQ(TFW_OK, tfw_arrow_stream_create(layout, &options, &stream, NULL));
        CHECK_EQ(0, stream->get_schema(stream, &schema));
        CHECK_EQ(5, schema.n_children);
        schema.release(&schema);
        for (unsigned i = 0; i < read && i < 2; i++) {
            CHECK_EQ(0, stream->get_next(stream, &array));
            check_array(&array, 0);
            array.release(&array);
        }
        if (read > 2) {
            CHECK_EQ(ENOENT, stream->get_next(stream, &array));
            CHECK(strcmp("the reason", stream->get_last_error(stream)) == 0);
        }
        tfw_arrow_stream_free(stream);
        tfw_arrow_layout_free(layout);
    }
    tfw_arrow_array_free(given);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

/* ---- Hostile numbers ------------------------------------------------------------------------ */

/* A number that may fit, or is far from it. */
static int64_t odd_number(uint64_t *state) {
    static const int64_t odd[] = {INT64_MIN, -1, INT64_MAX, INT64_MAX - 1, 1 << 24, 1 << 30};
    const uint64_t random = check_random(state);
    return random % 8 == 0 ? odd[random / 8 % COUNT(odd)] : (int64_t)(random / 8 % 5);
}

/* A record of values and of the numbers of two partitions, outer and inner. */
static blob hostile_record(uint64_t *state) {
    int64_t numbers[3][8] = {{0}};
    blob parts[3];
    static const char *const keys[] = {"v", "p", "q"};
    for (size_t k = 0; k < 3; k++) {
        const size_t count = (size_t)(check_random(state) % 6);
        for (size_t i = 0; i < count; i++) {
            numbers[k][i] = odd_number(state);
        }
        parts[k] = entry(keys[k], field(3, field(1, packed_int64s(numbers[k], count))));
        if (check_random(state) % 16 == 0) {
            parts[k] = NOTHING;
        }
    }
    return EXAMPLE(parts[0], parts[1], parts[2]);
}

/* Offsets that never decrease, and end within the child. */
static void check_offsets(const struct ArrowArray *list) {
    const int64_t *offsets = list->buffers[1];
    CHECK_EQ(0, offsets[0]);
    for (int64_t i = 0; i < list->length; i++) {
        CHECK(offsets[i] <= offsets[i + 1]);
    }
    CHECK_EQ(list->children[0]->length, offsets[list->length]);
}

static int export_one(const tfw_partition *partitions, blob message) {
    const tfw_feature features[] = {feature("v", TFW_INT64, TFW_VARIABLE, 0),
                                    feature("p", TFW_INT64, TFW_VARIABLE, 0),
                                    feature("q", TFW_INT64, TFW_VARIABLE, 0)};
    const tfw_arrow_field fields[] = {
        {.name = "rows", .partitions = partitions, .partition_count = 2},
        {.name = "sparse", .index_columns = (const uint64_t[]){1}, .index_count = 1},
    };
    file f = {0};
    tfw_schema *schema;
    tfw_arrow_layout *layout;
    struct ArrowArray *array;
    tfw_error error;
    file_append_record(&f, message.data, message.len);
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 3, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(fields, (message.len & 1) + 1, schema, NULL, 0,
                                             &layout, NULL));
    tfw_chunk *chunk = chunk_of(schema, NULL, &f);
    const int status = tfw_arrow_chunk_create(layout, chunk, 0, 1, NULL, &array, &error);
    if (status == TFW_OK) {
        const struct ArrowArray *list = array->children[0];
        for (; list->n_children != 0; list = list->children[0]) {
            check_offsets(list);
        }
    } else {
        CHECK_EQ(TFW_E_COUNT, status);
        CHECK_EQ(0, error.record);
    }
    tfw_arrow_array_free(array);
    tfw_chunk_release(chunk);
    tfw_arrow_layout_free(layout);
    free(f.data);
    return status;
}

static void hostile_partitions_are_refused(void) {
    uint64_t state = SEED;
    size_t good = 0, bad = 0;
    for (int round = 0; round < 4000; round++) {
        const tfw_partition partitions[] = {
            {.kind = (int32_t)(check_random(&state) % 6), .column = 1, .length = 2},
            {.kind = (int32_t)(check_random(&state) % 6), .column = 2, .length = 2},
        };
        const int status = export_one(partitions, hostile_record(&state));
        good += status == TFW_OK;
        bad += status != TFW_OK;
        blobs_free();
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    }
    CHECK(good > 50 && bad > 1000);
}

/* ---- UTF-8 ---------------------------------------------------------------------------------- */

static bool is_utf8(const char *text, size_t len) {
    const int64_t offsets[] = {0, 0, (int64_t)len};
    size_t wrong = 0;
    const bool good = tfwi_strings_are_utf8((const uint8_t *)text, offsets, 2, &wrong);
    CHECK_EQ(!good, wrong);
    return good;
}

/* Each as it is, cut, with a byte after it that does not belong to it, and after eight others. */
static void characters_are_utf8_by_the_standard(void) {
    static const char *const good[] = {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                                       "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41",
                                      "\xe0\x9f\xbf", "\xe1\x80\x41", "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf", "\xf1\x80\x80\x41",
                                      "\xf1\x41\x80\x80", "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80", "\xff"};
    for (size_t i = 0; i < COUNT(good); i++) {
        char text[16] = "12345678";
        const size_t len = strlen(good[i]);
        strcpy(text + 8, good[i]);
        CHECK(is_utf8(good[i], len) && is_utf8(text, 8 + len));
        for (size_t cut = 1; cut < len; cut++) {
            CHECK(!is_utf8(good[i], cut));
            CHECK(!is_utf8(text, 8 + cut));
        }
        text[8 + len] = '\x80';
        CHECK(!is_utf8(text, 9 + len));
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(!is_utf8(bad[i], strlen(bad[i])));
    }
    CHECK(is_utf8("", 0));
}

/* ---- Memory that is short ------------------------------------------------------------------- */

/* Reads a file; the records that arrived, or -1: some allocation failed. */
static int64_t stream_all(const char *path) {
    tfw_arrow_layout *layout;
    struct ArrowArrayStream *stream = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array = {.release = NULL}, *shared;
    int64_t first = 0;
    bool good = layout_of_records(TFW_ARROW_POSITIONS, TFW_STRING, &layout) == TFW_OK &&
                open_stream(layout, path, 20, &stream) == TFW_OK;
    tfw_arrow_layout_free(layout);
    if (good && (good = stream->get_schema(stream, &schema) == 0)) {
        schema.release(&schema);
    }
    while (good && (good = stream->get_next(stream, &array) == 0) && array.release != NULL) {
        check_array(&array, first);
        first += array.length;
        good = tfw_arrow_array_share(&array, 1, 2, &shared, NULL) == TFW_OK;
        tfw_arrow_array_free(shared);
        array.release(&array);
    }
    tfw_arrow_stream_free(stream);
    return good ? first : -1;
}

/* What a kernel has no memory for, the complete parser tries again: not every failure is one of the
 * stream. */
static void every_allocation_may_fail(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    long n = 0, failures = 0;
    int64_t found;
    do {
        tfwi_test_fail_allocation = n++;
        found = stream_all(s.path);
        CHECK(found == RECORDS || found == -1);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
        failures += found == -1;
    } while (tfwi_test_fail_allocation < 0);
    CHECK_EQ(RECORDS, found);
    CHECK(failures > 100);
    tfwi_test_fail_allocation = -1;
    close(s.fd);
    free(f.data);
}

int main(void) {
    RUN(files_become_arrays);
    RUN(errors_come_after_the_records_before);
    RUN(shares_are_released_in_any_order);
    RUN(children_may_be_moved);
    RUN(threads_share_buffers);
    RUN(streams_deliver_given_arrays);
    RUN(hostile_partitions_are_refused);
    RUN(characters_are_utf8_by_the_standard);
    RUN(every_allocation_may_fail);
    return check_report("export");
}
