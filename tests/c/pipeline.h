/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines, and what they must deliver: what a plain walk over the files finds. */
#ifndef TFWIRE_TESTS_PIPELINE_H
#define TFWIRE_TESTS_PIPELINE_H

#include "fileset.h"
#include "tfwire_pipeline.h"

enum { COLUMNS = 4 };

/* Of a column: values, the lengths of strings, cells and lists, and the records without it. */
enum { PARTS = 5 };

/* ---- What came out -------------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t *data;
    size_t len, capacity;
} bytes;

static inline void bytes_append(bytes *b, const void *data, size_t len) {
    if (b->len + len > b->capacity) {
        b->capacity = 2 * (b->len + len);
        b->data = realloc(b->data, b->capacity);
    }
    if (len != 0) {
        memcpy(b->data + b->len, data, len);
    }
    b->len += len;
}

/* Everything about the records of a pipeline, in order, whatever the chunks were. */
typedef struct delivered {
    uint64_t records;
    bytes columns[COLUMNS][PARTS];
    bytes payloads;     /* with their frames; to verify, of the first record of every file */
    bytes offsets;
    tfw_tally tallies[MOST_FILES];
    tfw_tally total; /* of all records parsed, if that is asked for */
    uint64_t shortest, longest;
    tfw_error error;
    int status;
    tfw_place stopped, next;
    uint64_t stops; /* errors that were passed */
    uint64_t uneven; /* batches that were not full */
} delivered;

static inline void append_lengths(bytes *b, const int64_t *offsets, uint64_t count) {
    for (uint64_t i = 0; i < count && offsets != NULL; i++) {
        const int64_t length = offsets[i + 1] - offsets[i];
        bytes_append(b, &length, sizeof length);
    }
}

/* Of records that follow so many others; absent counts from first_row. */
static inline void append_column(bytes out[PARTS], const tfw_column *c, uint64_t records,
                                 uint64_t before, uint64_t first_row) {
    bytes_append(&out[0], c->values, (size_t)c->byte_count);
    append_lengths(&out[1], c->offsets, c->value_count);
    append_lengths(&out[2], c->splits, c->cell_count);
    append_lengths(&out[3], c->steps, records);
    for (uint64_t i = 0; i < c->absent_count; i++) {
        const uint64_t record = (uint64_t)c->absent[i] - first_row + before;
        CHECK(record - before < records);
        bytes_append(&out[4], &record, sizeof record);
    }
}

static inline void delivered_free(delivered *d) {
    for (size_t i = 0; i < COLUMNS; i++) {
        for (size_t k = 0; k < PARTS; k++) {
            free(d->columns[i][k].data);
        }
    }
    free(d->payloads.data);
    free(d->offsets.data);
}

