/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline that is cancelled, freed, without memory, or over files that change. */
#include "pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MANY = 400 };

static const wanted parse_3 = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};

/* ---- The file as these tests want it -------------------------------------------------------- */

static struct {
    atomic_long reads;       /* so far */
    long failing;            /* the read that fails; -1: none */
    long changing;           /* from this read on the file is another; -1: never */
    const file *before, *after;
    size_t most;             /* bytes of a read; 0: no limit */
    atomic_bool blocks;      /* reads of other threads wait; the main thread waits for them */
    atomic_bool is_blocked;
    pthread_t main;
    tfw_pipeline *cancelled; /* by the read of this number */
    long cancelling;
    bool naps;               /* the main thread, before it reads */
} source;

static ssize_t odd_pread(int fd, void *out, size_t len, off_t offset) {
    const long number = atomic_fetch_add(&source.reads, 1);
    const bool is_main = pthread_equal(pthread_self(), source.main) != 0;
    atomic_store(&source.is_blocked, atomic_load(&source.is_blocked) || !is_main);
    while (atomic_load(&source.blocks) && (!is_main || !atomic_load(&source.is_blocked))) {
        usleep(200);
    }
    if (is_main && source.naps) {
        usleep(1000);
    }
    if (number == source.cancelling && source.cancelled != NULL) {
        tfw_pipeline_cancel(source.cancelled);
    }
    if (number == source.failing) {
        errno = EIO;
        return -1;
    }
    if (source.most != 0 && number % 5 == 4) {
        errno = EINTR;
        return -1;
    }
    len = source.most != 0 && len > source.most ? source.most : len;
    if (source.changing < 0) {
        return pread(fd, out, len, offset);
    }
    const file *f = number < source.changing ? source.before : source.after;
    const size_t left = (size_t)offset < f->len ? f->len - (size_t)offset : 0;
    len = len < left ? len : left;
    if (len != 0) {
        memcpy(out, f->data + offset, len);
    }
    return (ssize_t)len;
}

static void odd_source(long failing, long changing) {
    atomic_store(&source.reads, 0);
    atomic_store(&source.is_blocked, false);
    source.failing = failing;
    source.changing = changing;
    source.most = 0;
    source.cancelled = NULL;
    source.cancelling = 2;
    source.main = pthread_self();
    tfwi_test_pread = odd_pread;
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* Chunks outlive their pipeline, which may be freed at any time. */
static void freed_at_any_time(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    for (uint32_t threads = 1; threads < 5; threads++) {
        for (size_t taken = 0; taken < 60; taken += threads == 1 ? 13 : 3) {
            tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, threads, 500);
            tfw_chunk *chunks[60];
            for (size_t i = 0; i < taken; i++) {
                CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunks[i], NULL));
                if (i % 2 == 0) {
                    tfw_chunk_release(chunks[i]);
                }
            }
            tfw_pipeline_free(p);
            for (size_t i = 1; i < taken; i += 2) {
                tfw_chunk_info info = {.size = sizeof info};
                tfw_column c;
                tfw_chunk_get(chunks[i], &info);
                CHECK_EQ(TFW_OK, tfw_chunk_column(chunks[i], false, 0, &c, NULL));
                CHECK_EQ((int64_t)info.begin.record, *(const int64_t *)c.values);
                tfw_chunk_release(chunks[i]);
            }
        }
    }
    tfw_pipeline_free(NULL);
    tfw_chunk_release(NULL);
    table_free(&t);
    fileset_free(&set);
}

static void *cancel_soon(void *argument) {
    usleep(10000);
    tfw_pipeline_cancel(argument);
    return NULL;
}

/* Until the time is over, or somebody cancels: other threads cannot read. */
static void waiting_ends(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    tfw_chunk *chunk;
    tfw_error error;
    pthread_t thread;
    int status;
    odd_source(-1, -1);
    tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 3, 2000);
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, 0, &chunk, NULL));
    atomic_store(&source.blocks, true);
    do {
        tfw_chunk_release(chunk);
        status = tfw_pipeline_next(p, 20, &chunk, &error);
    } while (status == TFW_OK);
    CHECK_EQ(TFW_NEED_INPUT, status);
    CHECK_EQ(TFW_NEED_INPUT, tfw_pipeline_next(p, 0, &chunk, &error));
    CHECK_EQ(0, pthread_create(&thread, NULL, cancel_soon, p));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_next(p, -1, &chunk, &error));
    CHECK(strcmp(error.text, "the pipeline was cancelled") == 0);
    CHECK_EQ(0, pthread_join(thread, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_next(p, -1, &chunk, NULL));
    atomic_store(&source.blocks, false);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

static fileset file_of_long_records(void) {
    fileset set = {0};
    file f = {0};
    static uint8_t text[20000];
    for (size_t i = 0; i < 300; i++) {
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)),
                               entry("s", field(1, field(1, raw(text, sizeof text)))));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    fileset_add(&set, f);
    return set;
}

