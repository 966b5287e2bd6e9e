/* SPDX-License-Identifier: Apache-2.0 */
/* Records by number: whatever the number of threads, the orders and the caches, what comes out is
 * what a plain look into the files finds, up to the first record that is wrong. */
#include "fetch.h"
#ifndef _WIN32
#include "fork.h"
#endif

#include <errno.h>
#include <stdatomic.h>

extern long tfwi_test_fail_allocation;

static void any_order_of_any_records(void) {
    library l = some_files(false);
    ask(&l, 1, 2000);
    check_modes(&l);
    ask(&l, 2, 1);
    check_modes(&l);
    for (size_t i = 0; i < 600; i++) {
        l.numbers[i] = (int64_t)(599 - i); /* backwards */
    }
    l.asked = 600;
    check_modes(&l);
    library_free(&l);
}

static void sequences(void) {
    library l = some_files(true);
    ask(&l, 3, 500);
    l.parses = true;
    check_orders(&l);
    with_caches(&l);
    check_orders(&l);
    library_free(&l);
}

static void long_records(void) {
    library l = {0};
    library_add(&l, file_random(1, 20, 300000));
    library_add(&l, file_random(2, 300, 5000));
    ask(&l, 4, 400);
    check_orders(&l);
    with_caches(&l);
    check_orders(&l);
    library_free(&l);
}

/* Of every kind of damage, the first record that was asked for is reported. */
static void damaged_records(void) {
    const size_t flipped[] = {0, 9, 30, 100000};
    for (size_t i = 0; i < COUNT(flipped); i++) {
        library l = some_files(false);
        file *f = &l.set.files[6];
        for (size_t k = 100; k < 600; k += 250) {
            const size_t begin = file_begin(f, k), size = f->ends[k] - begin;
            f->data[begin + (flipped[i] < size ? flipped[i] : size - 1)] ^= 1;
        }
        fileset_write(&l.set, 6);
        for (uint64_t seed = 0; seed < 4; seed++) {
            ask(&l, seed, 1000);
            check_modes(&l);
        }
        library_free(&l);
    }
}

/* Of 805 records: in random order and in that of the files, all and some, and backwards. */
static void numbers_that_are_drawn(void) {
    const tfw_draw draws[] = {
        {.count = 805, .step = 1, .key = 7, .size = 805, .stride = 1},
        {.count = 200, .first = 3, .step = 4, .key = UINT64_MAX, .size = 805, .stride = 1},
        {.count = 100, .first = 199, .step = -2, .size = 200, .begin = 804, .stride = -4},
        {.count = 1, .step = INT64_MIN, .size = 1, .begin = 804, .stride = INT64_MIN},
        {.count = 805, .step = 1, .begin = 5, .stride = 99},
        {.count = 9, .first = 804, .step = -100},
        {.count = 5, .first = 700},
    };
    library l = some_files(false);
    for (size_t i = 0; i < COUNT(draws); i++) {
        ask_drawn(&l, draws[i]);
        check_modes(&l);
    }
    l.set.files[6].data[file_begin(&l.set.files[6], 300) + 20] ^= 1;
    fileset_write(&l.set, 6);
    ask_drawn(&l, draws[0]);
    check_modes(&l);
    library_free(&l);
}