static inline bool same_data(const bytes *a, const bytes *b) {
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static inline bool same_place(const tfw_place *a, const tfw_place *b) {
    return a->file == b->file && a->record == b->record && a->offset == b->offset;
}

static inline void check_delivered(const delivered *e, const delivered *d) {
    CHECK_EQ(e->records, d->records);
    CHECK_EQ(e->status, d->status);
    CHECK_EQ(e->stops, d->stops);
    for (size_t i = 0; i < COLUMNS; i++) {
        for (size_t k = 0; k < PARTS; k++) {
            CHECK(same_data(&e->columns[i][k], &d->columns[i][k]));
        }
    }
    CHECK(same_data(&e->payloads, &d->payloads));
    CHECK(same_data(&e->offsets, &d->offsets));
    CHECK(memcmp(e->tallies, d->tallies, sizeof e->tallies) == 0);
    CHECK(memcmp(&e->total, &d->total, sizeof e->total) == 0);
    CHECK(e->shortest == d->shortest && e->longest == d->longest);
    if (e->status < 0) {
        CHECK_EQ(e->error.record, d->error.record);
        CHECK_EQ(e->error.offset, d->error.offset);
        CHECK_EQ(e->error.feature, d->error.feature);
        CHECK_EQ(e->error.expected, d->error.expected);
        CHECK_EQ(e->error.found, d->error.found);
        CHECK(strcmp(e->error.text, d->error.text) == 0);
        CHECK(same_place(&e->stopped, &d->stopped));
    }
}

/* ---- The model ------------------------------------------------------------------------------ */

typedef struct wanted {
    uint32_t mode, flags;
    uint64_t batch_size, max_record_size;
    bool skips; /* goes on after every error, at the next record */
    bool keeps; /* all chunks, up to the end: they stay as they were delivered */
    bool selects; /* some of the records */
    tfw_place start;
    size_t added_from; /* not 0: files that are added later, one at a time, at the end of others */
} wanted;

static const uint64_t thirds = 3;

/* Where record number i of a file ends, whatever became of its bytes. */
static inline tfw_place place_after_record(const fileset *set, const tfw_place *at) {
    return (tfw_place){at->file, at->record + 1, set->files[at->file].ends[at->record]};
}

/* A tfw_select of a third of the lengths. Threads call it, which CHECK is not for: it counts. */
static inline size_t select_some(const uint8_t *data, size_t data_len, const tfw_span *spans,
                                 size_t count, const void *wanted, uint32_t *out) {
    size_t found = 0;
    if (wanted != &thirds || data == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (spans[i].offset > data_len || spans[i].length > data_len - spans[i].offset) {
            abort();
        }
        if (spans[i].length % thirds == 0) {
            out[found++] = (uint32_t)i;
        }
    }
    return found;
}

/* What becomes of a record that is not parsed. */
static inline void model_totals(const wanted *w, const uint8_t *data, tfw_span span, unsigned crc,
                                const tfw_place *at, delivered *d) {
    const uint8_t *record = data + at->offset;
    const size_t len = (size_t)span.length, size = len + 16;
    if (w->mode == TFW_PIPELINE_OFFSETS) {
        bytes_append(&d->offsets, &at->offset, sizeof at->offset);
    } else if (w->selects) {
        bytes_append(&d->offsets, at, len % thirds == 0 ? sizeof *at : 0);
        bytes_append(&d->payloads, record + 12, len % thirds == 0 ? len : 0);
    } else if (w->mode == TFW_PIPELINE_SPANS) {
        bytes_append(&d->payloads, record, size);
    } else {
        bytes_append(&d->payloads, record + 12, at->offset == 0 ? len : 0);
        tfw_tally *tally = &d->tallies[at->file];
        CHECK_EQ(TFW_OK, tfw_tally_block(tally, record, size, crc, NULL));
        if ((w->flags & TFW_PIPELINE_TALLY) == 0) {
            tally->hash = tally->file_crc = 0;
        }
        d->shortest = span.length < d->shortest ? span.length : d->shortest;
        d->longest = span.length > d->longest ? span.length : d->longest;
    }
}

/* One record of the model; a status. */
static inline int model_record(const fileset *set, const wanted *w, table *t, tfw_place *at,
                               delivered *d) {
    const file *f = &set->files[at->file];
    const bool unverified =
        (w->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 || w->mode == TFW_PIPELINE_OFFSETS;
    const unsigned crc = unverified ? TFW_NO_DATA_CRC : 0;
    tfw_span span;
    size_t count = 0, consumed = 0;
    int status = tfw_scan(f->data + at->offset, f->len - (size_t)at->offset, w->max_record_size,
                          crc, &span, 1, &count, &consumed, &d->error);
    if (status == TFW_NEED_INPUT) { /* as the reader says it */
        tfw_reader_options options = {.size = sizeof options, .fd = -1, .offset = at->offset};
        tfw_reader *reader;
        tfw_batch batch = {.size = sizeof batch};
        uint8_t *room;
        size_t len, left = f->len - (size_t)at->offset;
        CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
        CHECK_EQ(TFW_OK, tfw_reader_seek(reader, at->offset, at->record, NULL));
        for (size_t done = 0; done <= left; done += len) {
            CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, NULL));
            len = len < left - done ? len : left - done;
            memcpy(room, f->data + at->offset + done, len);
            CHECK_EQ(TFW_OK, tfw_reader_commit(reader, len, NULL));
            status = tfw_reader_next(reader, 0, &batch, &d->error);
            if (len == 0) {
                break;
            }
        }
        tfw_reader_free(reader);
        return status;
    }
    if (status != TFW_OK) {
        d->error.record = (int64_t)at->record;
        d->error.offset = (int64_t)at->offset;
        return status;
    }
    if (w->mode == TFW_PIPELINE_PARSE) {
        span.offset += at->offset;
        status = t->lists != NULL ? tfw_parse_sequence(t->context, t->lists, f->data, f->len,
                                                       &span, 1, 0, NULL, &d->error)
                                  : tfw_parse(t->context, f->data, f->len, &span, 1, 0, NULL,
                                              &d->error);
        d->error.record = (int64_t)at->record;
    } else {
        model_totals(w, f->data, span, crc, at, d);
    }
    if (status == TFW_OK && (w->flags & TFW_PIPELINE_TALLY) != 0) {
        CHECK_EQ(TFW_OK, tfw_tally_block(&d->total, f->data + at->offset, consumed, crc, NULL));
    }
    if (status == TFW_OK) {
        d->records++;
        at->record++;
        at->offset += consumed;
    }
    return status;
}

