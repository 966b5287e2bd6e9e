/* SPDX-License-Identifier: Apache-2.0 */
/* Records that somebody else has read and verified: of compressed files, of pipes, of files with
 * damage. They become ranges, which follow all ranges before and are linked as those are.
 *
 * With several threads they are copied, some pushes to a range, for whoever parses it; or the
 * memory of a parcel becomes that of a range. One thread parses them at once, where they are: first
 * all whole batches, then the others to a block of their own. The next push goes on in that block,
 * so that no row is copied. Only what follows a record that does not fit is copied. */
#include "pipeline/pipeline.h"

#include "records/frame.h"

enum { FULL = 1 << 18 }; /* bytes with which a range is full */

/* ---- What is pushed ------------------------------------------------------------------------- */

static tfw_place place_in(const tfw_batch *batch, uint64_t file, uint64_t i) {
    const uint64_t number = batch->numbers != NULL ? batch->numbers[i] : batch->first_record + i;
    return (tfw_place){file, number, batch->offset + batch->spans[i].offset - TFW_HEADER_SIZE};
}

static tfw_place end_of(const tfw_batch *batch, uint64_t file) {
    tfw_place end = place_in(batch, file, batch->count - 1);
    end.record++;
    end.offset += batch->spans[batch->count - 1].length + TFWI_FRAME_SIZE;
    return end;
}

/* Whether every record follows the one before, and lies in the data with its frame. */
static bool is_in_order(const tfw_batch *batch) {
    uint64_t end = 0;
    for (uint64_t i = 0; i < batch->count; i++) {
        const tfw_span *s = &batch->spans[i];
        if (s->offset > batch->data_len || s->offset < end + TFW_HEADER_SIZE ||
            batch->data_len - s->offset < TFW_FOOTER_SIZE ||
            s->length > batch->data_len - s->offset - TFW_FOOTER_SIZE ||
            (i != 0 && batch->numbers != NULL && batch->numbers[i] <= batch->numbers[i - 1])) {
            return false;
        }
        end = s->offset + s->length + TFW_FOOTER_SIZE;
    }
    return true;
}

static int check_pushed(const tfw_pipeline *p, const tfw_batch *batch, tfw_error *error) {
    if (p->mode != TFW_PIPELINE_PARSE || p->is_ordered) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no files are parsed");
    }
    if (batch == NULL || batch->size != sizeof *batch) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "batch->size is not sizeof(tfw_batch)");
    }
    const uint64_t last =
        batch->numbers != NULL && batch->count != 0 ? batch->numbers[batch->count - 1] : 0;
    if (batch->count > SIZE_MAX / 4 || batch->data_len > INT64_MAX ||
        batch->offset > INT64_MAX - batch->data_len || batch->first_record > SIZE_MAX / 4 ||
        last > SIZE_MAX / 4 || !is_in_order(batch)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "records that do not lie in the batch in order");
    }
    return TFW_OK;
}

/* Whether a record lies in its file right after the one before. */
static bool has_no_gap(const tfw_batch *batch, uint64_t i) {
    const tfw_span *last = &batch->spans[i - 1];
    return batch->numbers == NULL ||
           (batch->numbers[i] == batch->numbers[i - 1] + 1 &&
            batch->spans[i].offset == last->offset + last->length + TFWI_FRAME_SIZE);
}

/* Notes where the records are in their file, the first of them as number first of the range; false:
 * out of memory. */
static bool add_runs(tfwi_pushed *q, const tfw_batch *batch, uint64_t file, size_t first) {
    const size_t before = q->runs.count;
    for (size_t i = 0; i < batch->count; i++) {
        if (i != 0 && has_no_gap(batch, i)) {
            continue;
        }
        if (!TFWI_RESERVE_MORE(q->runs, 1)) {
            q->runs.count = before;
            return false;
        }
        q->runs.of[q->runs.count++] = (tfwi_pushed_run){first + i, place_in(batch, file, i)};
    }
    return true;
}

