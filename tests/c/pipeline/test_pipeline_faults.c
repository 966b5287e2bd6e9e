/* SPDX-License-Identifier: Apache-2.0 */
/* In the steady state a pipeline takes no fresh memory: blocks that are released are used again. */
#include "pipeline.h"

#ifndef _WIN32
#include <sys/resource.h>

enum { MANY = 500, TIMES = 24, RANGE_BYTES = 1 << 18 };

/* A range and its columns are a hundred pages and more, and a batch that is joined as many. Some
 * faults are for what ASan keeps of small memory that was freed, and what musl gives back. */
enum { MOST_FAULTS_A_CHUNK = 8 };

/* Until here threads may meet at most of their work. */
enum { WARM = MANY * TIMES / 2 };

static long faults(void) {
    struct rusage usage;
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &usage));
    return usage.ru_minflt;
}

static file file_of_strings(size_t size) {
    file f = {0};
    uint8_t *text = calloc(size, 1);
    for (size_t i = 0; i < MANY; i++) {
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)),
                               entry("s", field(1, field(1, raw(text, size - i % 100)))));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    free(text);
    return f;
}

/* The faults while the second half of a file that is read again and again passes. */
static void check_steady(size_t size, uint32_t threads, uint64_t batch_size) {
    fileset set = {0};
    table t = table_new(false);
    const wanted w = {.batch_size = batch_size};
    long before = 0, chunks = 0;
    uint64_t records = 0;
    tfw_chunk *chunk;
    fileset_add(&set, file_of_strings(size));
    for (; set.count < TIMES; set.count++) {
        set.paths[set.count] = set.paths[0];
    }
    tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, RANGE_BYTES);
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
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
    tfw_pipeline_free(p);
    table_free(&t);
    set.count = 1;
    fileset_free(&set);
}

static void blocks_are_used_again(void) {
    check_steady(6000, 1, 16);
    check_steady(6000, 3, 16);
    check_steady(12000, 3, 16); /* by walking over headers */
}
#endif

int main(void) {
#ifndef _WIN32
    RUN(blocks_are_used_again);
#endif
    return check_report("page faults of pipelines");
}