/* The columns of the model; dense numbers grow, too. */
static inline table table_of_model(uint32_t flags) {
    table t = table_new((flags & TFW_SEQUENCE) != 0);
    const unsigned absent = (flags & TFW_PIPELINE_NOTE_ABSENT) != 0 ? TFW_NOTE_ABSENT : 0;
    tfw_columns_free(t.context);
    CHECK_EQ(TFW_OK, tfw_columns_create(t.schema, TFW_OWN_NUMBERS | absent, &t.context, NULL));
    if (t.lists != NULL) {
        tfw_columns_free(t.lists);
        CHECK_EQ(TFW_OK, tfw_columns_create(t.list_schema, TFW_FEATURE_LISTS | absent, &t.lists,
                                            NULL));
    }
    return t;
}

static inline void model_files(const fileset *set, const wanted *w, delivered *d) {
    table t = table_of_model(w->flags);
    tfw_place at = w->start;
    *d = (delivered){.status = TFW_END, .shortest = UINT64_MAX};
    while (at.file < set->count) {
        if (at.offset == set->files[at.file].len) {
            at = (tfw_place){.file = at.file + 1};
            continue;
        }
        const int status = model_record(set, w, &t, &at, d);
        if (status != TFW_OK && w->skips) {
            d->stops++;
            at = place_after_record(set, &at);
        } else if (status != TFW_OK) {
            d->status = status;
            d->stopped = at;
            break;
        }
    }
    for (size_t i = 0; i < 3 && w->mode == TFW_PIPELINE_PARSE; i++) {
        tfw_column c;
        CHECK_EQ(TFW_OK, tfw_columns_peek(t.context, i, &c, NULL));
        append_column(d->columns[i], &c, d->records, 0, 0);
    }
    if (t.lists != NULL) {
        tfw_column c;
        CHECK_EQ(TFW_OK, tfw_columns_peek(t.lists, 0, &c, NULL));
        append_column(d->columns[3], &c, d->records, 0, 0);
    }
    table_free(&t);
}

/* ---- The pipeline --------------------------------------------------------------------------- */

static inline tfw_pipeline *pipeline_of(const fileset *set, const wanted *w, const table *t,
                                        uint32_t threads, uint64_t range_bytes) {
    const bool parses = w->mode == TFW_PIPELINE_PARSE;
    const tfw_pipeline_options options = {
        .size = sizeof options,
        .paths = (const char *const *)set->paths,
        .path_count = w->added_from != 0 ? w->added_from : set->count,
        .start = w->start,
        .context = parses ? t->schema : NULL,
        .lists = parses && (w->flags & TFW_SEQUENCE) != 0 ? t->list_schema : NULL,
        .batch_size = w->batch_size,
        .max_record_size = w->max_record_size,
        .range_bytes = range_bytes,
        .num_threads = threads,
        .mode = w->mode,
        .flags = w->flags,
        .select = w->selects ? select_some : NULL,
        .wanted = &thirds,
    };
    tfw_pipeline *p = NULL;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    return p;
}

/* A place is where its record begins, or the file ends. */
static inline void check_place(const fileset *set, const tfw_place *at) {
    const file *f = &set->files[at->file];
    CHECK(at->file < set->count && at->record <= f->count);
    CHECK_EQ(file_begin(f, (size_t)at->record), at->offset);
}

/* Begins and ends of chunks follow each other, whichever the files. */
static inline void check_places(const fileset *set, const tfw_chunk_info *info, tfw_place *at) {
    while (at->file < set->count && at->offset >= set->files[at->file].len) {
        *at = (tfw_place){.file = at->file + 1};
    }
    CHECK(same_place(at, &info->begin));
    *at = info->end;
}