/* Copies records of a batch, with their frames, after those that a range has; false: out of memory,
 * and it stays as it was. */
static bool copy_records(tfwi_pushed *q, const uint8_t *data, const tfw_span *spans, size_t count) {
    const uint64_t begin = spans[0].offset - TFW_HEADER_SIZE;
    const uint64_t end = spans[count - 1].offset + spans[count - 1].length + TFW_FOOTER_SIZE;
    const size_t at = q->copied.count, size = (size_t)(end - begin);
    if (!TFWI_RESERVE_MORE(q->copied, size + TFWI_PUSHED_SLACK) ||
        !TFWI_RESERVE_MORE(q->copied_spans, count)) {
        return false;
    }
    memcpy(q->copied.of + at, data + begin, size);
    memset(q->copied.of + at + size, 0, TFWI_PUSHED_SLACK);
    for (size_t i = 0; i < count; i++) {
        q->copied_spans.of[q->copied_spans.count++] =
            (tfw_span){at + spans[i].offset - begin, spans[i].length};
    }
    q->copied.count += size;
    return true;
}

/* The records of a range are those that it has copied. */
static void use_copies(tfwi_pushed *q) {
    q->data = q->copied.of;
    q->len = q->copied.count + TFWI_PUSHED_SLACK;
    q->spans = q->copied_spans.of;
    q->count = q->copied_spans.count;
}

/* ---- Parsing -------------------------------------------------------------------------------- */

/* The run of a record, of which there is one. */
static size_t run_at(const tfwi_pushed *q, size_t record) {
    size_t i = q->runs.count - 1;
    while (q->runs.of[i].first > record) {
        i--;
    }
    return i;
}

static size_t run_end(const tfwi_pushed *q, size_t run) {
    return run + 1 < q->runs.count ? q->runs.of[run + 1].first : q->count;
}

/* Where a record of a run begins, or where the run ends. */
static tfw_place place_at(const tfwi_pushed *q, size_t run, size_t record) {
    const tfwi_pushed_run *from = &q->runs.of[run];
    tfw_place place = from->begin;
    place.record += record - from->first;
    if (record != from->first) {
        const tfw_span *last = &q->spans[record - 1];
        place.offset += last->offset + last->length + TFW_FOOTER_SIZE -
                        (q->spans[from->first].offset - TFW_HEADER_SIZE);
    }
    return place;
}

bool tfwi_push_find(const tfwi_range *r, const tfw_place *place, size_t *out_index) {
    const tfwi_pushed *q = &r->pushed;
    for (size_t i = run_at(q, q->done); i < q->runs.count; i++) {
        const tfwi_pushed_run *run = &q->runs.of[i];
        const size_t end = run_end(q, i);
        if (run->begin.file == place->file && place->record <= place_at(q, i, end).record) {
            const bool is_within = place->record > run->begin.record;
            *out_index = run->first + (is_within ? (size_t)(place->record - run->begin.record) : 0);
            return true;
        }
    }
    return false;
}

/* Notes the rows that came of records [first, end) of a run. REQUIRES: there is room. */
static void note_rows(tfwi_block *block, const tfwi_pushed *q, size_t run, size_t first,
                      size_t end) {
    const tfw_place begin = place_at(q, run, first);
    const uint64_t from = q->spans[first].offset;
    for (size_t i = first; i < end; i++) {
        block->offsets.of[block->offsets.count++] = begin.offset + (q->spans[i].offset - from);
    }
    block->runs.of[block->runs.count++] =
        (tfwi_run){.row = block->rows, .begin = begin, .end = place_at(q, run, end)};
    block->rows += end - first;
}

