/* SPDX-License-Identifier: Apache-2.0 */
/* Units that follow each other take no fresh memory: what was taken is given back, what was lent
 * stays. Whatever the columns are. */
#include "columns.h"
#include "records.h"

#include "pipeline/read_columns.h"

#ifndef _WIN32
#include <sys/resource.h>

#ifdef TFW_TEST_QUICK
enum { ROUNDS = 40 };
#else
enum { ROUNDS = 200 };
#endif

/* A unit is 50 pages or more. One fault each is for ASan, which keeps small arrays that were freed;
 * a few are for musl, which gives them back to the system. */
#if defined(__linux__) && !defined(__GLIBC__)
enum { TOO_MANY_FAULTS = 4 * ROUNDS };
#else
enum { TOO_MANY_FAULTS = ROUNDS };
#endif

enum { MOST_RECORDS = 1000, UNIT_BYTES = 1 << 21 };

/* A unit: so many records of one feature, each with values of some bytes. */
typedef struct shape {
    size_t records;
    size_t record_bytes;
    int32_t kind;
    int32_t layout;
    unsigned flags; /* of the columns */
    bool lent;
} shape;

static long faults(void) {
    struct rusage usage;
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &usage));
    return usage.ru_minflt;
}

/* A Feature; the bytes are those of a string, or numbers of one byte each. */
static blob feature_of(const shape *s, const uint8_t *bytes) {
    const uint32_t kind = (uint32_t)s->kind;
    const size_t len = s->kind == TFW_INT64 ? s->record_bytes / sizeof(int64_t) : s->record_bytes;
    return field(kind, field(1, raw(bytes, len)));
}

static file file_of(const shape *s) {
    file f = {0};
    uint8_t *bytes = calloc(s->record_bytes, 1);
    for (size_t i = 0; i < s->records; i++) {
        blob value = feature_of(s, bytes);
        const bool lists = (s->flags & TFW_FEATURE_LISTS) != 0;
        blob message = lists ? field(2, entry("a", field(1, value))) : EXAMPLE(entry("a", value));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    free(bytes);
    return f;
}

static tfw_columns *columns_of(const shape *s, tfw_schema **out_schema) {
    const tfw_feature a = feature("a", s->kind, s->layout,
                                  s->kind == TFW_BYTES ? 1 : s->record_bytes / sizeof(int64_t));
    tfw_columns *columns;
    CHECK_EQ(TFW_OK, tfw_schema_create(&a, 1, SEED, out_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(*out_schema, s->flags, &columns, NULL));
    return columns;
}

/* Reads the unit of the file again and again; returns the page faults of all rounds but the first
 * ones. */
static long read_steadily(const shape *s, tfwi_stretch *stretch, tfw_columns *columns) {
    const bool lists = (s->flags & TFW_FEATURE_LISTS) != 0;
    const uint8_t lent[1] = {s->lent};
    void *memory[1] = {NULL};
    size_t sizes[1] = {0};
    tfw_column finished, *column = &finished;
    long before = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        tfwi_reading reading = {.s = stretch, .context = lists ? NULL : columns,
                                .lists = lists ? columns : NULL,
                                .flags = lists ? TFW_SEQUENCE : 0};
        if (i == ROUNDS / 4) {
            before = faults();
        }
        stretch->offset = stretch->begin = stretch->end = 0;
        CHECK_EQ(TFW_OK, tfw_columns_begin(columns, memory, sizes, s->records, NULL));
        CHECK_EQ(TFW_OK, tfwi_read_records(&reading, s->records, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_finish(columns, lent, column, NULL));
        CHECK_EQ(s->records * s->record_bytes, column->byte_count);
        CHECK(memory[0] == NULL);
        if (!s->lent) {
            memory[0] = column->values;
            sizes[0] = (size_t)column->capacity;
            column->values = NULL;
            free_column(column);
        }
    }
    before = faults() - before;
    tfw_free(memory[0]);
    return before;
}

static void check_steady(shape s) {
    file f = file_of(&s);
    int fd = file_open(&f);
    tfw_schema *schema;
    tfw_columns *columns = columns_of(&s, &schema);
    tfwi_stretch stretch = {.fd = fd, .stop = UINT64_MAX, .buffer = malloc(1 << 20),
                            .capacity = 1 << 20};
    CHECK(read_steadily(&s, &stretch, columns) < TOO_MANY_FAULTS);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    free(stretch.buffer);
    close(fd);
    free(f.data);
}

static void long_strings(void) {
    check_steady((shape){8, UNIT_BYTES / 8, TFW_BYTES, TFW_DENSE, 0, false});
    check_steady((shape){8, UNIT_BYTES / 8, TFW_BYTES, TFW_DENSE, 0, true});
}

/* Their offsets are lent as well. */
static void short_strings(void) {
    check_steady((shape){MOST_RECORDS, 200, TFW_BYTES, TFW_DENSE, 0, true});
    check_steady((shape){MOST_RECORDS, 200, TFW_BYTES, TFW_VARIABLE, 0, true});
}

static void feature_lists(void) {
    check_steady((shape){8, UNIT_BYTES / 8, TFW_INT64, TFW_VARIABLE, TFW_FEATURE_LISTS, false});
    check_steady((shape){8, UNIT_BYTES / 8, TFW_INT64, TFW_DENSE, TFW_FEATURE_LISTS, true});
    check_steady((shape){MOST_RECORDS, 200, TFW_BYTES, TFW_VARIABLE, TFW_FEATURE_LISTS, true});
}

static void numbers_of_the_columns(void) {
    check_steady((shape){8, UNIT_BYTES / 8, TFW_INT64, TFW_DENSE, TFW_OWN_NUMBERS, false});
    check_steady((shape){8, UNIT_BYTES / 8, TFW_INT64, TFW_DENSE, TFW_OWN_NUMBERS, true});
}
#endif

int main(void) {
#ifndef _WIN32
    RUN(long_strings);
    RUN(short_strings);
    RUN(feature_lists);
    RUN(numbers_of_the_columns);
#endif
    return check_report("page faults");
}