/* Records follow each other, each where it begins in its file: to the byte, but if it was parsed
 * without TFW_PIPELINE_POSITIONS, or only counted. */
static inline void check_records(const fileset *set, const wanted *w, const tfw_chunk *chunk,
                                 const tfw_chunk_info *info) {
    const bool is_exact = (w->flags & TFW_PIPELINE_POSITIONS) || w->mode >= TFW_PIPELINE_SPANS;
    tfw_place last = info->begin, at = last;
    for (uint64_t i = 0; i < info->records; i++, last = at) {
        tfw_chunk_place(chunk, i, &at);
        CHECK(at.file < set->count && at.record < set->files[at.file].count);
        const uint64_t begin = file_begin(&set->files[at.file], (size_t)at.record);
        CHECK(at.offset == begin || (!is_exact && at.offset < begin));
        CHECK(i == 0 ? same_place(&last, &at)
                     : at.file > last.file || (at.file == last.file && at.record > last.record));
    }
    CHECK(at.file == info->end.file && at.record + 1 == info->end.record);
}

static inline void take_chunk(const fileset *set, const wanted *w, const tfw_chunk *chunk,
                              delivered *d, tfw_place *at) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    CHECK(info.records != 0);
    check_place(set, &info.begin);
    check_place(set, &info.end);
    CHECK(w->selects || info.selected == (w->mode == TFW_PIPELINE_SPANS ? info.records : 0));
    if (!w->selects) {
        check_records(set, w, chunk, &info);
    }
    if (d->stops == 0) {
        check_places(set, &info, at);
    }
    if (w->mode == TFW_PIPELINE_PARSE) {
        CHECK_EQ(0, d->records % w->batch_size * (d->uneven == 0));
        d->uneven += info.records % w->batch_size != 0;
        for (size_t i = 0; i < COLUMNS; i++) {
            tfw_column c;
            const int status = tfw_chunk_column(chunk, i == 3, i % 3, &c, NULL);
            CHECK_EQ(i < 3 || (w->flags & TFW_SEQUENCE) != 0 ? TFW_OK : TFW_E_ARGUMENT, status);
            append_column(d->columns[i], &c, info.records, d->records, info.first_row);
        }
    } else if (w->mode == TFW_PIPELINE_VERIFY) {
        tfw_tally *tally = &d->tallies[info.begin.file];
        const uint64_t size = info.tally.payload_bytes + 16 * info.tally.records;
        CHECK_EQ(info.records, info.tally.records);
        CHECK_EQ(info.begin.file, info.end.file);
        tally->records += info.tally.records;
        tally->payload_bytes += info.tally.payload_bytes;
        tally->hash += info.tally.hash;
        tally->file_crc = tfw_crc32c_combine(tally->file_crc, info.tally.file_crc, size);
        d->shortest = info.shortest < d->shortest ? info.shortest : d->shortest;
        d->longest = info.longest > d->longest ? info.longest : d->longest;
        CHECK(info.begin.offset == 0 || info.data_len == 0);
        bytes_append(&d->payloads, info.data, (size_t)info.data_len);
    } else if (w->mode == TFW_PIPELINE_OFFSETS) {
        bytes_append(&d->offsets, info.offsets, (size_t)info.records * sizeof *info.offsets);
    } else if (w->selects) {
        for (uint64_t i = 0; i < info.selected; i++) {
            const tfw_span s = info.spans[i];
            tfw_place place;
            tfw_chunk_place(chunk, i, &place);
            CHECK(s.offset + s.length <= info.data_len);
            bytes_append(&d->offsets, &place, sizeof place);
            bytes_append(&d->payloads, info.data + s.offset, (size_t)s.length);
        }
    } else {
        for (size_t i = 0; i < info.records; i++) {
            const tfw_span *s = &info.spans[i];
            CHECK(s->offset >= 12 && s->offset + s->length + 4 <= info.data_len);
            bytes_append(&d->payloads, info.data + s->offset - 12, (size_t)s->length + 16);
        }
    }
    d->records += info.records;
}

/* Chunks that are kept, and the first column of each, as it was lent. */
typedef struct shelf {
    tfw_chunk **chunks;
    tfw_column *lent;
    size_t count;
} shelf;