/* A range of any length ends after the piece that is being read. */
static void reading_ends_when_cancelled(void) {
    fileset set = file_of_long_records();
    table t = table_new(false);
    const wanted modes[] = {{.batch_size = 1000}, {.mode = TFW_PIPELINE_VERIFY}};
    for (size_t i = 0; i < 2; i++) {
        tfw_chunk *chunk;
        tfw_pipeline *p = pipeline_of(&set, &modes[i], &t, 1, 1 << 30);
        odd_source(-1, -1);
        source.cancelled = p;
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_next(p, -1, &chunk, NULL));
        CHECK(atomic_load(&source.reads) <= 4);
        tfw_pipeline_free(p);
    }
    source.cancelled = NULL;
    table_free(&t);
    fileset_free(&set);
}

/* Also the walk over headers that plans a range. */
static void planning_ends_when_cancelled(void) {
    fileset set = file_of_long_records();
    table t = table_new(false);
    const wanted modes[] = {{.batch_size = 7}, {.mode = TFW_PIPELINE_VERIFY}};
    for (long read = 0; read < 240; read++) {
        tfw_chunk *chunk;
        tfw_pipeline *p = pipeline_of(&set, &modes[read % 2], &t, 1 + (uint32_t)read % 3, 200000);
        odd_source(-1, -1);
        source.cancelling = read / 3;
        source.cancelled = p;
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            tfw_chunk_release(chunk);
        }
        tfw_pipeline_free(p);
    }
    source.cancelled = NULL;
    table_free(&t);
    fileset_free(&set);
}

/* A chunk that is released by another thread comes back to the pipeline. */
static void *release(void *argument) {
    tfw_chunk_release(argument);
    return NULL;
}

static void chunks_are_released_by_any_thread(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 3, 3000);
    tfw_chunk *chunk;
    int status;
    while ((status = tfw_pipeline_next(p, 1, &chunk, NULL)) >= 0 && status != TFW_END) {
        pthread_t thread;
        if (status == TFW_OK) {
            CHECK_EQ(0, pthread_create(&thread, NULL, release, chunk));
            CHECK_EQ(0, pthread_join(thread, NULL));
        }
    }
    CHECK_EQ(TFW_END, status);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

/* ---- Failures ------------------------------------------------------------------------------- */

/* Counts the rows of all chunks, and goes on after every error, but one for want of memory. */
static uint64_t take_rows(tfw_pipeline *p, int *out_status, uint64_t *out_failures) {
    uint64_t rows = 0;
    tfw_chunk *chunk;
    tfw_error error;
    int status = TFW_OK;
    while (status == TFW_OK) {
        status = tfw_pipeline_next(p, -1, &chunk, &error);
        if (status == TFW_OK) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_column c;
            tfw_chunk_get(chunk, &info);
            CHECK_EQ(TFW_OK, tfw_chunk_column(chunk, false, 0, &c, NULL));
            for (uint64_t i = 0; i < info.records; i++) {
                CHECK_EQ((rows + i) % MANY, ((const int64_t *)c.values)[i]);
            }
            rows += info.records;
            tfw_chunk_release(chunk);
        } else if (status == TFW_E_IO) {
            tfw_place place, next;
            tfw_pipeline_stopped(p, &place, &next);
            CHECK_EQ(EIO, error.os_errno);
            CHECK_EQ((int64_t)place.record, error.record);
            CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &place, NULL));
            ++*out_failures;
            status = TFW_OK;
        }
    }
    *out_status = status;
    return rows;
}

