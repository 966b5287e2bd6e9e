/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a range: its records are found, verified and parsed once, by one thread, in pieces that
 * stay in its cache.
 *
 * Where the first record begins is a guess, unless the range follows from what is known: the first
 * header that verifies, if another one or the end of the file follows its record. Payloads may hold
 * such headers, so nothing that is read from a guess counts before the range before has ended at
 * that place (links.c). Until then a range takes no more memory than its own size, and stops at
 * whatever is unusual. It goes on there once it is known. */
#include "pipeline/pipeline.h"

#include "base/system.h"
#include "records/scan.h"
#include "records/walk.h"

enum {
    BUFFER = 300 << 10,  /* through which the records pass */
    PASSED = 1 << 20,    /* bytes read at a time where they are only verified: fewer calls */
    PEEK = 1 << 16,      /* read at a time to find a header */
    FIRST_PEEK = 1 << 12, /* the same at first, where what was read is read again */
    OFFSETS = 1 << 10,   /* for which there is room whenever headers are walked over */
    MOST_CANDIDATES = 16 /* headers that verify in a range: a hostile file has many */
};

/* A part of a file that is read in one go, into a block. */
typedef struct part {
    const tfw_pipeline *p;
    tfwi_block *block;
    const tfwi_source *source;
    uint64_t size;    /* of the file */
    uint64_t limit;   /* no record begins from there on */
    size_t most;      /* records */
    uint64_t longest; /* record for which memory is reserved, if the file is so long */
    bool notes_offsets;
    tfw_place *at;   /* where it begins, and then ends */
    tfwi_range *range; /* which learns of the record at fault */
} part;

/* ---- The buffer ----------------------------------------------------------------------------- */

/* A worker's stretch at a place of a file. What it holds of that it keeps: records are read in
 * order, where one thread reads them all. */
static void move_stretch(tfwi_worker *w, const tfwi_source *source, uint64_t offset,
                         uint64_t limit) {
    tfwi_stretch *s = &w->stretch;
    if (w->serial != source->serial || s->offset != offset) {
        s->begin = s->end = 0;
    }
    s->fd = source->fd;
    s->offset = offset;
    w->serial = source->serial;
    if (s->end - s->begin > limit - offset) {
        s->end = s->begin + (size_t)(limit - offset);
    }
}

/* For records that stay in the block, after those that it holds. */
static tfwi_stretch stretch_of_block(const part *q) {
    return (tfwi_stretch){.fd = q->source->fd, .offset = q->at->offset, .buffer = q->block->data,
                          .capacity = q->block->capacity, .begin = q->block->end,
                          .end = q->block->end};
}

/* Whether records pass through the buffer, and nothing but totals or a few of them is kept. */
static bool records_pass(const tfw_pipeline *p) {
    return p->mode == TFW_PIPELINE_VERIFY || p->select != NULL;
}

static bool grow_buffer(const tfw_pipeline *p, tfwi_stretch *s, uint64_t capacity) {
    tfwi_bytes buffer = {.of = s->buffer, .capacity = s->capacity,
                         .hint = records_pass(p) ? PASSED + BUFFER : BUFFER};
    const bool done = TFWI_RESERVE(buffer, capacity);
    s->buffer = buffer.of;
    s->capacity = buffer.capacity;
    return done;
}

/* Makes room for the next record, which takes needed bytes as far as known. TFW_END: that is too
 * much for a guess. */
static int make_room(const part *q, tfwi_stretch *s, uint64_t needed, tfw_error *error) {
    uint64_t size = 0;
    if (needed > q->longest) {
        return TFW_END;
    }
    if (!tfwi_system_size(s->fd, &size)) {
        size = q->size;
    }
    const uint64_t there = size > s->offset ? size - s->offset : 0;
    if (needed > there && s->end - s->begin >= TFW_HEADER_SIZE) {
        return tfwi_report_cut(s, needed, there, (size_t)q->at->record, error);
    }
    const bool stays = q->p->mode == TFW_PIPELINE_SPANS && q->p->select == NULL;
    const uint64_t kept = stays ? s->begin : 0;
    return grow_buffer(q->p, s, kept + needed + TFW_HEADER_SIZE)
               ? TFW_OK
               : tfwi_fail(error, TFW_E_MEMORY, "no memory for a record");
}

