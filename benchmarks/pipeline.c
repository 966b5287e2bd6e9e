/* SPDX-License-Identifier: Apache-2.0 */
/* Files to columns by pipelines of several threads, beside that of one.
 *
 *     cc -O3 -pthread -Icsrc -Itests/c benchmarks/pipeline.c $(find csrc -name '*.c') \
 *         -o build/pipeline
 *     build/pipeline [megabytes] [threads...]
 *
 * Of each workload: GB of file a second, CPU time and page faults beside those of one thread; best
 * of the runs, which alternate. The file lies in memory, as far as there is room for it. */
#define _GNU_SOURCE
#define COUNT_ROOM (64 << 20)
#include "counts/workloads.h"

#include "tfwire_pipeline.h"

#include <sys/resource.h>
#include <time.h>

enum { RUNS = 5, MOST = 64 };

/* What a run takes: seconds, seconds of CPU time, page faults. */
typedef struct cost {
    double wall, cpu;
    long faults;
} cost;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cost now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (cost){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID), usage.ru_minflt};
}

static void keep_best(cost *best, cost before) {
    const cost after = now();
    const cost c = {after.wall - before.wall, after.cpu - before.cpu,
                    after.faults - before.faults};
    if (best->wall == 0 || c.wall < best->wall) {
        *best = c;
    }
}

/* ---- A pipeline ------------------------------------------------------------------------------ */

/* Without a schema, verifies. */
static uint64_t read_chunks(const tfw_schema *schema, const char *path, uint64_t batch,
                            uint32_t threads) {
    const tfw_pipeline_options options = {.size = sizeof options, .paths = &path, .path_count = 1,
                                          .context = schema,
                                          .batch_size = schema == NULL ? 0 : batch,
                                          .mode = schema == NULL ? TFW_PIPELINE_VERIFY
                                                                 : TFW_PIPELINE_PARSE,
                                          .num_threads = threads};
    tfw_pipeline *pipeline;
    tfw_chunk *chunk;
    uint64_t records = 0;
    int status;
    expect(TFW_OK, tfw_pipeline_create(&options, &pipeline, NULL));
    while ((status = tfw_pipeline_next(pipeline, -1, &chunk, NULL)) == TFW_OK) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        records += info.records;
        tfw_chunk_release(chunk);
    }
    expect(TFW_END, status);
    tfw_pipeline_free(pipeline);
    return records;
}

/* ---- Workloads ------------------------------------------------------------------------------- */

static workload *images(const char *name, uint64_t shortest, uint64_t longest) {
    workload *w = new_workload(name);
    add_strings(w, "image", shortest, longest);
    add_ints(w, "label", 1, 10, false);
    finish(w, false);
    return w;
}

static void compare(const workload *w, uint64_t batch, size_t size, const uint32_t *threads,
                    size_t count) {
    char path[] = "/dev/shm/tfwire-bench-XXXXXX"; /* memory: no disk is measured */
    const int fd = mkstemp(path);
    tfw_schema *schema;
    size_t written = 0;
    cost one = {0}, many[MOST] = {{0}}, verified[MOST] = {{0}};
    for (; written < size; written += w->len) {
        expect((int)w->len, (int)write(fd, w->data, w->len));
    }
    expect(TFW_OK, tfw_schema_create(w->features, w->input_count, 1, &schema, NULL));
    for (int run = 0; run < RUNS; run++) {
        cost begin = now();
        const uint64_t records = read_chunks(schema, path, batch, 1);
        keep_best(&one, begin);
        for (size_t i = 0; i < count; i++) {
            begin = now();
            expect(1, records == read_chunks(schema, path, batch, threads[i]));
            keep_best(&many[i], begin);
            begin = now();
            expect(1, records == read_chunks(NULL, path, batch, threads[i]));
            keep_best(&verified[i], begin);
        }
    }
    printf("%s in batches of %llu: one thread %.2f GB/s, %ld faults\n", w->name,
           (unsigned long long)batch, (double)written / one.wall / 1e9, one.faults);
    for (size_t i = 0; i < count; i++) {
        printf("  pipeline of %2u: %6.2f GB/s, %5.2f times as fast, CPU time %.3f, %ld faults; "
               "verified: %6.2f GB/s\n",
               threads[i], (double)written / many[i].wall / 1e9, one.wall / many[i].wall,
               many[i].cpu / one.cpu, many[i].faults, (double)written / verified[i].wall / 1e9);
    }
    close(fd);
    unlink(path);
}

int main(int argc, char **argv) {
    uint32_t threads[MOST] = {2};
    size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 200) << 20, count = 1;
    for (int i = 2; i < argc && i - 2 < MOST; i++) {
        threads[i - 2] = (uint32_t)strtoul(argv[i], NULL, 10);
        count = (size_t)i - 1;
    }
    compare(tutorial(), 1024, size, threads, count);
    compare(images("W2", 1000, 5000), 64, size, threads, count);
    compare(images("W3", 60000, 120000), 16, size, threads, count);
    compare(embedding(), 1024, size, threads, count);
    compare(ctr("W5", false), 1024, size, threads, count);
    return 0;
}
