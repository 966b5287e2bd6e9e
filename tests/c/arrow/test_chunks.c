/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of pipelines as arrays, and streams of several threads: the same arrays come, whatever the
 * threads and ranges. They outlive all else, any thread releases them, and a forked child may. */
#include "arrow_records.h"
#include "fork.h"

#include "arrow/export.h"

#include <errno.h>
#include <pthread.h>

static const uint32_t thread_counts[] = {1, 2, 3, 8};

enum { FILES = 3 };

static const char *const names[] = {"one", "two", "three"};

/* ---- Chunks --------------------------------------------------------------------------------- */

static tfw_pipeline *open_pipeline(const tfw_arrow_layout *layout, const char *path,
                                   uint32_t threads, uint64_t range_bytes, uint64_t batch_size) {
    const char *const paths[FILES] = {path, path, path};
    const tfw_pipeline_options options = {
        .size = sizeof options, .paths = paths, .path_count = FILES, .context = layout->context,
        .batch_size = batch_size, .range_bytes = range_bytes, .num_threads = threads,
        .flags = TFW_PIPELINE_NOTE_ABSENT | TFW_PIPELINE_POSITIONS};
    tfw_pipeline *p;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    return p;
}

/* Checks that an array holds the records from number first of all files on, and where they are. */
static void check_records(const struct ArrowArray *array, int64_t first) {
    const struct ArrowArray *paths = array->children[5], *numbers = array->children[6];
    const int64_t *ends = paths->dictionary->buffers[1];
    const char *text = paths->dictionary->buffers[2];
    for (int64_t i = 0; i < array->length; i++) {
        const int64_t number = (first + i) % RECORDS, file = (first + i) / RECORDS;
        const int32_t name = ((const int32_t *)paths->buffers[1])[i];
        const size_t len = (size_t)(ends[name + 1] - ends[name]);
        CHECK(len == strlen(names[file]) && memcmp(text + ends[name], names[file], len) == 0);
        CHECK_EQ(number, ((const int64_t *)numbers->buffers[1])[i]);
    }
}

/* The same, of records of one file, of which n is the number. */
static void check_values(const struct ArrowArray *array, int64_t first) {
    if (first / RECORDS == (first + array->length - 1) / RECORDS) {
        check_array(array, first % RECORDS);
    }
}

static void check_chunk(const tfw_arrow_layout *layout, const tfw_chunk *chunk,
                        uint64_t batch_size, int64_t *done) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    for (uint64_t first = 0, count; first < info.records; first += count) {
        struct ArrowArray *array;
        count = info.records - first < batch_size ? info.records - first : batch_size;
        CHECK_EQ(TFW_OK, tfw_arrow_chunk_create(layout, chunk, first, count,
                                                names + info.begin.file, &array, NULL));
        CHECK_EQ(count, array->length);
        check_records(array, *done);
        check_values(array, *done);
        *done += array->length;
        tfw_arrow_array_free(array);
    }
}

static void chunks_become_arrays(void) {
    static const uint64_t ranges[] = {60, 700, 0}, sizes[] = {1, 7, RECORDS, 1000};
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    for (size_t i = 0; i < COUNT(thread_counts) * COUNT(ranges) * COUNT(sizes); i++) {
        const uint64_t batch_size = sizes[i % COUNT(sizes)];
        tfw_arrow_layout *layout;
        tfw_chunk *chunk;
        int64_t done = 0;
        CHECK_EQ(TFW_OK, layout_of_records(TFW_ARROW_POSITIONS, (int32_t)i % 4, &layout));
        tfw_pipeline *p = open_pipeline(layout, s.path, thread_counts[i / 4 % 4],
                                        ranges[i / 16], batch_size);
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            check_chunk(layout, chunk, batch_size, &done);
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(FILES * RECORDS, done);
        tfw_pipeline_free(p);
        tfw_arrow_layout_free(layout);
        CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    }
    close(s.fd);
    free(f.data);
}

/* The error says which record of the chunk, and where that is. */
static void a_record_that_does_not_fit_has_a_place(void) {
    file f = file_of_records(20, SIZE_MAX);
    const blob message = EXAMPLE(entry("n", INTS(20)), entry("s", STRING("\xff")));
    file_append_record(&f, message.data, message.len);
    blobs_free();
    stored s = store(&f);
    tfw_arrow_layout *layout;
    struct ArrowArray *array;
    tfw_chunk *chunk;
    tfw_place place;
    tfw_error error;
    CHECK_EQ(TFW_OK, layout_of_records(0, TFW_STRING, &layout));
    tfw_pipeline *p = open_pipeline(layout, s.path, 2, 0, 1000);
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    CHECK_EQ(TFW_E_WIRE, tfw_arrow_chunk_create(layout, chunk, 25, 30, NULL, &array, &error));
    CHECK_EQ(1, error.feature);
    CHECK_EQ(41 - 25, error.record);
    tfw_chunk_place(chunk, 41, &place);
    CHECK_EQ(1, place.file);
    CHECK_EQ(20, place.record);
    CHECK_EQ(TFW_OK, tfw_arrow_chunk_create(layout, chunk, 21, 20, NULL, &array, &error));
    check_array(array, 0);
    tfw_arrow_array_free(array);
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    tfw_arrow_layout_free(layout);
    close(s.fd);
    free(f.data);
}

