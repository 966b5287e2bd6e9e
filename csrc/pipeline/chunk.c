/* SPDX-License-Identifier: Apache-2.0 */
/* What a pipeline delivers: rows of a block. */
#include "pipeline/pool.h"

#include "base/search.h"

/* ---- Joining -------------------------------------------------------------------------------- */

/* Notes where rows come from, which are about to be appended. */
static bool append_runs(tfwi_block *block, const tfwi_piece *piece, bool notes_offsets) {
    const tfwi_block *from = piece->block;
    const uint64_t count = piece->end - piece->first;
    if (!TFWI_RESERVE_MORE(block->runs, from->runs.count) ||
        (notes_offsets && !TFWI_RESERVE_MORE(block->offsets, count))) {
        return false;
    }
    for (size_t i = 0; i < from->runs.count; i++) {
        const uint64_t next = i + 1 < from->runs.count ? from->runs.of[i + 1].row : from->rows;
        const uint64_t row = from->runs.of[i].row;
        const uint64_t first = row > piece->first ? row : piece->first;
        const uint64_t end = next < piece->end ? next : piece->end;
        if (first < end) {
            block->runs.of[block->runs.count++] = (tfwi_run){
                .row = block->rows + (first - piece->first),
                .begin = tfwi_block_begin(from, first),
                .end = tfwi_block_end(from, end - 1),
            };
        }
    }
    if (notes_offsets) {
        memcpy(block->offsets.of + block->offsets.count, from->offsets.of + piece->first,
               (size_t)count * sizeof *block->offsets.of);
        block->offsets.count += (size_t)count;
    }
    return true;
}

static int append_rows(tfwi_block *block, const tfwi_piece *piece, bool notes_offsets) {
    int status = append_runs(block, piece, notes_offsets) ? TFW_OK : TFW_E_MEMORY;
    for (int i = 0; i < 2 && status == TFW_OK; i++) {
        if (block->columns[i] != NULL) {
            status = tfwi_columns_append(block->columns[i], piece->block->columns[i],
                                         (size_t)piece->first, (size_t)piece->end, NULL);
        }
    }
    block->rows += piece->end - piece->first;
    return status;
}

/* Pieces from which on a batch is much larger than its first piece, whose block would have to grow
 * to many times the size of the others. */
enum { MANY_PIECES = 4 };

int tfwi_chunk_join(tfw_chunk *chunk, tfwi_pool *const pools[2], bool notes_offsets) {
    const tfwi_piece first = chunk->pieces.of[0];
    const bool is_large = chunk->pieces.count >= MANY_PIECES;
    const bool moves = is_large || first.block->is_lent;
    tfwi_block *block = moves ? tfwi_block_take(pools[is_large]) : first.block;
    int status = block != NULL ? TFW_OK : TFW_E_MEMORY;
    for (size_t i = moves ? 0 : 1; i < chunk->pieces.count && status == TFW_OK; i++) {
        status = append_rows(block, &chunk->pieces.of[i], notes_offsets);
    }
    status = status == TFW_OK ? tfwi_block_finish(block, NULL) : status;
    if (status != TFW_OK) {
        tfwi_block_release(moves ? block : NULL);
        return status;
    }
    for (size_t i = moves ? 0 : 1; i < chunk->pieces.count; i++) {
        tfwi_block_release(chunk->pieces.of[i].block);
    }
    chunk->pieces.count = 1;
    chunk->pieces.of[0] = (tfwi_piece){block, moves ? 0 : first.first, block->rows};
    return TFW_OK;
}

/* ---- What is in it -------------------------------------------------------------------------- */

static bool is_parsed(const tfwi_block *block) {
    return block->columns[0] != NULL || block->columns[1] != NULL;
}

/* The run that a piece is, of records that are not parsed; else NULL. */
static const tfwi_run *run_of_piece(const tfwi_piece *piece) {
    const tfwi_block *block = piece->block;
    for (size_t i = 0; i < block->runs.count && !is_parsed(block); i++) {
        if (block->runs.of[i].row == piece->first) {
            return &block->runs.of[i];
        }
    }
    return NULL;
}