static void numbers_that_cannot_be_drawn(void) {
    const tfw_draw wrong[] = {
        {.count = 0, .step = 1},
        {.count = UINT64_MAX, .step = 0},
        {.count = (1 << 24) + 1, .step = 0},
        {.count = 806, .step = 1},
        {.count = 1, .first = 805},
        {.count = 1, .first = -1},
        {.count = 2, .first = 100, .step = -101},
        {.count = 3, .first = 1, .step = INT64_MAX},
        {.count = 3, .first = 1, .step = INT64_MIN},
        {.count = 11, .step = 1, .size = 10, .stride = 1},
        {.count = 1, .step = 1, .size = 806, .stride = 1},
        {.count = 1, .step = 1, .size = UINT64_MAX, .stride = 1},
        {.count = 2, .first = INT64_MAX, .step = 1, .size = UINT64_MAX, .stride = 0},
        {.count = 1, .step = 1, .size = 10, .begin = 796, .stride = 1},
        {.count = 1, .step = 1, .size = 10, .begin = 8, .stride = -1},
        {.count = 1, .step = 1, .size = 10, .begin = INT64_MIN, .stride = 1},
        {.count = 1, .step = 1, .size = 3, .begin = 0, .stride = INT64_MAX},
    };
    library l = some_files(false);
    table t = table_new(false);
    tfw_chunk *chunk;
    tfw_pipeline *p = pipeline_over(&l, &t, 2);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_draw(p, &wrong[i], NULL));
    }
    CHECK_EQ(TFW_END, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_pipeline_free(p);
    l.parses = l.gives = true;
    p = pipeline_over(&l, &t, 1);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_draw(p, &(tfw_draw){.count = 1}, NULL));
    tfw_pipeline_free(p);
    table_free(&t);
    library_free(&l);
}

/* Records that lie anywhere in memory. */
static void given_records(void) {
    for (int sequence = 0; sequence < 2; sequence++) {
        library l = some_files(sequence != 0);
        l.parses = l.gives = true;
        ask(&l, 11, 2000);
        check_orders(&l);
        library_free(&l);
    }
}

static void given_to_another_pipeline(void) {
    library l = some_files(false);
    table t = table_new(false);
    const tfw_span none = {0, 0};
    tfw_pipeline *p = pipeline_over(&l, &t, 1);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_give(p, &none, 1, NULL));
    tfw_pipeline_free(p);
    l.parses = l.gives = true;
    p = pipeline_over(&l, &t, 1);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_give(p, &none, 0, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_give(p, &none, SIZE_MAX, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, l.numbers, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_add(p, NULL, 0, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_push(p, NULL, 0, NULL));
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(TFW_OK, tfw_pipeline_give(p, &none, 1, NULL));
    }
    CHECK_EQ(TFW_NEED_SPACE, tfw_pipeline_give(p, &none, 1, NULL));
    tfw_pipeline_free(p);
    table_free(&t);
    library_free(&l);
}

/* A message that does not fit ends an order as damage does. */
static void misfits_of(bool gives) {
    library l = {.parses = true, .gives = gives};
    file f = file_of_examples(1, 50, false);
    file_append_record(&f, "no message", 10);
    library_add(&l, f);
    library_add(&l, file_of_examples(2, 50, false));
    for (uint64_t seed = 0; seed < 6; seed++) {
        ask(&l, seed, 60);
        check_orders(&l);
    }
    library_free(&l);
}

static void misfits(void) {
    misfits_of(false);
    misfits_of(true);
}

static void files_that_were_cut(void) {
    library l = some_files(false);
    file *f = &l.set.files[6];
    f->len = file_begin(f, 300) + 17;
    fileset_write(&l.set, 6);
    ask(&l, 5, 800);
    check_modes(&l);
    f->len = 0;
    fileset_write(&l.set, 6);
    check_modes(&l);
    library_free(&l);
}

/* Offsets may say anything. */
static void offsets_that_lie(void) {
    const int64_t lies[] = {-1, 0, 1, 17, INT64_MAX, INT64_MIN, 1 << 20, INT64_C(1) << 50,
                            INT64_MAX - (1 << 29)};
    for (size_t i = 0; i < COUNT(lies); i++) {
        library l = some_files(false);
        l.offsets[6][200] = lies[i];
        ask(&l, 6, 800);
        for (int parses = 0; parses < 2; parses++) {
            delivered d;
            table t = table_new(false);
            l.parses = parses != 0;
            l.order = 64;
            tfw_pipeline *p = pipeline_over(&l, &t, 2);
            run_library(&l, p, &d);
            CHECK(d.status == TFW_E_ARGUMENT || d.status == TFW_E_TRUNCATED ||
                  d.status == TFW_E_LENGTH_CRC || d.status == TFW_E_INDEX);
            CHECK(d.stopped.file == 6 && (d.stopped.record == 199 || d.stopped.record == 200));
            delivered_free(&d);
            tfw_pipeline_free(p);
            table_free(&t);
        }
        library_free(&l);
    }
}