/* Parses the records of a run up to end. */
static int parse_run(const tfw_pipeline *p, tfwi_range *r, size_t run, size_t end) {
    tfwi_pushed *q = &r->pushed;
    tfwi_block *block = r->block;
    const size_t first = q->done, count = end - first;
    const unsigned flags = p->flags & (TFW_EMPTY_IS_MISSING | TFW_SINGLE);
    size_t done = 0;
    int status = TFW_OK;
    if (!TFWI_RESERVE_MORE(block->runs, 1) || !TFWI_RESERVE_MORE(block->offsets, count)) {
        status = tfwi_fail(&r->error, TFW_E_MEMORY, "out of memory");
    } else if ((p->flags & TFW_SEQUENCE) != 0) {
        status = tfw_parse_sequence(block->columns[0], block->columns[1], q->data, q->len,
                                    q->spans + first, count, flags, &done, &r->error);
    } else {
        status = tfw_parse(block->columns[0], q->data, q->len, q->spans + first, count, flags,
                           &done, &r->error);
    }
    if (done != 0) {
        note_rows(block, q, run, first, first + done);
    }
    if (done != 0 && (p->flags & TFW_PIPELINE_TALLY) != 0) {
        const unsigned crc = (p->flags & TFW_PIPELINE_NO_DATA_CRC) != 0 ? TFW_NO_DATA_CRC : 0;
        (void)tfw_tally_spans(&block->runs.of[block->runs.count - 1].tally, q->data, q->len,
                              q->spans + first, done, crc, NULL);
    }
    q->done += done;
    r->at = place_at(q, run, q->done);
    if (status != TFW_OK) {
        r->error.record = tfwi_saturated(r->at.record);
        r->next = (tfw_place){.file = r->at.file};
    }
    if (status <= TFW_E_WIRE) {
        const tfw_span *s = &q->spans[q->done];
        r->next = place_at(q, run, q->done + 1);
        tfwi_range_keep_misfit(r, q->data + s->offset, s->length);
    }
    return status;
}

void tfwi_push_parse(tfw_pipeline *p, tfwi_range *r, size_t end) {
    tfwi_pushed *q = &r->pushed;
    int status = TFW_OK;
    if (q->done == end || !tfwi_range_has_block(p, r)) {
        return;
    }
    while (status == TFW_OK && q->done < end) {
        const size_t run = run_at(q, q->done), last = run_end(q, run);
        status = parse_run(p, r, run, last < end ? last : end);
    }
    tfwi_range_finish(r, status);
}

/* ---- One thread ----------------------------------------------------------------------------- */

/* Goes on in the block of the last rows of the rest, if these are all that it holds. (What is left
 * of a block after a delivery does not begin with its first row.) */
static void take_back(tfw_pipeline *p, tfwi_range *r) {
    const tfwi_piece *last = p->rest.count != 0 ? &p->rest.of[p->rest.count - 1] : NULL;
    if (last != NULL && last->first == 0 && last->end == last->block->rows &&
        last->end < p->batch_size && last->block->offsets.count == last->block->rows) {
        p->rest_rows -= last->end;
        p->rest.count--;
        r->block = last->block;
        r->delivered = r->block->runs.count;
    }
}

/* How many of the next records to parse to one block: those of whole batches, if there are any. */
static size_t next_count(const tfw_pipeline *p, size_t left) {
    const uint64_t missing = p->batch_size - p->rest_rows;
    return left < missing ? left : (size_t)(left - (left - missing) % p->batch_size);
}

