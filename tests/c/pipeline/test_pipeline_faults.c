/* SPDX-License-Identifier: Apache-2.0 */
/* In the steady state a pipeline takes no fresh memory: blocks that are released are used again,
 * and so is what was held, or all but that. And few rows are copied. */
#include "pipeline.h"

#ifndef _WIN32
#include <sys/resource.h>

enum { MANY = 500, TIMES = 24, RANGE_BYTES = 1 << 18 };

/* A range and its columns are a hundred pages and more, and a batch that is joined as many. Some
 * faults are for what ASan keeps of small memory that was freed, and what musl gives back. */
#if defined(__has_feature)
#define HAS_TSAN __has_feature(thread_sanitizer) /* which takes four pages for each */
#else
#define HAS_TSAN 0
#endif
enum { MOST_FAULTS_A_CHUNK = HAS_TSAN ? 100 : 8 };

/* Until here threads may meet at most of their work. */
enum { WARM = MANY * TIMES / 2 };

static long faults(void) {
    struct rusage usage;
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &usage));
    return usage.ru_minflt;
}

static file file_of_strings(size_t size, size_t count) {
    file f = {0};
    uint8_t *text = calloc(size, 1);
    for (size_t i = 0; i < count; i++) {
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)),
                               entry("s", field(1, field(1, raw(text, size - i % 100)))));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    free(text);
    return f;
}

/* What becomes of the columns of a chunk: nobody holds any; all are held until the next chunk has
 * come; or one, which is small, is for ever. */
enum keeping { KEEPS_NONE, KEEPS_ONE_CHUNK, KEEPS_ONE_COLUMN };

typedef struct keeper {
    enum keeping keeping;
    tfw_hold *holds[MANY * TIMES];
    size_t count;
} keeper;

static void release_holds(keeper *k, size_t count) {
    for (; count < k->count; k->count--) {
        tfw_hold_release(k->holds[k->count - 1]);
    }
}

static void keep(keeper *k, tfw_chunk *chunk) {
    const size_t columns = k->keeping == KEEPS_NONE ? 0 : k->keeping == KEEPS_ONE_COLUMN ? 1 : 3;
    tfw_column c;
    if (k->keeping == KEEPS_ONE_CHUNK) {
        release_holds(k, 0);
    }
    for (size_t i = 0; i < columns; i++) {
        CHECK_EQ(TFW_OK, tfw_chunk_hold(chunk, false, i, &c, &k->holds[k->count++], NULL));
    }
}

/* The faults while the second half of a file that is read again and again passes. */
static void check_steady(size_t size, uint32_t threads, uint64_t batch_size,
                         enum keeping keeping) {
    static keeper k;
    fileset set = {0};
    table t = table_new(false);
    const wanted w = {.batch_size = batch_size};
    long before = 0, chunks = 0;
    k.keeping = keeping;
    uint64_t records = 0;
    tfw_chunk *chunk;
    fileset_add(&set, file_of_strings(size, MANY));
    for (; set.count < TIMES; set.count++) {
        set.paths[set.count] = set.paths[0];
    }
    tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, RANGE_BYTES);
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        keep(&k, chunk);
        tfw_chunk_release(chunk);
        records += info.records;
        if (records > WARM) {
            before = before == 0 ? faults() : before;
            chunks++;
        }
    }
    const long found = faults() - before;
    CHECK_EQ(MANY * TIMES, records);
    CHECK(chunks > 10);
    CHECK(found <= MOST_FAULTS_A_CHUNK * chunks);
    release_holds(&k, 0);
    tfw_pipeline_free(p);
    table_free(&t);
    set.count = 1;
    fileset_free(&set);
}

static void blocks_are_used_again(void) {
    for (enum keeping k = KEEPS_NONE; k <= KEEPS_ONE_COLUMN; k++) {
        check_steady(6000, 1, 16, k);
        check_steady(6000, 3, 16, k);
    }
    check_steady(12000, 3, 16, KEEPS_NONE); /* by walking over headers */
}

/* Ranges begin just before their first batch does, if records are about equally long: the rows
 * before that are copied. */
static void few_rows_are_copied(void) {
    fileset set = {0};
    table t = table_new(false);
    const wanted w = {.batch_size = 64};
    uint64_t copied = 0, chunks = 0;
    tfw_chunk *chunk;
    fileset_add(&set, file_of_strings(6000, 4 * MANY));
    for (uint32_t threads = 2; threads < 5; threads++) {
        tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, RANGE_BYTES);
        for (; tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK; chunks++) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk_get(chunk, &info);
            copied += info.first_row;
            tfw_chunk_release(chunk);
        }
        tfw_pipeline_free(p);
    }
    CHECK(chunks > 60);
    CHECK(copied < chunks * w.batch_size / 8); /* a half where ranges begin anywhere */
    table_free(&t);
    fileset_free(&set);
}
#endif

int main(void) {
#ifndef _WIN32
    RUN(blocks_are_used_again);
    RUN(few_rows_are_copied);
#endif
    return check_report("page faults of pipelines");
}