/* ---- Reads that misbehave ------------------------------------------------------------------- */

static atomic_long reads;
static long failing;

static ssize_t odd_pread(int fd, void *out, size_t len, off_t offset) {
    const long number = atomic_fetch_add(&reads, 1);
    if (number == failing) {
        errno = EIO;
        return -1;
    }
    if (number % 5 == 4) {
        errno = EINTR;
        return -1;
    }
    return pread(fd, out, len < 2000 ? len : 2000, offset);
}

static void reads_that_fail(void) {
    library l = some_files(false);
    ask(&l, 7, 300);
    l.order = 50;
    tfwi_test_pread = odd_pread;
    for (int cached = 0; cached < 2; cached++) {
        for (failing = 0; failing < 60; failing += 7) {
            delivered d;
            table t = table_new(false);
            l.parses = failing % 2 == 0;
            atomic_store(&reads, 0);
            tfw_pipeline *p = pipeline_over(&l, &t, 1 + (uint32_t)failing % 3);
            run_library(&l, p, &d);
            /* Of several records at a time, each is read again alone. */
            CHECK(d.status == TFW_END || (d.status == TFW_E_IO && d.error.os_errno == EIO));
            delivered_free(&d);
            tfw_pipeline_free(p);
            table_free(&t);
        }
        with_caches(&l);
    }
    failing = -1;
    check_modes(&l);
    tfwi_test_pread = pread;
    library_free(&l);
}

/* The second touch of a block costs no read. */
static void a_cache_is_read_once(void) {
    library l = some_files(false);
    ask(&l, 8, 2000);
    with_caches(&l);
    failing = -1;
    tfwi_test_pread = odd_pread;
    for (int i = 0; i < 2; i++) {
        delivered d;
        table t = table_new(false);
        l.parses = i == 0;
        l.order = 100;
        tfw_pipeline *p = pipeline_over(&l, &t, 1);
        atomic_store(&reads, 0);
        run_library(&l, p, &d);
        CHECK(d.status == TFW_END && (atomic_load(&reads) == 0) == (i == 1));
        delivered_free(&d);
        tfw_pipeline_free(p);
        table_free(&t);
    }
    tfwi_test_pread = pread;
    library_free(&l);
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void no_memory(void) {
    library l = some_files(false);
    ask(&l, 9, 100);
    l.order = 30;
    for (long n = 0; n < 150; n++) {
        tfw_pipeline *p = NULL;
        delivered d = {0};
        table t = table_new(false);
        const tfw_pipeline_options options = {
            .size = sizeof options, .context = t.schema, .batch_size = 7,
            .num_threads = 1 + (uint32_t)n % 2, .indexed = l.indexed,
            .indexed_count = l.set.count};
        tfw_cache *cache = NULL;
        l.parses = true;
        tfwi_test_fail_allocation = n % 3;
        CHECK_EQ(TFW_E_MEMORY, tfw_cache_create(1000, &cache, NULL));
        CHECK(cache == NULL);
        tfwi_test_fail_allocation = n;
        int status = tfw_pipeline_create(&options, &p, NULL);
        for (size_t i = 0; status == TFW_OK && i < 3; i++) {
            tfw_chunk *chunk = NULL;
            const tfw_draw draw = {.count = 30, .step = 1, .size = 805, .stride = 1};
            status = i % 2 == 0 ? tfw_pipeline_fetch(p, l.numbers, 30, NULL)
                                : tfw_pipeline_draw(p, &draw, NULL);
            status = status == TFW_OK ? tfw_pipeline_next(p, -1, &chunk, NULL) : status;
            tfw_chunk_release(chunk);
        }
        tfwi_test_fail_allocation = -1;
        CHECK(status == TFW_OK || status == TFW_E_MEMORY);
        tfw_pipeline_free(p);
        delivered_free(&d);
        table_free(&t);
    }
    library_free(&l);
}

/* Freed, cancelled and forked with orders that nobody took. */
static void ended_at_any_time(void) {
    library l = some_files(false);
    table t = table_new(false);
    tfw_chunk *chunk, *kept;
    ask(&l, 10, 1000);
    l.parses = true;
    for (uint32_t threads = 1; threads < 6; threads++) {
        for (size_t taken = 0; taken < 3; taken++) {
            tfw_pipeline *p = pipeline_over(&l, &t, threads);
            kept = NULL;
            for (uint32_t i = 0; i < threads + 2; i++) {
                CHECK_EQ(TFW_OK, tfw_pipeline_fetch(p, l.numbers, 1000, NULL));
            }
            CHECK_EQ(TFW_NEED_SPACE, tfw_pipeline_fetch(p, l.numbers, 1000, NULL));
            with_caches(&l); /* those before are the pipeline's alone */
            for (size_t i = 0; i < taken; i++) {
                tfw_chunk_release(kept);
                CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &kept, NULL));
            }
#ifndef _WIN32
            const pid_t child = fork();
            if (child == 0) {
                /* It goes on where no thread was started. */
                const int status = tfw_pipeline_next(p, -1, &chunk, NULL);
                const bool starts = threads > 1 && taken > 0;
                tfw_pipeline_cancel(p);
                tfw_pipeline_free(p);
                end_child(status == (starts ? TFW_E_UNSUPPORTED : TFW_OK));
            }
            check_child(child);
#endif
            if (taken == 2) {
                tfw_pipeline_cancel(p);
                CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_next(p, -1, &chunk, NULL));
                CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, l.numbers, 1, NULL));
            }
            tfw_pipeline_free(p);
            tfw_chunk_release(kept);
        }
    }
    table_free(&t);
    library_free(&l);
}

