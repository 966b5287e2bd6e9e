/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a pipeline does not read, and what comes after damage, are read by somebody else and
 * pushed. What comes out is what one thread would give that passes whatever is wrong. */
#include "pipeline.h"

#ifdef TFW_TEST_QUICK
enum { MOST_THREADS = 3, SEEDS = 4 };
#else
enum { MOST_THREADS = 16, SEEDS = 6 };
#endif

/* Who reads a file record by record, and pushes them. */
typedef struct reader {
    bool reads;
    bool reads_all; /* the pipeline has no files */
    uint64_t file;
    size_t record;
    uint64_t state; /* of random numbers */
    tfw_batch batch; /* that found no room, or without records */
    uint8_t *data;
    tfw_span spans[64];
    uint64_t numbers[64];
    tfw_parcel *parcels[2]; /* one has what is pushed, the other what comes next */
    bool gathers; /* in them, from the beginning of the file up to damage */
    size_t fed; /* bytes */
    bool is_parcel; /* the batch is all of parcels[0] */
} reader;

static bool verifies(const file *f, size_t record) {
    const size_t begin = file_begin(f, record);
    tfw_span span;
    size_t count, consumed;
    return tfw_scan(f->data + begin, f->ends[record] - begin, 0, 0, &span, 1, &count, &consumed,
                    NULL) == TFW_OK;
}

/* Reads some records in a parcel; false: no more, up to damage. */
static bool gather(reader *r, const file *f) {
    tfw_parcel *parcel = r->parcels[1];
    tfw_batch batch = {0};
    tfw_error error;
    int status = TFW_NEED_INPUT;
    while (batch.count == 0 && status >= 0 && r->fed < f->len) {
        const size_t left = f->len - r->fed, most = 1 + (size_t)(check_random(&r->state) % 900);
        const size_t len = left < most ? left : most;
        status = tfw_parcel_add(parcel, f->data + r->fed, len, &batch, &error);
        r->fed += len;
    }
    r->gathers = status >= 0;
    r->is_parcel = batch.count != 0;
    if (r->is_parcel) {
        CHECK_EQ(TFW_OK, tfw_parcel_begin(r->parcels[0], parcel, NULL));
        r->parcels[1] = r->parcels[0];
        r->parcels[0] = parcel;
        r->batch = batch;
        r->data = malloc(1);
        CHECK_EQ(r->record, batch.first_record);
        r->record += (size_t)batch.count;
    }
    return r->is_parcel;
}

/* Reads some records; damaged ones are left out. The memory is a copy, for one push alone. */
static void read_batch(reader *r, const fileset *set, delivered *d) {
    const file *f = &set->files[r->file];
    const size_t first = r->record, most = 1 + (size_t)(check_random(&r->state) % 60);
    size_t count = 0;
    bool has_gap = false;
    if (r->gathers && gather(r, f)) {
        return;
    }
    for (; r->record < f->count && count < most; r->record++) {
        const size_t begin = file_begin(f, r->record);
        if (!verifies(f, r->record)) {
            d->stops++;
            has_gap = true;
            continue;
        }
        r->numbers[count] = r->record;
        r->spans[count++] = (tfw_span){begin - file_begin(f, first) + TFW_HEADER_SIZE,
                                       f->ends[r->record] - begin - 16};
    }
    const size_t begin = file_begin(f, first), end = file_begin(f, r->record);
    r->data = malloc(end - begin + 1);
    memcpy(r->data, f->data + begin, end - begin);
    r->batch = (tfw_batch){
        .size = sizeof r->batch,
        .data = r->data,
        .data_len = end - begin,
        .spans = r->spans,
        .count = count,
        .offset = begin,
        .first_record = count != 0 ? r->numbers[0] : 0,
        .numbers = has_gap || check_random(&r->state) % 8 == 0 ? r->numbers : NULL,
    };
}

static void begin_reading(reader *r, const tfw_place *at) {
    r->reads = true;
    r->file = at->file;
    r->record = (size_t)at->record;
    r->gathers = r->record == 0 && check_random(&r->state) % 2 == 0;
    r->fed = 0;
    CHECK_EQ(TFW_OK, tfw_parcel_begin(r->parcels[1], NULL, NULL));
}