/* ---- Records -------------------------------------------------------------------------------- */

/* Reads on until the part ends. A record that begins before the limit is read to its end: then the
 * stop moves there, for this record alone. TFW_END: the next one is too long for a guess. */
static int read_to_limit(const part *q, tfwi_reading *reading, tfw_error *error) {
    tfwi_stretch *s = reading->s;
    const size_t first = reading->done;
    size_t most = q->most < SIZE_MAX - first ? first + q->most : SIZE_MAX;
    int status = TFW_OK;
    s->stop = q->limit;
    while (status == TFW_OK && s->offset < q->limit && reading->done < most) {
        status = tfwi_read_records(reading, most, error);
        q->at->record = reading->done;
        const bool is_at_stop = s->offset + (s->end - s->begin) >= s->stop;
        if (status == TFW_NEED_SPACE) {
            status = make_room(q, s, (uint64_t)error->expected, error);
        } else if (status == TFW_E_TRUNCATED && is_at_stop) {
            s->stop = s->offset + (uint64_t)error->expected;
            most = reading->done + 1;
            status = TFW_OK;
        } else if (status == TFW_END && is_at_stop) {
            status = TFW_OK;
        } else if (status == TFW_END) {
            status = tfwi_fail(error, TFW_E_TRUNCATED,
                               "the file was cut or replaced while it was read");
            error->offset = tfwi_saturated(s->offset);
        }
    }
    return status;
}

/* Notes what follows the record at fault. Damage hides that; one that does not fit lies whole at
 * begin. */
static void note_fault(const part *q, const tfwi_stretch *s, int status) {
    tfwi_range *r = q->range;
    r->next = (tfw_place){.file = q->at->file};
    if (status <= TFW_E_WIRE) {
        const uint8_t *record = s->buffer + s->begin;
        const uint64_t len = tfwi_load64(record);
        r->next.record = q->at->record + 1;
        r->next.offset = q->at->offset + len + TFWI_FRAME_SIZE;
        if (r->is_known) {
            tfwi_range_keep_misfit(r, record + TFW_HEADER_SIZE, len);
        }
    }
}