/* Parses the records where they are. */
static int parse_at_once(tfw_pipeline *p, const tfw_batch *batch, uint64_t file, tfw_error *error) {
    tfwi_range *r = &p->ranges[p->opened % p->ring];
    tfwi_pushed *q = &r->pushed;
    tfwi_range_begin(r);
    if (!add_runs(q, batch, file, 0)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    r->is_pushed = true;
    q->data = batch->data;
    q->len = (size_t)batch->data_len;
    q->spans = batch->spans;
    q->count = (size_t)batch->count;
    q->end = end_of(batch, file);
    p->opened++;
    while (q->done < q->count && r->status == TFW_OK && !p->has_failed) {
        const size_t end = q->done + next_count(p, q->count - q->done);
        take_back(p, r);
        tfwi_mutex_unlock(&p->lock);
        tfwi_push_parse(p, r, end);
        tfwi_mutex_lock(&p->lock);
        if (r->status == TFW_OK) {
            tfwi_links_deliver(p, r, false);
        }
    }
    return TFW_OK;
}

/* Keeps the records from the one at fault on, for the memory of the others is only lent. */
static void keep_others(tfw_pipeline *p, tfwi_range *r) {
    tfwi_pushed *q = &r->pushed;
    const size_t done = q->done;
    if (!copy_records(q, q->data, q->spans + done, q->count - done)) {
        tfwi_links_fail_for_memory(p);
        return;
    }
    const size_t first = run_at(q, done);
    const tfw_place begin = place_at(q, first, done);
    q->runs.count -= first;
    memmove(q->runs.of, q->runs.of + first, q->runs.count * sizeof *q->runs.of);
    q->runs.of[0] = (tfwi_pushed_run){done, begin};
    for (size_t i = 0; i < q->runs.count; i++) {
        q->runs.of[i].first -= done;
    }
    q->done = 0;
    use_copies(q);
}

static int push_to_one(tfw_pipeline *p, const tfw_batch *batch, uint64_t file, tfw_error *error) {
    const int status = parse_at_once(p, batch, file, error);
    tfwi_range *r = &p->ranges[p->linked % p->ring];
    if (status == TFW_OK) {
        if (r->status != TFW_OK) {
            keep_others(p, r);
        }
        r->state = RANGE_READ;
        tfwi_links_advance(p);
    }
    return status;
}

/* ---- Several threads ------------------------------------------------------------------------ */

/* The range that is being filled, or NULL. */
static tfwi_range *filled_range(const tfw_pipeline *p) {
    tfwi_range *r = &p->ranges[(p->opened + p->ring - 1) % p->ring];
    return p->opened != p->linked && r->state == RANGE_FILLED ? r : NULL;
}

bool tfwi_push_end_range(tfw_pipeline *p) {
    tfwi_range *r = filled_range(p);
    if (r == NULL) {
        return false;
    }
    use_copies(&r->pushed);
    r->state = RANGE_READY;
    tfwi_condition_broadcast(&p->work);
    return true;
}

static tfwi_range *begin_filling(tfw_pipeline *p) {
    tfwi_range *r = &p->ranges[p->opened++ % p->ring];
    tfwi_range_begin(r);
    r->is_pushed = true;
    r->state = RANGE_FILLED;
    r->pushed.end = p->next;
    return r;
}

/* Copies the records to a range, which is the caller's while it is filled. */
static int push_to_several(tfw_pipeline *p, const tfw_batch *batch, uint64_t file,
                           tfw_error *error) {
    tfwi_range *r = filled_range(p);
    r = r != NULL ? r : begin_filling(p);
    tfwi_pushed *q = &r->pushed;
    tfwi_mutex_unlock(&p->lock);
    const size_t first = q->copied_spans.count, runs = q->runs.count;
    const bool done = add_runs(q, batch, file, first) &&
                      copy_records(q, batch->data, batch->spans, (size_t)batch->count);
    tfwi_mutex_lock(&p->lock);
    if (!done) {
        q->runs.count = runs;
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    q->end = end_of(batch, file);
    if (q->copied.count >= FULL) {
        tfwi_push_end_range(p);
        tfwi_pipeline_start(p);
    }
    return TFW_OK;
}

/* Exchanges the memory of a parcel for that of a range of its own. */
static int push_memory(tfw_pipeline *p, tfw_parcel *parcel, const tfw_batch *batch, uint64_t file,
                       tfw_error *error) {
    tfwi_range *r = filled_range(p);
    if (r != NULL && r->pushed.copied_spans.count != 0) {
        tfwi_push_end_range(p);
        r = NULL;
    }
    if (r == NULL && !tfwi_plan_has_room(p)) {
        return TFW_NEED_SPACE;
    }
    r = r != NULL ? r : begin_filling(p);
    tfwi_pushed *q = &r->pushed;
    if (!add_runs(q, batch, file, 0)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    const tfwi_bytes data = q->copied;
    const tfwi_spans spans = q->copied_spans;
    q->copied = parcel->data;
    q->copied_spans = parcel->spans;
    q->end = end_of(batch, file);
    parcel->data = data;
    parcel->spans = spans;
    tfwi_push_end_range(p);
    tfwi_pipeline_start(p);
    return TFW_OK;
}

/* ---- Pushing -------------------------------------------------------------------------------- */

/* Whether all files that are known have been read. */
static bool has_read_all(const tfw_pipeline *p) {
    const bool is_new = p->opened == 0 && !p->is_opening && p->next.file >= p->paths.count;
    return (p->has_ended || is_new) && p->linked == p->opened;
}

/* Lets records that are pushed follow those delivered. */
static int begin_pushing(tfw_pipeline *p, tfw_error *error) {
    if (p->is_cancelled) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the pipeline was cancelled");
    }
    if (p->pushing != NOT_PUSHING && p->has_failed && !p->was_told) {
        return TFW_NEED_SPACE; /* it is to be told first */
    }
    if (tfwi_pipeline_is_pushing(p)) {
        return TFW_OK;
    }
    if (p->has_failed ? !p->was_told || p->is_final : !has_read_all(p)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "reading has not stopped");
    }
    if (p->pushing == NOT_PUSHING) {
        p->pushing = p->has_failed ? PUSHING_AFTER_STOP : PUSHING_AT_END;
    }
    if (p->has_failed) {
        tfwi_pipeline_drop_ranges(p);
    }
    p->has_ended = p->pushing == PUSHING_AT_END;
    p->has_failed = p->was_told = false;
    p->next = p->place;
    return TFW_OK;
}

/* Whether a range can be begun, or filled on. */
static bool has_room(const tfw_pipeline *p) {
    return p->num_threads == 1 ? p->first_chunk == NULL && p->linked == p->opened
                               : filled_range(p) != NULL || tfwi_plan_has_room(p);
}

/* parcel: that has the batch; NULL: the records are copied. */
static int push(tfw_pipeline *p, const tfw_batch *batch, tfw_parcel *parcel, uint64_t file,
                tfw_error *error) {
    const tfw_place first = place_in(batch, file, 0);
    const tfw_place *end = tfwi_pipeline_is_pushing(p) ? &p->next : &p->place;
    const bool is_on = first.record >= end->record && first.offset >= end->offset;
    if (first.file < end->file || (first.file == end->file && !is_on)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "records before the end of reading");
    }
    int status = begin_pushing(p, error);
    if (status != TFW_OK) {
        return status;
    }
    if (!has_room(p)) {
        return TFW_NEED_SPACE;
    }
    status = p->num_threads == 1 ? push_to_one(p, batch, file, error)
             : parcel != NULL    ? push_memory(p, parcel, batch, file, error)
                                 : push_to_several(p, batch, file, error);
    if (status == TFW_OK) {
        p->next = end_of(batch, file);
        p->was_told = false;
    }
    return status;
}

static int check_and_push(tfw_pipeline *p, const tfw_batch *batch, tfw_parcel *parcel,
                          uint64_t file, tfw_error *error) {
    int status = check_pushed(p, batch, error);
    if (status != TFW_OK || batch->count == 0) {
        return status;
    }
    status = tfwi_pipeline_enter(p, error);
    if (status == TFW_OK) {
        status = push(p, batch, parcel, file, error);
        tfwi_pipeline_leave(p);
    }
    return status;
}

int tfw_pipeline_push(tfw_pipeline *p, const tfw_batch *batch, uint64_t file, tfw_error *error) {
    return check_and_push(p, batch, NULL, file, error);
}

int tfw_pipeline_push_parcel(tfw_pipeline *p, tfw_parcel *parcel, uint64_t file,
                             tfw_error *error) {
    const tfw_batch batch = tfwi_parcel_batch(parcel);
    const int status = check_and_push(p, &batch, parcel, file, error);
    if (status == TFW_OK) {
        tfwi_parcel_clear(parcel);
    }
    return status;
}
