/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of one to four threads over a damaged file, which is listed twice: ranges of any size,
 * so that guesses fail, every mode, batches of any size. One or both of the two may have no path:
 * then somebody else reads and pushes the records. What is delivered, and what stops it, is what a
 * plain walk finds; records that do not fit are passed. */
#include "common/script.h"

#include "common/table.h"

#include "tfwire_pipeline.h"

enum { FILES = 2, MOST_PUSHED = 60 };

/* What came out: records, hashes of all that they hold, whatever the chunks, and the end. */
typedef struct result {
    uint64_t records;
    uint64_t misfits;
    uint64_t columns[2][MAX_FEATURES][4];
    uint64_t payloads;
    uint64_t offsets;
    tfw_tally tally; /* without the checksum of the files */
    tfw_place stopped;
    int status;
} result;

typedef struct job {
    specs context, lists;
    const file *f;
    uint32_t mode, flags;
    uint64_t limit;
    uint64_t batch;
    uint64_t range;
    bool holds; /* columns outlive their chunk */
    unsigned handed; /* bits of the files without a path */
} job;

static uint64_t add_bytes(uint64_t h, const void *data, uint64_t len) {
    const uint8_t *p = data;
    for (uint64_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

static uint64_t add_lengths(uint64_t h, const int64_t *offsets, uint64_t count) {
    for (uint64_t i = 0; i < count && offsets != NULL; i++) {
        const int64_t length = offsets[i + 1] - offsets[i];
        h = add_bytes(h, &length, sizeof length);
    }
    return h;
}

static void add_column(uint64_t h[4], const tfw_column *c, uint64_t records) {
    h[0] = add_bytes(h[0], c->values, c->byte_count);
    h[1] = add_lengths(h[1], c->offsets, c->value_count);
    h[2] = add_lengths(h[2], c->splits, c->cell_count);
    h[3] = add_lengths(h[3], c->steps, records);
}

static void add_totals(tfw_tally *sum, const tfw_tally *tally) {
    sum->records += tally->records;
    sum->payload_bytes += tally->payload_bytes;
    sum->hash += tally->hash;
}

/* ---- The model ------------------------------------------------------------------------------ */

static int model_one(const job *j, tfw_columns *columns[2], const tfw_place *at, result *r) {
    const file *f = j->f;
    const bool unverified =
        (j->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 || j->mode == TFW_PIPELINE_OFFSETS;
    const unsigned crc = unverified ? TFW_NO_DATA_CRC : 0;
    const unsigned flags = j->flags & (TFW_EMPTY_IS_MISSING | TFW_SINGLE);
    int status = model_check(f, (size_t)at->offset, script_model_limit(j->limit), crc);
    if (status != TFW_OK) {
        return status;
    }
    const tfw_span span = {at->offset + TFW_HEADER_SIZE, tfwi_load64(f->data + at->offset)};
    const size_t size = (size_t)span.length + TFWI_FRAME_SIZE;
    tfw_tally tally = {0};
    switch (j->mode) {
    case TFW_PIPELINE_PARSE:
        return (j->flags & TFW_SEQUENCE) != 0
                   ? tfw_parse_sequence(columns[0], columns[1], f->data, f->len, &span, 1, flags,
                                        NULL, NULL)
                   : tfw_parse(columns[0], f->data, f->len, &span, 1, flags, NULL, NULL);
    case TFW_PIPELINE_VERIFY:
        CHECK_EQ(TFW_OK, tfw_tally_block(&tally, f->data + at->offset, size, crc, NULL));
        tally.hash *= (j->flags & TFW_PIPELINE_TALLY) != 0;
        add_totals(&r->tally, &tally);
        if (at->offset == 0) {
            r->payloads = add_bytes(r->payloads, f->data + TFW_HEADER_SIZE, span.length);
        }
        return TFW_OK;
    case TFW_PIPELINE_OFFSETS:
        r->offsets = add_bytes(r->offsets, &at->offset, sizeof at->offset);
        return TFW_OK;
    default: r->payloads = add_bytes(r->payloads, f->data + at->offset, size); return TFW_OK;
    }
}

static void model_files(const job *j, tfw_columns *columns[2], result *r) {
    tfw_place at = {0};
    *r = (result){.status = TFW_END};
    while (at.file < FILES) {
        if (at.offset == j->f->len) {
            at = (tfw_place){.file = at.file + 1};
            continue;
        }
        const int status = model_one(j, columns, &at, r);
        if (status > TFW_E_WIRE && status != TFW_OK) {
            r->status = status;
            r->stopped = at;
            break;
        }
        r->records += status == TFW_OK;
        r->misfits += status != TFW_OK;
        at.offset += tfwi_load64(j->f->data + at.offset) + TFWI_FRAME_SIZE;
        at.record++;
    }
    for (size_t k = 0; k < 2; k++) {
        const specs *s = k == 0 ? &j->context : &j->lists;
        for (size_t i = 0; i < s->count && columns[k] != NULL; i++) {
            tfw_column c;
            CHECK_EQ(TFW_OK, tfw_columns_peek(columns[k], i, &c, NULL));
            add_column(r->columns[k][i], &c, r->records);
        }
    }
}

/* ---- The pipeline --------------------------------------------------------------------------- */

static void take_column(tfw_chunk *chunk, bool is_list, size_t feature, tfw_column *column,
                        tfw_hold **hold) {
    CHECK_EQ(TFW_OK, hold == NULL ? tfw_chunk_column(chunk, is_list, feature, column, NULL)
                                  : tfw_chunk_hold(chunk, is_list, feature, column, hold, NULL));
}

static void take_columns(const job *j, tfw_chunk *chunk, uint64_t records, result *r) {
    tfw_hold *holds[2][MAX_FEATURES];
    tfw_column columns[2][MAX_FEATURES];
    const size_t counts[2] = {j->context.count,
                              (j->flags & TFW_SEQUENCE) != 0 ? j->lists.count : 0};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            take_column(chunk, k == 1, i, &columns[k][i], j->holds ? &holds[k][i] : NULL);
        }
    }
    if (j->holds) {
        tfw_chunk_release(chunk);
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            add_column(r->columns[k][i], &columns[k][i], records);
            if (j->holds) {
                tfw_hold_release(holds[k][i]);
            }
        }
    }
    if (!j->holds) {
        tfw_chunk_release(chunk);
    }
}