/* Whichever read fails: everything before is delivered, and reading goes on there. */
static void failing_reads(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    for (uint32_t threads = 1; threads < 4; threads++) {
        uint64_t failures = 0;
        for (long i = 0; i < 40; i++) {
            int status;
            odd_source(i, -1);
            source.most = i % 2 != 0 ? 700 : 0;
            tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, threads, 4000);
            CHECK_EQ(2 * MANY, take_rows(p, &status, &failures));
            CHECK_EQ(TFW_END, status);
            tfw_pipeline_free(p);
        }
        CHECK(failures != 0);
    }
    table_free(&t);
    fileset_free(&set);
}

static void fail_request(const tfw_pipeline_options *options, long number) {
    tfw_pipeline *p = NULL;
    uint64_t failures = 0;
    tfwi_test_fail_allocation = number;
    int status = tfw_pipeline_create(options, &p, NULL);
    if (status == TFW_OK) {
        const uint64_t rows = take_rows(p, &status, &failures);
        CHECK(status == TFW_END ? rows == 2 * MANY : rows < 2 * MANY);
    }
    CHECK(status == TFW_END || status == TFW_E_MEMORY);
    tfw_pipeline_free(p);
    tfwi_test_fail_allocation = -1;
}

/* Whichever request for memory fails: the rows before it are right, and nothing is lost. */
static void without_memory(void) {
    fileset set = two_files(MANY);
    table t = table_new(false);
    const uint64_t sizes[] = {300, 100000, 300}, batches[] = {50, 50, 8};
    tfwi_test_pread = odd_pread;
    odd_source(-1, -1);
    for (uint32_t threads = 1; threads < 4; threads++) {
        for (long i = 0; i < 600; i += threads) {
            const size_t kind = (size_t)i / threads % 3;
            const tfw_pipeline_options options = {
                .size = sizeof options, .paths = (const char *const *)set.paths, .path_count = 2,
                .context = t.schema, .batch_size = batches[kind], .range_bytes = sizes[kind],
                .num_threads = threads,
                .flags = TFW_PIPELINE_NOTE_ABSENT | TFW_PIPELINE_POSITIONS};
            fail_request(&options, i / 3);
        }
    }
    table_free(&t);
    fileset_free(&set);
}

/* Somewhere in every record a header says that one of three megabytes begins there, which another
 * header follows. Threads that believe it ask for no such memory. */
static void headers_that_lie_take_no_memory(void) {
    enum { LEN = 7000, RECORDS_AHEAD = 400, COUNT_ALL = 800 };
    const wanted verify = {.mode = TFW_PIPELINE_VERIFY};
    const uint64_t range = 20000;
    fileset set = {0};
    file f = {0}, lie = {0};
    static uint8_t payload[LEN];
    file_append_header(&lie, RECORDS_AHEAD * (LEN + 16) - 16); /* to the same lie, some later */
    for (size_t at = 1000; at + TFW_HEADER_SIZE < LEN; at += 1000) {
        memcpy(payload + at, lie.data, TFW_HEADER_SIZE);
    }
    for (size_t i = 0; i < COUNT_ALL; i++) {
        file_append_record(&f, payload, LEN);
    }
    free(lie.data);
    fileset_add(&set, f);
    odd_source(-1, -1);
    source.naps = true; /* so that others read ahead */
    tfwi_test_largest_request = 0;
    check_all(&set, &verify, &range, 1, 3);
    CHECK(tfwi_test_largest_request < 2000000);
    source.naps = false;
    fileset_free(&set);
}

/* ---- Files that change ---------------------------------------------------------------------- */

static uint64_t rows_read;

/* Rows that a file has in both its forms, in order. Returns why reading ended. */
static int read_changing(const fileset *set, const table *t, const file *after, long changing,
                         uint32_t threads) {
    int status;
    uint64_t failures = 0;
    source.before = &set->files[0];
    source.after = after;
    odd_source(-1, changing);
    tfw_pipeline *p = pipeline_of(set, &parse_3, t, threads, 2000);
    rows_read = take_rows(p, &status, &failures);
    /* Another file may be longer: it is read as far as the first one went when it was opened. */
    CHECK(status != TFW_END || rows_read == MANY || after->len > set->files[0].len);
    tfw_pipeline_free(p);
    return status;
}

