/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges in order. A link holds where a range begins at the record at which the one before ended:
 * then all of it is what one thread would have read. Where a link does not hold, the range is read
 * again from there.
 *
 * Then the rows become batches. Those of one range are a chunk. Where its last batch is not full,
 * it waits, as the rest, for the first rows of the ranges after it. Then it is a chunk of pieces,
 * and whichever thread comes first copies these rows to the end of its block. */
#include "pipeline/pipeline.h"

#include "records/frame.h"

enum { MOST_BROKEN_LINKS = 2 };

/* ---- Failure -------------------------------------------------------------------------------- */

static void fail_at_place(tfw_pipeline *p, int status, const tfw_error *error,
                          const tfw_place *after) {
    p->has_failed = true;
    p->was_told = false;
    p->status = status;
    p->error = *error;
    p->after = *after;
}

void tfwi_links_fail_for_memory(tfw_pipeline *p) {
    tfw_error error;
    tfwi_fail(&error, TFW_E_MEMORY, "out of memory");
    fail_at_place(p, TFW_E_MEMORY, &error, &p->place);
    p->is_final = true;
}

/* ---- Chunks --------------------------------------------------------------------------------- */

static void append_chunk(tfw_pipeline *p, tfw_chunk *chunk) {
    if (p->last_chunk != NULL) {
        p->last_chunk->next = chunk;
    } else {
        p->first_chunk = chunk;
    }
    p->last_chunk = chunk;
}

/* Delivers pieces, which become the chunk's; false: out of memory, they stay. */
static bool deliver_pieces(tfw_pipeline *p, tfwi_pieces *pieces, uint64_t range) {
    tfw_chunk *chunk = tfwi_calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return false;
    }
    const tfwi_piece *first = &pieces->of[0], *last = &pieces->of[pieces->count - 1];
    chunk->range = range;
    chunk->begin = tfwi_block_begin(first->block, first->first);
    chunk->end = tfwi_block_end(last->block, last->end - 1);
    chunk->state = pieces->count == 1 ? CHUNK_READY : CHUNK_SPLIT;
    chunk->pieces = *pieces;
    *pieces = (tfwi_pieces){0};
    append_chunk(p, chunk);
    return true;
}

/* Adds rows of a block to pieces; false: out of memory. */
static bool add_piece(tfwi_pieces *pieces, tfwi_block *block, uint64_t first, uint64_t end) {
    if (!TFWI_RESERVE_MORE(*pieces, 1)) {
        return false;
    }
    tfwi_block_use(block);
    pieces->of[pieces->count++] = (tfwi_piece){block, first, end};
    return true;
}

static bool deliver_rows(tfw_pipeline *p, tfwi_block *block, uint64_t first, uint64_t end,
                         uint64_t range) {
    tfwi_pieces pieces = {0};
    if (!add_piece(&pieces, block, first, end) || !deliver_pieces(p, &pieces, range)) {
        if (pieces.count != 0) {
            tfwi_block_release(block);
        }
        tfw_free(pieces.of);
        return false;
    }
    return true;
}

void tfwi_links_deliver_rest(tfw_pipeline *p) {
    if (p->rest_rows != 0) {
        if (deliver_pieces(p, &p->rest, p->linked)) {
            p->rest_rows = 0;
        } else {
            tfwi_links_fail_for_memory(p);
        }
    }
}

/* Puts the whole batches of the rest into a chunk of their own; they waited for the rows that would
 * complete the last one. */
static bool deliver_whole(tfw_pipeline *p) {
    if (p->rest_rows == 0) {
        return true;
    }
    tfwi_piece *piece = &p->rest.of[0];
    const uint64_t rows = piece->end - piece->first, whole = rows - rows % p->batch_size;
    if (whole != 0) {
        if (!deliver_rows(p, piece->block, piece->first, piece->first + whole, p->linked)) {
            return false;
        }
        piece->block->is_lent = true;
        piece->first += whole;
    }
    return true;
}

/* Makes batches of the rest and the rows of a block. all: also of the last, which is not full. The
 * whole batches of a block are one chunk with the one that follows them, once that is complete. */
static bool deliver_batches(tfw_pipeline *p, tfwi_block *block, bool all) {
    const uint64_t rows = block->rows;
    const uint64_t missing = p->rest_rows != 0 ? p->batch_size - p->rest_rows : 0;
    const uint64_t cuts[3] = {0, missing < rows ? missing : rows, rows};
    for (int i = 0; i < 2; i++) {
        if (cuts[i] != cuts[i + 1]) {
            if (!add_piece(&p->rest, block, cuts[i], cuts[i + 1])) {
                return false;
            }
            p->rest_rows = (p->rest_rows + cuts[i + 1] - cuts[i]) % p->batch_size;
        }
        if (p->rest.count != 0 && (p->rest_rows == 0 || all)) {
            if (!deliver_pieces(p, &p->rest, p->linked)) {
                return false;
            }
            p->rest_rows = 0;
        }
    }
    return true;
}