static void take_chunk(const job *j, tfw_chunk *chunk, result *r) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    CHECK(info.records != 0);
    add_totals(&r->tally, &info.tally);
    if (info.spans == NULL) {
        r->payloads = add_bytes(r->payloads, info.data, info.data_len);
    }
    if (info.offsets != NULL) {
        r->offsets = add_bytes(r->offsets, info.offsets, info.records * sizeof *info.offsets);
    }
    for (size_t i = 0; i < info.records && info.spans != NULL; i++) {
        const tfw_span *s = &info.spans[i];
        CHECK(s->offset >= TFW_HEADER_SIZE &&
              s->offset + s->length + TFW_FOOTER_SIZE <= info.data_len);
        r->payloads = add_bytes(r->payloads, info.data + s->offset - TFW_HEADER_SIZE,
                                s->length + TFWI_FRAME_SIZE);
    }
    r->records += info.records;
    if (j->mode == TFW_PIPELINE_PARSE) {
        take_columns(j, chunk, info.records, r);
    } else {
        tfw_chunk_release(chunk);
    }
}

/* Pushes the next records of a file without a path, or goes on after it; false: not after damage,
 * at which everything ends. */
static bool push_on(const job *j, tfw_pipeline *p, tfw_place *at, bool *pushes) {
    const unsigned crc = (j->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 ? TFW_NO_DATA_CRC : 0;
    const file *f = j->f;
    tfw_span spans[MOST_PUSHED];
    size_t count = 0, consumed = 0;
    (void)tfw_scan(f->data + at->offset, f->len - (size_t)at->offset,
                   script_model_limit(j->limit), crc, spans, 1 + (size_t)j->range % MOST_PUSHED,
                   &count, &consumed, NULL);
    if (count == 0) {
        const bool is_end = at->offset == f->len;
        const tfw_place next = {.file = is_end ? at->file + 1 : FILES};
        CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &next, NULL));
        *pushes = false;
        return is_end;
    }
    uint8_t *copy = malloc(consumed);
    memcpy(copy, f->data + at->offset, consumed);
    const tfw_batch batch = {.size = sizeof batch, .data = copy, .data_len = consumed,
                             .spans = spans, .count = count, .offset = at->offset,
                             .first_record = at->record};
    const int status = tfw_pipeline_push(p, &batch, at->file, NULL);
    CHECK(status == TFW_OK || status == TFW_NEED_SPACE);
    free(copy);
    at->offset += status == TFW_OK ? consumed : 0;
    at->record += status == TFW_OK ? count : 0;
    return true;
}

/* Goes on after a record that does not fit. */
static void pass_misfit(tfw_pipeline *p, result *r) {
    tfw_place next;
    const uint8_t *data;
    uint64_t len;
    tfw_pipeline_stopped(p, &r->stopped, &next);
    tfw_pipeline_misfit(p, &data, &len);
    CHECK(data != NULL && next.offset == r->stopped.offset + len + TFWI_FRAME_SIZE);
    CHECK_EQ(r->stopped.record + 1, next.record);
    CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &next, NULL));
    r->misfits++;
}

