/* SPDX-License-Identifier: Apache-2.0 */
/* What threads may share: the choice of the checksum kernel, a schema, a file, and offsets of its
 * records; for ThreadSanitizer (make check-threads). pipeline/test_thread_columns.c races what
 * makes and reads messages. */
#include "race.h"

#include "crc32c/crc32c.h"
#include "records.h"

enum { ROUNDS = 1000, RECORDS = 20 };

/* One entry "a" with the int64 list [7]. */
static const uint8_t message[] = {0x0a, 0x0c, 0x0a, 0x0a, 0x0a, 0x01, 'a',
                                  0x12, 0x05, 0x1a, 0x03, 0x0a, 0x01, 7};

typedef struct shared {
    const tfw_schema *schema;
    file file;
    int fd;
    int64_t offsets[RECORDS + 1];
} shared;

/* The first checksum of a process chooses the kernel, here several times over. */
static void *select_and_compute(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        bool supported = false;
        const char *name = tfw_crc32c_kernel_name((size_t)(i % 4), &supported);
        EXPECT(tfw_crc32c(0, "123456789", 9) == 0xe3069283);
        EXPECT(tfw_crc32c_select(supported ? name : NULL) == TFW_OK);
        EXPECT(tfw_crc32c_kernel() != NULL);
        EXPECT(tfw_crc32c_select(NULL) == TFW_OK);
    }
    return NULL;
}

/* Every thread has columns of its own. */
static void *parse(void *argument) {
    const shared *s = argument;
    const tfw_span spans[2] = {{0, sizeof message}, {0, sizeof message}};
    for (int i = 0; i < ROUNDS; i++) {
        tfw_columns *columns;
        tfw_column column;
        EXPECT(tfw_columns_create(s->schema, 0, &columns, NULL) == TFW_OK);
        EXPECT(tfw_parse(columns, message, sizeof message, spans, 2, 0, NULL, NULL) == TFW_OK);
        EXPECT(tfw_columns_peek(columns, 0, &column, NULL) == TFW_OK);
        EXPECT(column.value_count == 2 && ((const int64_t *)column.values)[1] == 7);
        tfw_columns_free(columns);
    }
    return NULL;
}

/* A reader for each. */
static void *read_file(void *argument) {
    const shared *s = argument;
    for (int i = 0; i < ROUNDS; i++) {
        tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
        tfw_reader *reader;
        tfw_batch batch = {.size = sizeof batch};
        uint64_t count = 0;
        options.fd = s->fd;
        EXPECT(tfw_reader_create(&options, &reader, NULL) == TFW_OK);
        while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
            count += batch.count;
        }
        EXPECT(count == RECORDS);
        tfw_reader_free(reader);
    }
    return NULL;
}

/* Offsets for each, found by the headers. */
static void *walk(void *argument) {
    const shared *s = argument;
    uint8_t buffer[512];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t offsets[RECORDS];
        uint64_t offset = 0;
        size_t count = 0;
        EXPECT(tfw_walk(s->fd, s->file.len, &offset, buffer, sizeof buffer, offsets, RECORDS,
                        &count, NULL) == TFW_END);
        EXPECT(count == RECORDS && memcmp(offsets, s->offsets, sizeof offsets) == 0);
    }
    return NULL;
}

static void kernels_are_chosen_by_all_at_once(void) { race(select_and_compute, NULL); }

static void a_schema_serves_all(void) {
    const tfw_feature feature = {.name = "a", .name_len = 1, .kind = TFW_INT64,
                                 .layout = TFW_VARIABLE};
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(&feature, 1, SEED, &schema, NULL));
    race(parse, &(shared){.schema = schema});
    tfw_schema_free(schema);
}

static void files_and_offsets_serve_all(void) {
    shared s = {.file = file_random(5, RECORDS, 200)};
    s.fd = file_open(&s.file);
    for (size_t i = 0; i <= RECORDS; i++) {
        s.offsets[i] = (int64_t)file_begin(&s.file, i);
    }
    race(read_file, &s);
    race(walk, &s);
    close(s.fd);
    free(s.file.data);
}

int main(void) {
    RUN(kernels_are_chosen_by_all_at_once);
    RUN(a_schema_serves_all);
    RUN(files_and_offsets_serve_all);
    return check_report("threads");
}
