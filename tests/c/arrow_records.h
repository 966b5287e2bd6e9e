/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose records become arrays, and what the arrays hold. tfwi_test_buffers counts the buffers
 * that live. */
#ifndef TFWIRE_TESTS_ARROW_RECORDS_H
#define TFWIRE_TESTS_ARROW_RECORDS_H

#include "columns.h"
#include "records.h"

#include "arrow/abi.h"
#include "tfwire_arrow.h"
#include "tfwire_pipeline.h"

#include <stdatomic.h>

extern atomic_long tfwi_test_buffers;

/* ---- Files and layouts ---------------------------------------------------------------------- */

enum { RECORDS = 50 };

/* Record i has n = i; s unless i % 5 == 0; v, of i % 4 values, unless i % 3 == 0; and rows p of v.
 * Every third also has a feature that nobody asks for. */
static inline file file_of_records(size_t count, size_t wrong) {
    file f = {0};
    file_append(&f, "", 0);
    for (size_t i = 0; i < count; i++) {
        const int64_t values[] = {1, 2, 3};
        blob parts = JOIN(entry("n", i == wrong ? FLOATS(1) : INTS((int64_t)i)));
        if (i % 5 != 0) {
            parts = JOIN(parts, entry("s", STRING("text")));
        }
        if (i % 3 != 0) {
            const blob list = field(3, field(1, packed_int64s(values, i % 4)));
            parts = JOIN(entry("v", list), parts, entry("p", INTS((int64_t)(i % 4), 0)));
        } else {
            parts = JOIN(parts, entry("other", INTS(1, 2)));
        }
        const blob message = EXAMPLE(parts);
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    return f;
}

/* A file in memory, and a path that leads to it. */
typedef struct stored {
    int fd;
    char path[64];
} stored;

static inline stored store(const file *f) {
    stored s = {.fd = memfd_create("records", 0)};
    CHECK_EQ(f->len, write(s.fd, f->data, f->len));
    snprintf(s.path, sizeof s.path, "/proc/self/fd/%d", s.fd);
    return s;
}

/* All records of a file that fit, as a chunk. There is one. */
static inline tfw_chunk *chunk_of(const tfw_schema *context, const tfw_schema *lists,
                                  const file *f) {
    stored s = store(f);
    const char *const paths[] = {s.path};
    const tfw_pipeline_options options = {
        .size = sizeof options, .paths = paths, .path_count = 1, .context = context,
        .lists = lists, .batch_size = 1000, .num_threads = 1,
        .flags = TFW_PIPELINE_NOTE_ABSENT | TFW_PIPELINE_KEEP_REST | TFW_PIPELINE_POSITIONS |
                 (lists != NULL ? TFW_SEQUENCE : 0)};
    tfw_pipeline *p;
    tfw_chunk *chunk = NULL;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    for (int status = TFW_E_WIRE, tries = 0; status != TFW_OK && tries < 10; tries++) {
        tfw_place wrong, next;
        status = tfw_pipeline_next(p, -1, &chunk, NULL);
        tfw_pipeline_stopped(p, &wrong, &next);
        CHECK_EQ(TFW_OK, status >= TFW_OK ? TFW_OK : tfw_pipeline_seek(p, &next, NULL));
    }
    tfw_pipeline_free(p);
    close(s.fd);
    return chunk;
}

static inline int layout_of_records(unsigned flags, int32_t strings, tfw_arrow_layout **out) {
    static const tfw_partition rows = {.kind = TFW_ROW_LENGTHS, .column = 3};
    static const uint8_t metadata[4] = {0};
    const tfw_feature features[] = {
        feature("n", TFW_INT64, TFW_DENSE, 1),
        feature("s", TFW_BYTES, TFW_VARIABLE, 0),
        feature("v", TFW_INT64, TFW_VARIABLE, 0),
        feature("p", TFW_INT64, TFW_VARIABLE, 0),
    };
    const tfw_arrow_field fields[] = {
        {.name = "n", .metadata = metadata, .metadata_len = sizeof metadata},
        {.name = "s", .column = 1, .strings = strings},
        {.name = "v", .column = 2},
        {.name = "rows", .column = 2, .partitions = &rows, .partition_count = 1},
        {.name = "sparse", .column = 2, .index_columns = (const uint64_t[]){2, 2},
         .index_count = 2},
    };
    tfw_schema *schema;
    int status = tfw_schema_create(features, COUNT(features), SEED, &schema, NULL);
    *out = NULL;
    if (status == TFW_OK) {
        status = tfw_arrow_layout_create(fields, COUNT(fields), schema, NULL, flags, out, NULL);
        if (status != TFW_OK) {
            tfw_schema_free(schema);
        }
    }
    return status;
}

static inline int open_stream(const tfw_arrow_layout *layout, const char *path, size_t batch_size,
                       struct ArrowArrayStream **out) {
    const char *const paths[] = {path};
    const char *const names[] = {"the file"};
    const tfw_arrow_stream_options options = {.size = sizeof options, .batch_size = batch_size,
                                              .paths = paths, .names = names, .path_count = 1};
    return tfw_arrow_stream_create(layout, &options, out, NULL);
}

/* ---- What arrives --------------------------------------------------------------------------- */

static inline bool is_valid(const struct ArrowArray *array, int64_t i) {
    const uint8_t *bits = array->buffers[0];
    return bits == NULL || (bits[(array->offset + i) / 8] >> (array->offset + i) % 8 & 1) != 0;
}

static inline int64_t list_length(const struct ArrowArray *array, int64_t i) {
    const int64_t *offsets = array->buffers[1];
    return offsets[array->offset + i + 1] - offsets[array->offset + i];
}

/* Checks that an array holds the records from first on. */
static inline void check_array(const struct ArrowArray *array, int64_t first) {
    CHECK_EQ(0, array->offset);
    const int64_t *numbers = array->children[0]->buffers[1];
    for (int64_t i = 0; i < array->length; i++) {
        const int64_t number = first + i;
        const struct ArrowArray *s = array->children[1], *v = array->children[2];
        const struct ArrowArray *rows = array->children[3], *sparse = array->children[4];
        const bool has = number % 3 != 0;
        CHECK_EQ(number, numbers[array->children[0]->offset + i]);
        CHECK_EQ(number % 5 != 0, is_valid(s, i));
        CHECK_EQ(has, is_valid(v, i));
        CHECK_EQ(has, is_valid(rows, i));
        CHECK_EQ(has, is_valid(sparse, i));
        CHECK_EQ(number % 5 != 0, list_length(s, i));
        CHECK_EQ(has ? number % 4 : 0, list_length(v, i));
        CHECK_EQ(has ? 2 : 0, list_length(rows, i));
    }
}

/* Frees a stream that has come to its end, at which it stays, after its arrays. */
static inline void end_stream(struct ArrowArrayStream *stream) {
    struct ArrowArray array;
    CHECK_EQ(0, stream->get_next(stream, &array));
    CHECK(array.release == NULL);
    tfw_arrow_stream_free(stream);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
}

#endif /* TFWIRE_TESTS_ARROW_RECORDS_H */