static void run_pipeline(const job *j, int fd, uint32_t threads, result *r) {
    char path[64];
    const char *paths[FILES] = {(j->handed & 1) != 0 ? NULL : path,
                                (j->handed & 2) != 0 ? NULL : path};
    const bool parses = j->mode == TFW_PIPELINE_PARSE;
    const bool sequence = (j->flags & TFW_SEQUENCE) != 0;
    const tfw_pipeline_options options = {
        .size = sizeof options, .paths = paths, .path_count = FILES,
        .context = parses ? j->context.schema : NULL,
        .lists = sequence ? j->lists.schema : NULL,
        .batch_size = parses ? j->batch : 0, .max_record_size = j->limit,
        .range_bytes = j->range, .num_threads = threads, .mode = j->mode, .flags = j->flags};
    tfw_pipeline *p;
    tfw_chunk *chunk;
    tfw_place next, at = {0};
    uint64_t uneven = 0;
    int status = TFW_OK;
    bool was_told = false, pushes = false, goes_on = true;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *r = (result){.status = TFW_END};
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    while (status == TFW_OK && check_failures == 0) {
        status = tfw_pipeline_next(p, pushes ? 0 : -1, &chunk, NULL);
        if (status == TFW_OK) {
            CHECK(!parses || uneven == 0 || (j->flags & TFW_PIPELINE_KEEP_REST) == 0);
            const uint64_t before = r->records;
            take_chunk(j, chunk, r);
            uneven += parses && (r->records - before) % j->batch != 0;
        } else if (status <= TFW_E_WIRE) {
            pass_misfit(p, r);
            status = TFW_OK;
        } else if (status == TFW_E_UNSUPPORTED || (status == TFW_NEED_INPUT && pushes)) {
            if (!pushes) {
                tfw_pipeline_stopped(p, &at, &next);
                pushes = true;
            }
            goes_on = push_on(j, p, &at, &pushes);
            status = TFW_OK;
        } else if ((j->flags & TFW_PIPELINE_KEEP_REST) != 0 && !was_told) {
            was_told = true; /* then what was kept */
            status = TFW_OK;
        }
    }
    r->stopped = (tfw_place){0};
    r->status = status;
    if (!goes_on) {
        CHECK_EQ(TFW_END, status);
        r->stopped = at;
        r->status = model_check(j->f, (size_t)at.offset, script_model_limit(j->limit),
                                (j->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 ? TFW_NO_DATA_CRC : 0);
    } else if (status < 0) {
        tfw_pipeline_stopped(p, &r->stopped, &next);
    }
    tfw_pipeline_free(p);
}

/* ---- Runs ----------------------------------------------------------------------------------- */

static void check_result(const result *e, const result *r) {
    CHECK_EQ(e->records, r->records);
    CHECK_EQ(e->misfits, r->misfits);
    CHECK_EQ(e->status, r->status);
    CHECK(memcmp(e->columns, r->columns, sizeof e->columns) == 0);
    CHECK_EQ(e->payloads, r->payloads);
    CHECK_EQ(e->offsets, r->offsets);
    CHECK(memcmp(&e->tally, &r->tally, sizeof e->tally) == 0);
    CHECK(memcmp(&e->stopped, &r->stopped, sizeof e->stopped) == 0);
}

/* flags; mode, threads and limit; batch, range; schemas; the file. */
static void run(input *in) {
    const uint8_t choice = input_byte(in), how = input_byte(in);
    job j = {
        .mode = (how & 0x40) != 0 ? TFW_PIPELINE_OFFSETS
                : how % 4 == 3        ? TFW_PIPELINE_PARSE
                                      : how % 4,
        .limit = script_limits[how >> 2 & 3],
        .batch = 1 + input_byte(in) % 32,
        .range = 1 + input_number(in, 2) % 5000,
        .holds = (choice & 64) != 0,
    };
    const uint32_t threads = 1 + (how >> 4 & 3);
    j.handed = j.mode == TFW_PIPELINE_PARSE ? (choice >> 7) | (how >> 7) << 1 : 0;
    const uint32_t parse_flags = choice & (TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE);
    j.flags = (j.mode == TFW_PIPELINE_PARSE ? parse_flags : 0) |
              ((choice & 8) != 0 ? TFW_PIPELINE_NO_DATA_CRC : 0) |
              ((choice & 16) != 0 ? TFW_PIPELINE_KEEP_REST : 0) |
              (j.mode == TFW_PIPELINE_VERIFY && (choice & 64) != 0 ? TFW_PIPELINE_TALLY : 0);
    file f = {0};
    tfw_columns *columns[2] = {NULL, NULL};
    result expected, found;
    specs_init(&j.context, in, false);
    specs_init(&j.lists, in, true);
    script_run(&f, in);
    j.f = &f;
    int fd = script_open(&f, (choice & 32) != 0 ? choice : 0);
    CHECK_EQ(TFW_OK, tfw_columns_create(j.context.schema, TFW_OWN_NUMBERS, &columns[0], NULL));
    if ((j.flags & TFW_SEQUENCE) != 0) {
        CHECK_EQ(TFW_OK, tfw_columns_create(j.lists.schema, TFW_OWN_NUMBERS | TFW_FEATURE_LISTS,
                                            &columns[1], NULL));
    }
    model_files(&j, columns, &expected);
    run_pipeline(&j, fd, threads, &found);
    check_result(&expected, &found);
    tfw_columns_free(columns[0]);
    tfw_columns_free(columns[1]);
    tfw_schema_free(j.context.schema);
    tfw_schema_free(j.lists.schema);
    free(f.data);
}

FUZZ_TARGET(run)