void tfw_chunk_get(const tfw_chunk *chunk, tfw_chunk_info *out_info) {
    const tfwi_piece *piece = &chunk->pieces.of[0];
    const tfwi_block *block = piece->block;
    tfw_chunk_info info = {
        .size = out_info->size,
        .records = piece->end - piece->first,
        .begin = chunk->begin,
        .end = chunk->end,
        .first_row = piece->first,
    };
    const tfwi_run *run = run_of_piece(piece);
    if (run != NULL) {
        info.tally = run->tally;
        info.shortest = run->lengths[0];
        info.longest = run->lengths[1];
    }
    if (block->spans.count != 0) {
        const bool is_chosen = block->places.count != 0;
        info.data = block->data;
        info.data_len = block->end;
        info.spans = block->spans.of + (is_chosen ? run->first : piece->first);
        info.selected = is_chosen ? run->first_len : info.records;
    } else if (run != NULL && run->first_len != 0) {
        info.data = block->data + run->first;
        info.data_len = run->first_len;
    } else if (block->offsets.count != 0 && !is_parsed(block)) {
        info.offsets = (const int64_t *)block->offsets.of + piece->first;
    }
    memcpy(out_info, &info, info.size < sizeof info ? info.size : sizeof info);
}

/* Offsets that lead into something from entry first on; *out_first and *out_count become what they
 * lead to. */
static int64_t *cut_offsets(int64_t *offsets, uint64_t *first, uint64_t *count) {
    if (offsets == NULL) {
        return NULL;
    }
    int64_t *cut = offsets + *first;
    const uint64_t end = (uint64_t)cut[*count];
    *first = (uint64_t)cut[0];
    *count = end - *first;
    return cut;
}

/* Cuts the absent records of a column to rows [first, end). */
static void cut_absent(tfw_column *c, uint64_t first, uint64_t end) {
    const size_t from = tfwi_count_below(c->absent, (size_t)c->absent_count, (int64_t)first);
    const size_t to = tfwi_count_below(c->absent, (size_t)c->absent_count, (int64_t)end);
    c->absent = to != from ? c->absent + from : NULL;
    c->absent_count = to - from;
}

int tfw_chunk_column(const tfw_chunk *chunk, bool is_list, size_t feature, tfw_column *out_column,
                     tfw_error *error) {
    const tfwi_piece *piece = &chunk->pieces.of[0];
    const tfw_columns *columns = piece->block->columns[is_list];
    *out_column = (tfw_column){0};
    if (columns == NULL || feature >= columns->count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no such column");
    }
    const tfwi_column *column = &columns->columns[feature];
    tfw_column c = piece->block->finished[is_list][feature];
    uint64_t first = piece->first, count = piece->end - piece->first;
    cut_absent(&c, first, piece->end);
    c.steps = cut_offsets(c.steps, &first, &count);
    c.cell_count = count;
    c.splits = cut_offsets(c.splits, &first, &count);
    if (c.splits == NULL) {
        first *= column->count;
        count *= column->count;
    }
    c.value_count = count;
    c.offsets = cut_offsets(c.offsets, &first, &count);
    if (c.offsets == NULL) {
        first *= column->value_size;
        count *= column->value_size;
    }
    c.values = (uint8_t *)c.values + first;
    c.byte_count = count;
    c.capacity = 0;
    *out_column = c;
    return TFW_OK;
}

void tfw_chunk_place(const tfw_chunk *chunk, uint64_t record, tfw_place *out_place) {
    const tfwi_piece *piece = &chunk->pieces.of[0];
    if (piece->block->places.count != 0) {
        *out_place = piece->block->places.of[run_of_piece(piece)->first + record];
        out_place->file = chunk->begin.file;
        return;
    }
    *out_place = tfwi_block_begin(piece->block, piece->first + record);
    if (piece->block->spans.count != 0) {
        const tfw_span *spans = piece->block->spans.of + piece->first;
        out_place->offset = chunk->begin.offset + (spans[record].offset - spans[0].offset);
    }
}

void tfw_chunk_release(tfw_chunk *chunk) {
    if (chunk == NULL || tfwi_pool_is_of_parent(chunk->pieces.of[0].block->pool)) {
        return;
    }
    for (size_t i = 0; i < chunk->pieces.count; i++) {
        tfwi_block_release(chunk->pieces.of[i].block);
    }
    tfw_free(chunk->pieces.of);
    tfw_free(chunk);
}