static void files_that_change(void) {
    fileset set = {0};
    table t = table_new(false);
    fileset_add(&set, file_of_examples(1, MANY, false));
    const file *f = &set.files[0];
    file grown = {0}, other = file_of_examples(77, MANY, false);
    file_append(&grown, f->data, f->len);
    file_append(&grown, other.data, other.len);
    file cut = {.data = f->data, .len = f->ends[MANY / 2]}; /* between two records */
    file torn = {.data = f->data, .len = f->ends[MANY / 3] + 20};
    for (uint32_t threads = 1; threads < 4; threads++) {
        for (long i = 0; i < 60; i += 3) {
            CHECK_EQ(TFW_END, read_changing(&set, &t, &grown, i, threads));
            CHECK_EQ(MANY, rows_read);
            int status = read_changing(&set, &t, &cut, i, threads);
            CHECK(status == TFW_END || status == TFW_E_TRUNCATED);
            status = read_changing(&set, &t, &torn, i, threads);
            CHECK(status == TFW_END || status == TFW_E_TRUNCATED);
            status = read_changing(&set, &t, &other, i, threads);
            CHECK(status == TFW_END || status < 0);
        }
        CHECK_EQ(TFW_E_TRUNCATED, read_changing(&set, &t, &cut, 0, threads));
        CHECK_EQ(TFW_E_TRUNCATED, read_changing(&set, &t, &torn, 0, threads));
    }
    free(grown.data);
    free(other.data);
    table_free(&t);
    fileset_free(&set);
}

/* What is appended before the end is reached is read, whoever has opened the file. */
static void files_that_grow(void) {
    table t = table_new(false);
    odd_source(-1, -1);
    for (uint32_t threads = 1; threads < 4; threads++) {
        fileset set = {0};
        file all = file_of_examples(1, MANY, false), begun = all;
        tfw_chunk *chunk;
        int status;
        begun.data = malloc(all.len);
        memcpy(begun.data, all.data, all.len);
        begun.len = all.ends[MANY / 2];
        fileset_add(&set, begun);
        const wanted w = {.batch_size = 1};
        tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, 100);
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        tfw_chunk_release(chunk);
        set.files[0].len = all.len;
        fileset_write(&set, 0);
        uint64_t rows = info.records;
        while ((status = tfw_pipeline_next(p, -1, &chunk, NULL)) == TFW_OK) {
            tfw_chunk_get(chunk, &info);
            rows += info.records;
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(TFW_END, status);
        CHECK_EQ(MANY, rows);
        tfw_pipeline_free(p);
        free(all.data);
        fileset_free(&set);
    }
    table_free(&t);
}

/* The least that a file can grow by: a record without a payload. */
static void files_that_grow_by_an_empty_record(void) {
    const wanted w = {.mode = TFW_PIPELINE_SPANS};
    odd_source(-1, -1);
    for (uint32_t threads = 1; threads < 4; threads++) {
        fileset set = {0};
        file f = file_of_examples(1, 20, false);
        const size_t before = f.len;
        tfw_chunk *chunk;
        uint64_t records = 0;
        file_append_record(&f, NULL, 0);
        CHECK_EQ(before + 16, f.len);
        f.len = before;
        fileset_add(&set, f);
        tfw_pipeline *p = pipeline_of(&set, &w, NULL, threads, 100);
        for (int status = TFW_OK; status == TFW_OK;) {
            status = tfw_pipeline_next(p, -1, &chunk, NULL);
            CHECK_EQ(records < 21 ? TFW_OK : TFW_END, status);
            if (status == TFW_OK) {
                tfw_chunk_info info = {.size = sizeof info};
                tfw_chunk_get(chunk, &info);
                records += info.records;
                tfw_chunk_release(chunk);
            }
            if (set.files[0].len == before) { /* the others have room for a few ranges */
                set.files[0].len += 16;
                fileset_write(&set, 0);
            }
        }
        CHECK_EQ(21, records);
        tfw_pipeline_free(p);
        fileset_free(&set);
    }
}

int main(void) {
    RUN(freed_at_any_time);
    RUN(waiting_ends);
    RUN(reading_ends_when_cancelled);
    RUN(planning_ends_when_cancelled);
    RUN(chunks_are_released_by_any_thread);
    RUN(failing_reads);
    RUN(without_memory);
    RUN(headers_that_lie_take_no_memory);
    RUN(files_that_change);
    RUN(files_that_grow);
    RUN(files_that_grow_by_an_empty_record);
    return check_report("life of pipelines");
}