/* Totals and records as they are: those of each file for themselves. */
static bool deliver_runs(tfw_pipeline *p, tfwi_block *block) {
    for (size_t i = 0; i < block->runs.count; i++) {
        const uint64_t end = i + 1 < block->runs.count ? block->runs.of[i + 1].row : block->rows;
        if (!deliver_rows(p, block, block->runs.of[i].row, end, p->linked)) {
            return false;
        }
    }
    return true;
}

static void deliver_block(tfw_pipeline *p, tfwi_block *block, bool all) {
    if (block != NULL && block->rows != 0) {
        const bool done = p->mode == TFW_PIPELINE_PARSE ? deliver_batches(p, block, all)
                                                         : deliver_runs(p, block);
        if (!done) {
            tfwi_links_fail_for_memory(p);
        }
    }
}

/* ---- Links ---------------------------------------------------------------------------------- */

/* A mean of the records of the last ranges. */
static void note_size(tfw_pipeline *p, const tfwi_block *block, size_t from) {
    uint64_t bytes = 0, records = 0;
    for (size_t i = from; i < block->runs.count; i++) {
        const tfwi_run *run = &block->runs.of[i];
        bytes += run->end.offset - run->begin.offset;
        records += run->end.record - run->begin.record;
    }
    p->bytes_read += bytes;
    if (records != 0) {
        const double mean = (double)bytes / (double)records;
        p->mean += p->mean != 0 ? (mean - p->mean) / 8 : mean;
    }
}

/* Compares the rows of a range with those that were foreseen. */
static void compare_rows(tfw_pipeline *p, tfwi_range *r, uint64_t rows) {
    if (r->rows != 0 && p->batch_size != 0) {
        const uint64_t ahead = (r->row + p->batch_size - p->rest_rows) % p->batch_size;
        const uint64_t behind = p->batch_size - ahead;
        p->deviation += ((double)(ahead < behind ? ahead : behind) - p->deviation) / 8;
    }
    p->row_error += (int64_t)(rows - r->rows);
    r->rows = 0; /* where the range goes on after an error */
}

/* Adds the totals of runs to those of all records. */
static void add_up(tfw_pipeline *p, const tfwi_block *block, size_t from) {
    for (size_t i = from; i < block->runs.count; i++) {
        const tfw_tally *more = &block->runs.of[i].tally;
        const uint64_t bytes = more->payload_bytes + more->records * TFWI_FRAME_SIZE;
        p->tally.records += more->records;
        p->tally.payload_bytes += more->payload_bytes;
        p->tally.hash += more->hash;
        p->tally.file_crc = tfw_crc32c_combine(p->tally.file_crc, more->file_crc, bytes);
    }
}

/* Notes the keys that the records of a block are the first to have. One of a record that does not
 * fit is not read. */
static void add_unknown(tfw_pipeline *p, const tfwi_block *block) {
    for (int i = 0; i < 2; i++) {
        const tfwi_unknown *more = block->columns[i] != NULL ? block->columns[i]->unknown : NULL;
        tfwi_unknown *all = &p->unknown[i];
        for (size_t k = 0; more != NULL && k < more->count; k++) {
            const tfwi_unknown_key *key = &more->of[k];
            const size_t count = all->count;
            if (key->record < block->rows) {
                tfwi_unknown_note(all, key->key.name, key->key.len, key->is_list, key->record);
            }
            if (all->count != count) {
                p->unknown_at[i][count] = tfwi_block_begin(block, key->record);
            }
        }
        all->has_more |= more != NULL && more->has_more;
    }
}

/* Numbers the records of a guess that has come true. */
static void number_records(const tfw_pipeline *p, tfwi_range *r) {
    for (size_t i = 0; i < r->block->runs.count; i++) {
        r->block->runs.of[i].begin.record += p->place.record;
        r->block->runs.of[i].end.record += p->place.record;
    }
    for (size_t i = 0; i < r->block->places.count; i++) {
        r->block->places.of[i].record += p->place.record;
    }
    r->at.record += p->place.record;
    r->is_known = true;
}