/* Pushes some batches, or lets the pipeline go on. */
static void read_on(reader *r, const fileset *set, tfw_pipeline *p, delivered *d) {
    const file *f = &set->files[r->file];
    const bool goes_on = r->reads_all || check_random(&r->state) % 8 != 0;
    if (r->data == NULL && r->record < f->count && goes_on) {
        read_batch(r, set, d);
    }
    if (r->data != NULL) {
        const bool moves = r->is_parcel && check_random(&r->state) % 4 != 0;
        const int status = moves ? tfw_pipeline_push_parcel(p, r->parcels[0], r->file, NULL)
                                 : tfw_pipeline_push(p, &r->batch, r->file, NULL);
        CHECK(status == TFW_OK || status == TFW_NEED_SPACE);
        if (status == TFW_OK) {
            free(r->data);
            r->data = NULL;
            r->is_parcel = false;
        }
        return;
    }
    const bool has_ended = r->record == f->count;
    const tfw_place here = {r->file, r->record, file_begin(f, r->record)};
    const tfw_place next = {.file = r->file + 1};
    if (has_ended && r->file + 1 < set->count && set->paths[r->file + 1] == NULL &&
        (r->reads_all || check_random(&r->state) % 2 == 0)) {
        /* It is known that the pipeline does not read that one. */
        begin_reading(r, &next);
        read_on(r, set, p, d); /* a pipeline that is asked again gives up what it kept */
    } else if (r->reads_all) {
        r->reads = false;
    } else {
        CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, has_ended ? &next : &here, NULL));
        r->reads = false;
    }
}

static void check_misfit(const fileset *set, const tfw_pipeline *p, const delivered *d) {
    const file *f = &set->files[d->stopped.file];
    const size_t record = (size_t)d->stopped.record, begin = file_begin(f, record);
    const uint8_t *data;
    uint64_t len;
    const tfw_place next = place_after_record(set, &d->stopped);
    tfw_pipeline_misfit(p, &data, &len);
    CHECK_EQ(f->ends[record] - begin - 16, len);
    CHECK(memcmp(data, f->data + begin + TFW_HEADER_SIZE, (size_t)len) == 0);
    CHECK(same_place(&next, &d->next));
    CHECK_EQ((int64_t)record, d->error.record);
}

/* Whether the reader, or what it passes, goes on after a result that is no chunk. */
static bool go_on(reader *r, const fileset *set, tfw_pipeline *p, delivered *d) {
    if (d->status < 0) {
        const uint8_t *data;
        uint64_t len;
        tfw_pipeline_stopped(p, &d->stopped, &d->next);
        if (d->status <= TFW_E_WIRE) {
            check_misfit(set, p, d);
            CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &d->next, NULL));
            d->stops++;
            return true;
        }
        tfw_pipeline_misfit(p, &data, &len);
        CHECK(data == NULL && len == 0);
        begin_reading(r, &d->stopped);
    }
    if (r->reads) {
        do {
            read_on(r, set, p, d);
        } while (r->reads && r->data == NULL && check_random(&r->state) % 3 != 0);
        return true;
    }
    CHECK_EQ(TFW_END, d->status);
    return false;
}

static void run_pushing(const fileset *set, const wanted *w, uint32_t threads,
                        uint64_t range_bytes, uint64_t seed, bool reads_all, delivered *d) {
    const fileset none = {0};
    table t = table_new((w->flags & TFW_SEQUENCE) != 0);
    tfw_pipeline *p = pipeline_of(reads_all ? &none : set, w, &t, threads, range_bytes);
    tfw_chunk *chunk;
    tfw_place at = w->start;
    reader r = {.state = 2 * seed + 1, .reads_all = reads_all};
    bool goes_on = true;
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(TFW_OK, tfw_parcel_create(0, 0, &r.parcels[i], NULL));
    }
    if (reads_all) {
        begin_reading(&r, &(tfw_place){0});
    }
    *d = (delivered){.status = TFW_OK, .shortest = UINT64_MAX};
    while (goes_on && check_failures == 0) {
        const int32_t timeout = check_random(&r.state) % 2 == 0 ? 0 : -1;
        d->status = tfw_pipeline_next(p, timeout, &chunk, &d->error);
        if (d->status == TFW_OK) {
            take_chunk(set, w, chunk, d, &at);
            tfw_chunk_release(chunk);
        } else if (d->status != TFW_NEED_INPUT || r.reads) {
            goes_on = go_on(&r, set, p, d);
        }
    }
    if (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        take_chunk(set, w, chunk, d, &at);
        tfw_chunk_release(chunk);
    }
    CHECK((w->flags & TFW_PIPELINE_KEEP_REST) == 0 || d->uneven <= 1);
    CHECK_EQ(d->status, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_pipeline_tally(p, &d->total);
    tfw_pipeline_free(p);
    table_free(&t);
    tfw_parcel_free(r.parcels[0]);
    tfw_parcel_free(r.parcels[1]);
}

