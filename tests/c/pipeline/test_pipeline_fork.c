/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child has none of a pipeline's threads. If there were none, it goes on by itself. */
#include "pipeline.h"

#ifndef _WIN32
#include "fork.h"

enum { MANY = 400 };

static const wanted parse_3 = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};

static bool use_in_child(tfw_pipeline *p, tfw_chunk *held) {
    tfw_chunk *chunk;
    tfw_error error;
    tfw_chunk_info info = {.size = sizeof info};
    const tfw_span span = {12, 0};
    const uint8_t data[16] = {0};
    const tfw_batch batch = {.size = sizeof batch, .data = data, .data_len = sizeof data,
                             .spans = &span, .count = 1};
    const bool refused = tfw_pipeline_next(p, -1, &chunk, &error) == TFW_E_UNSUPPORTED &&
                         tfw_pipeline_add(p, NULL, 0, &error) == TFW_E_UNSUPPORTED &&
                         tfw_pipeline_push(p, &batch, 0, &error) == TFW_E_UNSUPPORTED &&
                         tfw_pipeline_seek(p, &(tfw_place){0}, &error) == TFW_E_UNSUPPORTED;
    tfw_chunk_get(held, &info); /* what was delivered is there */
    tfw_chunk_release(held);
    tfw_pipeline_cancel(p);
    tfw_pipeline_free(p);
    return refused && chunk == NULL && info.records != 0;
}

/* Without threads it goes on by itself. */
static bool go_on_in_child(tfw_pipeline *p, tfw_chunk *held) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(held, &info);
    const uint64_t first = info.begin.file * MANY + info.begin.record;
    uint64_t rows = first + info.records;
    tfw_chunk *chunk = held;
    int status = TFW_OK;
    while (status == TFW_OK) {
        tfw_chunk_release(chunk);
        status = tfw_pipeline_next(p, -1, &chunk, NULL);
        if (status == TFW_OK) {
            tfw_chunk_get(chunk, &info);
            rows += info.records;
        }
    }
    tfw_pipeline_free(p);
    return status == TFW_END && rows == 2 * MANY;
}

/* Whatever the threads of the parent hold at that time. */
static void check_fork(const fileset *set, const table *t, uint32_t threads, size_t taken,
                       bool (*use)(tfw_pipeline *, tfw_chunk *)) {
    tfw_pipeline *p = pipeline_of(set, &parse_3, t, threads, 300);
    tfw_chunk *chunk;
    for (size_t k = 0; k < taken; k++) {
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        tfw_chunk_release(chunk);
    }
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    const pid_t child = fork();
    if (child == 0) {
        end_child(use(p, chunk));
    }
    check_child(child);
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
}

static void a_forked_child(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    for (size_t i = 0; i < 20; i++) {
        check_fork(&set, &t, 3, i + 1, use_in_child);
        check_fork(&set, &t, 1, i, go_on_in_child);
    }
    check_fork(&set, &t, 3, 0, go_on_in_child); /* which then starts threads */
    table_free(&t);
    fileset_free(&set);
}
#endif

int main(void) {
#ifndef _WIN32
    RUN(a_forked_child);
#endif
    return check_report("pipelines in forked children");
}