static void chunks_of_something_else_are_refused(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    tfw_arrow_layout *layout, *other;
    struct ArrowArray *array;
    tfw_chunk *chunk;
    CHECK_EQ(TFW_OK, layout_of_records(TFW_ARROW_POSITIONS, 0, &layout));
    CHECK_EQ(TFW_OK, layout_of_records(0, 0, &other));
    tfw_pipeline *p = open_pipeline(layout, s.path, 1, 0, RECORDS);
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    const struct {
        const tfw_arrow_layout *layout;
        uint64_t first, count;
        const char *const *names;
    } cases[] = {
        {other, 0, 1, names},
        {layout, 0, 1, NULL},
        {layout, 0, FILES * RECORDS + 1, names},
        {layout, UINT64_MAX, 2, names},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_EQ(TFW_E_ARGUMENT,
                 tfw_arrow_chunk_create(cases[i].layout, chunk, cases[i].first, cases[i].count,
                                        cases[i].names, &array, NULL));
        CHECK(array == NULL);
    }
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    tfw_arrow_layout_free(layout);
    tfw_arrow_layout_free(other);
    close(s.fd);
    free(f.data);
}

/* ---- Streams -------------------------------------------------------------------------------- */

enum { MANY = 2000 };

/* A stream over a file that is listed again and again: several ranges of small files. */
static struct ArrowArrayStream *open_many(const char *path, uint32_t threads, size_t batch_size) {
    static const char *paths[MANY], *many[MANY];
    tfw_arrow_layout *layout;
    struct ArrowArrayStream *stream;
    for (size_t i = 0; i < MANY; i++) {
        paths[i] = path;
        many[i] = "the file";
    }
    const tfw_arrow_stream_options options = {.size = sizeof options, .batch_size = batch_size,
                                              .paths = paths, .names = many, .path_count = MANY,
                                              .num_threads = threads};
    CHECK_EQ(TFW_OK, layout_of_records(TFW_ARROW_POSITIONS, TFW_LARGE_BINARY, &layout));
    CHECK_EQ(TFW_OK, tfw_arrow_stream_create(layout, &options, &stream, NULL));
    tfw_arrow_layout_free(layout);
    return stream;
}

static void *release_array(void *array) {
    tfw_arrow_array_free(array);
    return NULL;
}

static void streams_of_threads(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    for (size_t i = 0; i < COUNT(thread_counts); i++) {
        struct ArrowArrayStream *stream = open_many(s.path, thread_counts[i], 64);
        struct ArrowArray array;
        int64_t done = 0;
        while (stream->get_next(stream, &array) == 0 && array.release != NULL) {
            CHECK_EQ(done + 64 <= MANY * RECORDS ? 64 : MANY * RECORDS - done, array.length);
            check_values(&array, done);
            CHECK_EQ(done % RECORDS, ((const int64_t *)array.children[6]->buffers[1])[0]);
            done += array.length;
            array.release(&array);
        }
        CHECK_EQ(MANY * RECORDS, done);
        end_stream(stream);
    }
    close(s.fd);
    free(f.data);
}

/* Arrays of a stream that is gone, released by other threads while it is read, and after. */
static void any_thread_releases_arrays(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    pthread_t threads[16];
    struct ArrowArray *arrays[COUNT(threads)];
    struct ArrowArrayStream *stream = open_many(s.path, 3, 1000);
    for (size_t i = 0; i < COUNT(threads); i++) {
        arrays[i] = calloc(1, sizeof *arrays[i]);
        CHECK_EQ(0, stream->get_next(stream, arrays[i]));
        if (i % 2 == 0) {
            CHECK_EQ(0, pthread_create(&threads[i], NULL, release_array, arrays[i]));
        }
    }
    tfw_arrow_stream_free(stream);
    for (size_t i = 1; i < COUNT(threads); i += 2) {
        CHECK_EQ(1000, arrays[i]->length);
        CHECK_EQ(1000 * (int64_t)i % RECORDS,
                 ((const int64_t *)arrays[i]->children[0]->buffers[1])[0]);
        CHECK_EQ(0, pthread_create(&threads[i], NULL, release_array, arrays[i]));
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        CHECK_EQ(0, pthread_join(threads[i], NULL));
    }
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    close(s.fd);
    free(f.data);
}

/* A child reads arrays and releases them; a stream whose threads are the parent's says so. */
static void a_forked_child_releases_arrays(void) {
    file f = file_of_records(RECORDS, SIZE_MAX);
    stored s = store(&f);
    struct ArrowArrayStream *stream = open_many(s.path, 2, 1000);
    struct ArrowArray array, next;
    for (int i = 0; i < 90; i++) { /* the threads run */
        CHECK_EQ(0, stream->get_next(stream, &array));
        if (i != 89) {
            array.release(&array);
        }
    }
    const pid_t child = fork();
    if (child == 0) {
        int number = 0;
        while (number == 0 && (number = stream->get_next(stream, &next)) == 0) {
            if (next.release == NULL) {
                end_child(false); /* it has read on by itself */
            }
            next.release(&next); /* of a chunk that was there */
        }
        const char *expected = "the file: the pipeline is of the parent process";
        bool good = number == EINVAL && strcmp(stream->get_last_error(stream), expected) == 0;
        good = good && ((const int64_t *)array.children[0]->buffers[1])[999] == RECORDS - 1;
        array.release(&array);
        tfw_arrow_stream_free(stream);
        end_child(good);
    }
    check_child(child);
    CHECK_EQ(0, stream->get_next(stream, &next));
    CHECK_EQ(1000, next.length);
    next.release(&next);
    array.release(&array);
    tfw_arrow_stream_free(stream);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    close(s.fd);
    free(f.data);
}

int main(void) {
    RUN(chunks_become_arrays);
    RUN(a_record_that_does_not_fit_has_a_place);
    RUN(chunks_of_something_else_are_refused);
    RUN(streams_of_threads);
    RUN(any_thread_releases_arrays);
    RUN(a_forked_child_releases_arrays);
    return check_report("chunks as arrays");
}