enum { ALL_FILES = 0xffff };

/* The files whose bits are set have no path; with ALL_FILES the pipeline knows of none. */
static void check_pushing(fileset *set, wanted w, unsigned handed, size_t most_threads) {
    const uint64_t ranges[] = {300, 2000, 0};
    char *paths[MOST_FILES];
    delivered expected;
    w.skips = true;
    model_files(set, &w, &expected);
    memcpy(paths, set->paths, sizeof paths);
    for (size_t i = 0; i < set->count; i++) {
        set->paths[i] = (handed >> i & 1) != 0 ? NULL : paths[i];
    }
    for (size_t i = 0; i < COUNT(thread_counts) && thread_counts[i] <= most_threads; i++) {
        for (uint64_t seed = 0; seed < SEEDS && check_failures == 0; seed++) {
            delivered found;
            run_pushing(set, &w, thread_counts[i], ranges[seed % 3], seed, handed == ALL_FILES,
                        &found);
            check_delivered(&expected, &found);
            if (check_failures != 0) {
                fprintf(stderr, "  %u threads, batches of %llu, seed %llu, files %x\n",
                        thread_counts[i], (unsigned long long)w.batch_size,
                        (unsigned long long)seed, handed);
            }
            delivered_free(&found);
        }
    }
    memcpy(set->paths, paths, sizeof paths);
    delivered_free(&expected);
}

static const unsigned choices[] = {ALL_FILES, 0x3f, 0x2a, 0x15, 0x06, 0x20, 0x01, 0};
static const wanted keeping = {.batch_size = 7, .flags = TFW_PIPELINE_KEEP_REST};

static void check_choices(fileset *set, wanted w) {
    const uint64_t batches[] = {1, 7, 64, 1000};
    for (size_t i = 0; i < COUNT(choices); i++) {
        for (size_t k = 0; k < COUNT(batches); k++) {
            w.batch_size = batches[k];
            check_pushing(set, w, choices[i], k == 1 ? MOST_THREADS : 3);
        }
    }
}

static void files_that_somebody_else_reads(void) {
    fileset set = {0};
    for (size_t i = 0; i < 6; i++) {
        fileset_add(&set, file_of_examples(i, i == 2 ? 0 : 30 * i + 5, false));
    }
    check_choices(&set, keeping);
    wanted w = keeping;
    w.flags |= TFW_PIPELINE_NOTE_ABSENT | TFW_PIPELINE_TALLY;
    check_pushing(&set, w, 0x15, 3);
    w.flags = 0;
    check_pushing(&set, w, 0x15, 3);
    fileset_free(&set);
}

static void sequences_that_somebody_else_reads(void) {
    fileset set = {0};
    wanted w = keeping;
    w.flags |= TFW_SEQUENCE;
    for (size_t i = 0; i < 4; i++) {
        fileset_add(&set, file_of_examples(i, 40, true));
    }
    check_pushing(&set, w, 0x6, MOST_THREADS);
    fileset_free(&set);
}

static void misfits_in_what_is_pushed(void) {
    for (size_t each = 1; each < 30; each += 6) {
        fileset set = {0};
        for (size_t i = 0; i < 6; i++) {
            fileset_add(&set, file_with_misfits(i, 20 * i + 3, each));
        }
        for (size_t i = 0; i < COUNT(choices); i++) {
            check_pushing(&set, keeping, choices[i], i == 2 ? MOST_THREADS : 3);
        }
        fileset_free(&set);
    }
}

/* The pipeline stops at the damage, or somebody else passes it. */
static void damage_in_between(void) {
    fileset set = {0};
    uint64_t state = 9;
    for (size_t i = 0; i < 6; i++) {
        file f = file_with_misfits(i, 100, 23);
        for (size_t k = 0; k < i; k++) {
            const size_t record = (size_t)(check_random(&state) % 100);
            f.data[file_begin(&f, record) + TFW_HEADER_SIZE] |= 0x80;
        }
        fileset_add(&set, f);
    }
    check_choices(&set, keeping);
    fileset_free(&set);
}

int main(void) {
    RUN(files_that_somebody_else_reads);
    RUN(sequences_that_somebody_else_reads);
    RUN(misfits_in_what_is_pushed);
    RUN(damage_in_between);
    return check_report("records that are pushed");
}