static void numbers_of_no_record(void) {
    library l = some_files(false);
    table t = table_new(false);
    tfw_chunk *chunk;
    uint64_t total = 0;
    for (size_t i = 0; i < l.set.count; i++) {
        total += l.set.files[i].count;
    }
    const int64_t wrong[] = {-1, (int64_t)total, INT64_MAX, INT64_MIN};
    tfw_pipeline *p = pipeline_over(&l, &t, 2);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const int64_t numbers[2] = {0, wrong[i]};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, numbers, 2, NULL));
    }
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, NULL, 0, NULL));
    CHECK_EQ(TFW_END, tfw_pipeline_next(p, -1, &chunk, NULL));
    const int64_t last = (int64_t)total - 1;
    CHECK_EQ(TFW_OK, tfw_pipeline_fetch(p, &last, 1, NULL));
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_chunk_release(chunk);
    CHECK_EQ(TFW_END, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_pipeline_free(p);
    const tfw_pipeline_options none = {.size = sizeof none, .num_threads = 1,
                                       .mode = TFW_PIPELINE_SPANS};
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&none, &p, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, &last, 1, NULL));
    tfw_pipeline_free(p);
    table_free(&t);
    library_free(&l);
}

int main(void) {
    RUN(any_order_of_any_records);
    RUN(sequences);
    RUN(long_records);
    RUN(numbers_that_are_drawn);
    RUN(numbers_that_cannot_be_drawn);
    RUN(given_records);
    RUN(given_to_another_pipeline);
    RUN(damaged_records);
    RUN(misfits);
    RUN(files_that_were_cut);
    RUN(offsets_that_lie);
    RUN(reads_that_fail);
    RUN(a_cache_is_read_once);
    RUN(no_memory);
    RUN(ended_at_any_time);
    RUN(numbers_of_no_record);
    return check_report("fetch");
}