static inline void shelf_add(shelf *s, const wanted *w, tfw_chunk *chunk) {
    if (!w->keeps) {
        tfw_chunk_release(chunk);
        return;
    }
    s->chunks = realloc(s->chunks, (s->count + 1) * sizeof *s->chunks);
    s->lent = realloc(s->lent, (s->count + 1) * sizeof *s->lent);
    CHECK_EQ(TFW_OK, tfw_chunk_column(chunk, false, 0, &s->lent[s->count], NULL));
    s->chunks[s->count++] = chunk;
}

/* Takes again what was taken before. */
static inline void shelf_clear(shelf *s, const fileset *set, const wanted *w, const delivered *d) {
    delivered again = {.shortest = UINT64_MAX, .stops = d->stops};
    tfw_place at = w->start;
    bytes lent = {0};
    for (size_t i = 0; i < s->count; i++) {
        take_chunk(set, w, s->chunks[i], &again, &at);
        bytes_append(&lent, s->lent[i].values, (size_t)s->lent[i].byte_count);
        tfw_chunk_release(s->chunks[i]);
    }
    for (size_t i = 0; i < COLUMNS * PARTS && w->keeps; i++) {
        CHECK(same_data(&d->columns[i / PARTS][i % PARTS], &again.columns[i / PARTS][i % PARTS]));
    }
    CHECK(!w->keeps || same_data(&d->columns[0][0], &lent));
    delivered_free(&again);
    free(lent.data);
    free(s->lent);
    free(s->chunks);
}

/* Takes all chunks, with errors passed where they are to be skipped. */
static inline void run_pipeline(const fileset *set, const wanted *w, uint32_t threads,
                                uint64_t range_bytes, delivered *d) {
    table t = table_new((w->flags & TFW_SEQUENCE) != 0);
    tfw_pipeline *p = pipeline_of(set, w, &t, threads, range_bytes);
    tfw_chunk *chunk;
    tfw_place at = w->start;
    shelf kept = {0};
    size_t added = w->added_from != 0 ? w->added_from : set->count;
    *d = (delivered){.status = TFW_OK, .shortest = UINT64_MAX};
    while (d->status == TFW_OK) {
        d->status = tfw_pipeline_next(p, -1, &chunk, &d->error);
        if (d->status == TFW_OK) {
            take_chunk(set, w, chunk, d, &at);
            shelf_add(&kept, w, chunk);
        } else if (d->status < 0) {
            tfw_pipeline_stopped(p, &d->stopped, &d->next);
            if (w->skips) {
                const tfw_place next = place_after_record(set, &d->stopped);
                CHECK(d->next.record == 0 || same_place(&next, &d->next));
                CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &next, NULL));
                d->stops++;
                d->status = TFW_OK;
            }
        } else if (d->status == TFW_END && added < set->count) {
            const char *const path = set->paths[added++];
            CHECK_EQ(TFW_OK, tfw_pipeline_add(p, &path, 1, NULL));
            d->status = TFW_OK;
        } else if (d->status == TFW_END && (w->flags & TFW_PIPELINE_KEEP_REST) != 0 &&
                   tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            take_chunk(set, w, chunk, d, &at);
            shelf_add(&kept, w, chunk);
        }
    }
    tfw_error again;
    CHECK_EQ(d->status, tfw_pipeline_next(p, -1, &chunk, &again));
    CHECK(chunk == NULL);
    tfw_pipeline_tally(p, &d->total);
    tfw_pipeline_free(p);
    shelf_clear(&kept, set, w, d);
    table_free(&t);
}

static const uint32_t thread_counts[] = {1, 2, 3, 8, 16};

/* The same comes out with any number of threads, and of any range. */
static inline void check_all(const fileset *set, const wanted *w, const uint64_t *ranges,
                             size_t range_count, size_t most_threads) {
    delivered expected;
    model_files(set, w, &expected);
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        for (size_t k = 0; k < range_count && thread_counts[i] <= most_threads; k++) {
            delivered found;
            const int before = check_failures;
            run_pipeline(set, w, thread_counts[i], ranges[k], &found);
            check_delivered(&expected, &found);
            if (check_failures != before) {
                fprintf(stderr, "  %u threads, ranges of %llu, batches of %llu, mode %u\n",
                        thread_counts[i], (unsigned long long)ranges[k],
                        (unsigned long long)w->batch_size, w->mode);
            }
            delivered_free(&found);
        }
    }
    delivered_free(&expected);
}

#endif