/* Lets the next thread read a range on from a place. */
static void let_read_on(tfwi_range *r, tfw_place at) {
    r->at = at;
    r->is_known = true;
    r->has_stopped = false;
    r->state = RANGE_READY;
}

static void read_again(tfw_pipeline *p, tfwi_range *r) {
    tfwi_block_release(r->block);
    r->block = NULL;
    r->segment = 0;
    let_read_on(r, p->place);
}

/* Whether a range that was guessed begins at the place; else it is read again, or on. */
static bool link_guess(tfw_pipeline *p, tfwi_range *r) {
    const tfwi_segment *segment = &r->segments.of[0];
    if (p->place.offset >= segment->limit) { /* a record covers it */
        tfwi_block_release(r->block);
        r->block = NULL;
        r->at = p->place;
        r->is_known = true;
        r->status = TFW_OK;
        return true;
    }
    if (!r->is_found || r->begin != p->place.offset || r->block == NULL) {
        if (++p->broken_links >= MOST_BROKEN_LINKS) {
            p->chained_file = segment->source->number;
        }
        read_again(p, r);
        return false;
    }
    p->broken_links = 0;
    number_records(p, r);
    if (r->has_stopped) {
        let_read_on(r, r->at);
        return false;
    }
    return true;
}

/* The same for one whose begin was known, as a file begins there, or from walking over headers. */
static bool link_known(tfw_pipeline *p, tfwi_range *r) {
    const tfwi_segment *segment = &r->segments.of[0];
    if (segment->source->number != p->place.file || r->was_linked ||
        (segment->from == p->place.offset && segment->record == p->place.record)) {
        return true;
    }
    read_again(p, r);
    return false;
}

static bool link_range(tfw_pipeline *p, tfwi_range *r) {
    if (r->segments.count == 0) {
        return true;
    }
    const bool holds = r->is_known ? link_known(p, r) : link_guess(p, r);
    r->was_linked = true;
    return holds;
}

/* Whether a batch that is not full is kept where reading ends. */
static bool keeps_rest(const tfw_pipeline *p) {
    return p->pushing != NOT_PUSHING || (p->flags & TFW_PIPELINE_KEEP_REST) != 0;
}

/* Whether no record comes after this range; of an order, whatever comes. */
static bool is_last(const tfw_pipeline *p) {
    return p->has_ended && (p->linked + 1 == p->opened || p->is_ordered) && !keeps_rest(p);
}

void tfwi_links_deliver(tfw_pipeline *p, tfwi_range *r, bool all) {
    if (r->block != NULL) {
        note_size(p, r->block, r->delivered);
        if ((p->flags & TFW_PIPELINE_TALLY) != 0) {
            add_up(p, r->block, r->delivered);
        }
        add_unknown(p, r->block);
        compare_rows(p, r, r->block->rows);
        r->delivered = 0;
        deliver_block(p, r->block, all);
        tfwi_block_release(r->block);
        r->block = NULL;
    }
}

static void fail_in_range(tfw_pipeline *p, tfwi_range *r) {
    fail_at_place(p, r->status, &r->error, &r->next);
    if (r->status <= TFW_E_WIRE) {
        const tfwi_bytes misfit = p->misfit;
        p->misfit = r->misfit;
        r->misfit = misfit;
    }
}

/* Delivers what there is where reading stops or ends. */
static void end_batch(tfw_pipeline *p) {
    if (!keeps_rest(p)) {
        tfwi_links_deliver_rest(p);
    } else if (!deliver_whole(p)) {
        tfwi_links_fail_for_memory(p);
    }
}

/* Delivers a range that holds. */
static void take_range(tfw_pipeline *p, tfwi_range *r) {
    const bool stops = r->status != TFW_OK;
    p->place = r->is_pushed && !stops ? r->pushed.end : r->at;
    tfwi_links_deliver(p, r, stops ? !keeps_rest(p) : is_last(p));
    if (stops && !p->has_failed) {
        end_batch(p);
    }
    if (stops && !p->has_failed) {
        fail_in_range(p, r);
    }
}

void tfwi_links_advance(tfw_pipeline *p) {
    while (p->linked < p->opened && !p->has_failed) {
        tfwi_range *r = &p->ranges[p->linked % p->ring];
        if (r->state != RANGE_READ || !link_range(p, r)) {
            return;
        }
        take_range(p, r);
        if (!p->has_failed) {
            tfwi_range_clear(r);
            p->linked++;
        }
    }
    const bool is_at_end = p->has_ended || p->pushing != NOT_PUSHING; /* or it may be for long */
    if (is_at_end && p->linked == p->opened && !p->has_failed) {
        end_batch(p);
    }
}