static int read_part_with(const part *q, tfwi_stretch *s, tfwi_run *run, tfwi_bytes *first,
                          tfwi_selection *selection, tfw_error *error) {
    const tfw_pipeline *p = q->p;
    tfwi_block *block = q->block;
    const bool verifies = p->mode == TFW_PIPELINE_VERIFY;
    const unsigned known = TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE;
    tfwi_reading reading = {
        .s = s,
        .context = block->columns[0],
        .lists = block->columns[1],
        .flags = p->flags & known,
        .tally = (p->flags & TFW_PIPELINE_TALLY) != 0 ? &run->tally : NULL,
        .lengths = verifies ? run->lengths : NULL,
        .offsets = q->notes_offsets ? &block->offsets : NULL,
        .spans = p->mode == TFW_PIPELINE_SPANS && selection == NULL ? &block->spans : NULL,
        .first = first,
        .selection = selection,
        .stop = &p->is_cancelled,
        .piece = records_pass(p) ? PASSED : 0,
        .done = (size_t)q->at->record,
    };
    s->flags = (p->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 ? TFW_NO_DATA_CRC : 0;
    s->max_record_size = p->max_record_size;
    const int status = read_to_limit(q, &reading, error);
    q->at->record = reading.done;
    q->at->offset = s->offset;
    if (status < 0) {
        note_fault(q, s, status);
        error->record = tfwi_saturated(q->at->record);
    }
    return status;
}

/* Finds where the records begin, by their headers. */
static int walk_part(tfwi_worker *w, const part *q, tfw_error *error) {
    tfwi_offsets *offsets = &q->block->offsets;
    int status = TFW_OK;
    w->serial = 0; /* the buffer no longer holds the stretch */
    if (!grow_buffer(q->p, &w->stretch, BUFFER)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    while (status == TFW_OK) {
        if (!TFWI_RESERVE_MORE(*offsets, OFFSETS)) {
            status = tfwi_fail(error, TFW_E_MEMORY, "out of memory");
            break;
        }
        tfwi_walk walk = {
            .fd = q->source->fd,
            .end = q->size,
            .limit = q->limit,
            .max_record_size = q->p->max_record_size,
            .offset = q->at->offset,
            .first = q->at->record,
            .buffer = w->stretch.buffer,
            .buffer_len = w->stretch.capacity,
            .offsets = (int64_t *)offsets->of + offsets->count,
            .capacity = offsets->capacity - offsets->count,
        };
        status = tfwi_walk_on(&walk, error);
        offsets->count += walk.count;
        q->at->record += walk.count;
        q->at->offset = walk.offset;
    }
    if (status < 0) {
        q->range->next = (tfw_place){.file = q->at->file};
        error->record = tfwi_saturated(q->at->record);
    }
    return status == TFW_END ? TFW_OK : status;
}

/* Reads the records of a part to totals, and keeps the payload of a file's first one. */
static int verify_part(tfwi_worker *w, const part *q, tfwi_run *run, tfw_error *error) {
    tfwi_block *block = q->block;
    tfwi_bytes first = {block->data, block->end, block->capacity, 0};
    run->first = block->end;
    move_stretch(w, q->source, q->at->offset, q->limit);
    const tfw_place from = *q->at;
    const int status =
        read_part_with(q, &w->stretch, run, from.offset == 0 ? &first : NULL, NULL, error);
    run->tally.records = q->at->record - from.record;
    run->tally.payload_bytes =
        q->at->offset - from.offset - run->tally.records * TFWI_FRAME_SIZE;
    run->first_len = first.count - block->end;
    block->data = first.of;
    block->capacity = first.capacity;
    block->end = first.count;
    return status;
}

/* Keeps the records of a part that are chosen. */
static int select_part(tfwi_worker *w, const part *q, tfwi_run *run, tfw_error *error) {
    tfwi_block *block = q->block;
    tfwi_selection selection = {.select = q->p->select,
                                .wanted = q->p->wanted,
                                .data = {block->data, block->end, block->capacity, 0},
                                .spans = block->spans,
                                .places = block->places};
    run->first = selection.places.count;
    move_stretch(w, q->source, q->at->offset, q->limit);
    const int status = read_part_with(q, &w->stretch, run, NULL, &selection, error);
    run->first_len = selection.places.count - run->first;
    block->data = selection.data.of;
    block->capacity = selection.data.capacity;
    block->end = selection.data.count;
    block->spans = selection.spans;
    block->places = selection.places;
    return status;
}

/* Reads a part; the place becomes where it ended. TFW_END: see read_to_limit. */
static int read_part(tfwi_worker *w, const part *q, tfw_error *error) {
    tfwi_block *block = q->block;
    tfwi_run run = {.row = block->rows, .begin = *q->at, .lengths = {UINT64_MAX, 0}};
    tfwi_fail(error, TFW_OK, "");
    if (!TFWI_RESERVE_MORE(block->runs, 1)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (q->at->offset >= q->limit) {
        return TFW_OK;
    }
    int status;
    if (q->p->mode == TFW_PIPELINE_OFFSETS) {
        status = walk_part(w, q, error);
    } else if (q->p->mode == TFW_PIPELINE_VERIFY) {
        status = verify_part(w, q, &run, error);
    } else if (q->p->select != NULL) {
        status = select_part(w, q, &run, error);
    } else if (q->p->mode == TFW_PIPELINE_SPANS) {
        tfwi_stretch s = stretch_of_block(q);
        status = read_part_with(q, &s, &run, NULL, NULL, error);
        block->data = s.buffer;
        block->capacity = s.capacity;
        block->end = s.begin;
    } else {
        move_stretch(w, q->source, q->at->offset, q->limit);
        status = read_part_with(q, &w->stretch, &run, NULL, NULL, error);
    }
    run.end = *q->at;
    if (run.end.record != run.begin.record) {
        block->rows += run.end.record - run.begin.record;
        block->runs.of[block->runs.count++] = run;
    }
    return status;
}

/* ---- A guess -------------------------------------------------------------------------------- */

/* Whether a header that verifies, or the end of the file, follows a record that begins at an
 * offset; the worker's buffer holds the file from base on. */
static bool is_followed(const tfwi_worker *w, const tfwi_segment *segment, uint64_t base,
                        size_t got, uint64_t offset) {
    const uint64_t length = tfwi_load64(w->stretch.buffer + (offset - base));
    if (length > segment->size - offset - TFWI_FRAME_SIZE) {
        return false;
    }
    const uint64_t next = offset + length + TFWI_FRAME_SIZE;
    uint8_t header[TFW_HEADER_SIZE];
    size_t read = 0;
    if (next == segment->size) {
        return true;
    }
    if (next - base + TFW_HEADER_SIZE <= got) {
        memcpy(header, w->stretch.buffer + (next - base), TFW_HEADER_SIZE);
    } else if (tfw_read_at(segment->source->fd, header, TFW_HEADER_SIZE, next, &read, NULL) !=
                   TFW_OK ||
               read != TFW_HEADER_SIZE) {
        return false;
    }
    return tfwi_header_verifies(tfwi_crc32c_current(), header);
}

/* Looks for a header from place `at` of the worker's buffer on, which holds got bytes of the file
 * from base on; *at becomes where it is. False: there is none before the end of what can be seen,
 * to which *at is moved. */
static bool find_header(const tfw_pipeline *p, const tfwi_worker *w, const tfwi_segment *segment,
                        uint64_t base, size_t got, size_t *at, size_t *candidates) {
    const uint64_t limit = tfwi_length_limit(p->max_record_size);
    const uint64_t left = segment->size - base - TFWI_FRAME_SIZE;
    const size_t end = got - TFW_HEADER_SIZE + 1;
    while (*at < end && *candidates < MOST_CANDIDATES) {
        *at += tfwi_scanner_current()->find_header(w->stretch.buffer + *at, end - *at,
                                                   limit < left ? limit : left);
        if (*at < end && segment->size - base - *at >= TFWI_FRAME_SIZE) {
            if (is_followed(w, segment, base, got, base + *at)) {
                return true;
            }
            ++*candidates;
        }
        *at += *at < end;
    }
    return false;
}

/* Guesses where the first record of a segment begins. The worker's stretch is there then. */
static bool guess_begin(const tfw_pipeline *p, tfwi_worker *w, const tfwi_segment *segment,
                        uint64_t *out_begin) {
    const tfwi_source *source = segment->source;
    tfwi_stretch *s = &w->stretch;
    size_t candidates = 0, peek = p->mode == TFW_PIPELINE_OFFSETS ? FIRST_PEEK : PEEK;
    uint64_t base = segment->from;
    w->serial = 0;
    if (!grow_buffer(p, s, PEEK)) {
        return false;
    }
    while (base < segment->limit && candidates < MOST_CANDIDATES) {
        /* A header that begins before the limit may end after it. */
        const uint64_t last = segment->limit - base + TFW_HEADER_SIZE - 1;
        size_t at = 0, got = 0;
        if (tfw_read_at(source->fd, s->buffer, last < peek ? (size_t)last : peek, base, &got,
                        NULL) != TFW_OK ||
            got < TFW_HEADER_SIZE || segment->size - base < TFWI_FRAME_SIZE) {
            return false;
        }
        if (find_header(p, w, segment, base, got, &at, &candidates)) {
            s->begin = at;
            s->end = got;
            s->offset = *out_begin = base + at;
            w->serial = source->serial;
            return true;
        }
        base += at;
        peek = PEEK;
    }
    return false;
}

/* ---- Ranges --------------------------------------------------------------------------------- */

void tfwi_range_read(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r) {
    int status = TFW_OK;
    if (r->is_pushed) {
        tfwi_push_parse(p, r, r->pushed.count);
        return;
    }
    if (!tfwi_range_has_block(p, r)) {
        return;
    }
    if (!r->is_known) {
        const tfwi_segment *only = &r->segments.of[0];
        r->is_found = guess_begin(p, w, only, &r->begin);
        r->at = (tfw_place){only->source->number, 0, r->is_found ? r->begin : only->limit};
    }
    while (status == TFW_OK) {
        const tfwi_segment *segment = &r->segments.of[r->segment];
        const part q = {
            .p = p,
            .block = r->block,
            .source = segment->source,
            .size = segment->size,
            .limit = segment->limit,
            .most = SIZE_MAX,
            .longest = r->is_known ? UINT64_MAX : segment->limit - segment->from + PEEK,
            .notes_offsets = p->mode == TFW_PIPELINE_PARSE,
            .at = &r->at,
            .range = r,
        };
        status = read_part(w, &q, &r->error);
        if (status != TFW_OK || r->segment + 1 == r->segments.count) {
            break;
        }
        segment = &r->segments.of[++r->segment];
        r->at = (tfw_place){segment->source->number, segment->record, segment->from};
    }
    tfwi_range_finish(r, status);
}

/* How many records to read next, of a range that has so many bytes: whole batches. */
static size_t next_goal(const tfw_pipeline *p, const tfwi_range *r, uint64_t rows_before,
                        uint64_t bytes, double mean) {
    const uint64_t batch = p->batch_size;
    const uint64_t missing = batch - (rows_before + r->block->rows) % batch;
    uint64_t more = 0;
    if (mean != 0) {
        const uint64_t batches = ((uint64_t)((double)bytes / mean) + batch - 1) / batch;
        more = batches > 1 ? (batches - 1) * batch : 0;
    }
    return tfwi_as_size(missing + more);
}

void tfwi_range_read_chained(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r, uint64_t bytes,
                             double mean, bool notes_offsets) {
    const bool is_parsed = p->mode == TFW_PIPELINE_PARSE;
    const uint64_t before = p->next_row;
    uint64_t done = 0;
    int status = TFW_OK;
    r->at = r->next = p->next;
    if (!tfwi_range_has_block(p, r)) {
        return;
    }
    while (status == TFW_OK && (status = tfwi_plan_source(p, &r->error)) == TFW_OK) {
        const uint64_t from = p->next.offset, left = bytes > done ? bytes - done : 1;
        const uint64_t size = p->source->size;
        const part q = {
            .p = p,
            .block = r->block,
            .source = p->source,
            .size = size,
            .limit = is_parsed || left >= size - from ? size : from + left,
            .most = is_parsed ? next_goal(p, r, before, left, mean) : SIZE_MAX,
            .longest = UINT64_MAX,
            .notes_offsets = is_parsed && notes_offsets,
            .at = &p->next,
            .range = r,
        };
        status = read_part(w, &q, &r->error);
        done += p->next.offset - from;
        const uint64_t rows = before + r->block->rows;
        if (done >= bytes && (!is_parsed || rows % p->batch_size == 0)) {
            break;
        }
    }
    r->at = p->next;
    tfwi_range_finish(r, status);
}
