/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a pipeline's chunks as arrays, which hold the memory of the columns. Offsets that do
 * not begin with 0, as those of the later batches of a chunk, are copied: then all arrays look as
 * those of columns do. */
#include "arrow/export_chunk.h"

/* ---- Memory --------------------------------------------------------------------------------- */

static void drop_share(void *owner) { tfwi_buffer_drop(owner); }

/* A buffer over memory of a column, of which another one is the owner. */
static tfwi_buffer *buffer_within(void *memory, tfwi_buffer *owner) {
    tfwi_buffer *buffer = tfwi_buffer_lent(memory, drop_share, owner);
    if (buffer != NULL) {
        (void)tfwi_buffer_share(owner);
    }
    return buffer;
}

/* The count + 1 offsets of a column, which become those of a buffer. */
static bool lend_offsets(int64_t **offsets, uint64_t count, tfwi_buffer *owner,
                         tfwi_buffer **out) {
    if (*offsets == NULL) {
        return true;
    }
    const int64_t base = **offsets;
    *out = base == 0 ? buffer_within(*offsets, owner)
                     : tfwi_buffer_new(((size_t)count + 1) * sizeof **offsets);
    if (*out == NULL) {
        return false;
    }
    int64_t *to = (*out)->memory;
    for (uint64_t i = 0; base != 0 && i <= count; i++) {
        to[i] = (*offsets)[i] - base;
    }
    *offsets = to;
    return true;
}

static void release_hold(void *hold) { tfw_hold_release(hold); }

/* Holds a column of the rows of a piece. Fails as tfw_chunk_hold. */
static int lend_column(const tfwi_piece *piece, bool is_list, size_t feature, tfwi_exported *out,
                       tfw_error *error) {
    tfwi_piece part = *piece;
    tfw_chunk chunk = {.pieces = {.of = &part, .count = 1}};
    const tfwi_column *column = &part.block->columns[is_list]->columns[feature];
    const int64_t *steps = part.block->finished[is_list][feature].steps;
    tfw_column *c = &out->column;
    tfw_hold *hold;
    const int status = tfw_chunk_hold(&chunk, is_list, feature, c, &hold, error);
    if (status != TFW_OK) {
        return status;
    }
    tfwi_buffer *owner = tfwi_buffer_lent(NULL, release_hold, hold);
    if (owner == NULL) {
        tfw_hold_release(hold);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    out->values = buffer_within(c->values, owner);
    const bool good = out->values != NULL &&
                      lend_offsets(&c->steps, part.end - part.first, owner, &out->steps) &&
                      lend_offsets(&c->splits, c->cell_count, owner, &out->splits) &&
                      lend_offsets(&c->offsets, c->value_count, owner, &out->offsets);
    tfwi_buffer_drop(owner);
    out->absent = (tfwi_nulls){c->absent, (size_t)c->absent_count, (int64_t)part.first};
    if (steps != NULL) {
        out->kindless = tfwi_nulls_between(column->kindless.of, column->kindless.count,
                                           steps[part.first], steps[part.end]);
    }
    return good ? TFW_OK : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
}

static int lend_columns(const tfwi_piece *piece, bool is_list, tfwi_exported **out,
                        tfw_error *error) {
    const tfw_columns *columns = piece->block->columns[is_list];
    if (columns == NULL) {
        return TFW_OK;
    }
    *out = tfwi_calloc(columns->count, sizeof **out);
    int status = *out != NULL ? TFW_OK : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    for (size_t i = 0; status == TFW_OK && i < columns->count; i++) {
        status = lend_column(piece, is_list, i, &(*out)[i], error);
    }
    return status;
}

static void end_loan(const tfwi_piece *piece, bool is_list, tfwi_exported *lent) {
    for (size_t i = 0; lent != NULL && i < piece->block->columns[is_list]->count; i++) {
        tfwi_buffer_drop(lent[i].values);
        tfwi_buffer_drop(lent[i].offsets);
        tfwi_buffer_drop(lent[i].splits);
        tfwi_buffer_drop(lent[i].steps);
    }
    tfw_free(lent);
}

/* ---- Places --------------------------------------------------------------------------------- */

bool tfwi_places_add(tfwi_places *places, const tfw_chunk *chunk, uint64_t first, uint64_t count) {
    const uint64_t total = places->count + count;
    if (!TFWI_RESERVE(places->files, total) || !TFWI_RESERVE(places->numbers, total) ||
        !TFWI_RESERVE(places->offsets, total)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        tfw_place place;
        tfw_chunk_place(chunk, first + i, &place);
        places->first_file = places->count == 0 ? place.file : places->first_file;
        places->files.of[places->count] = (int32_t)(place.file - places->first_file);
        places->numbers.of[places->count] = (int64_t)place.record;
        places->offsets.of[places->count] = (int64_t)place.offset;
        places->count++;
    }
    return true;
}

void tfwi_places_free(tfwi_places *places) {
    tfw_free(places->files.of);
    tfw_free(places->numbers.of);
    tfw_free(places->offsets.of);
}

tfwi_positions tfwi_places_of(const tfwi_places *places, const char *const *names,
                                   uint64_t first_name) {
    tfwi_positions positions = {.path_count = 0};
    if (places->count != 0) {
        positions.paths = names + (places->first_file - first_name);
        positions.path_count = (size_t)places->files.of[places->count - 1] + 1;
        positions.files = places->files.of;
        positions.numbers = places->numbers.of;
        positions.offsets = places->offsets.of;
    }
    return positions;
}

/* ---- Chunks --------------------------------------------------------------------------------- */

int tfwi_export_chunk(const tfw_arrow_layout *layout, const tfw_chunk *chunk, uint64_t first,
                      uint64_t count, const tfwi_positions *positions,
                      struct ArrowArray *out, tfw_error *error) {
    const tfwi_piece *whole = &chunk->pieces.of[0];
    const tfwi_piece piece = {whole->block, whole->first + first, whole->first + first + count};
    tfwi_exported *lent[2] = {NULL, NULL};
    int status = lend_columns(&piece, false, &lent[0], error);
    status = status == TFW_OK ? lend_columns(&piece, true, &lent[1], error) : status;
    if (status == TFW_OK) {
        status = tfwi_export(layout, lent, (size_t)count, positions, out, error);
    }
    end_loan(&piece, false, lent[0]);
    end_loan(&piece, true, lent[1]);
    return status;
}

static bool chunk_fits(const tfw_arrow_layout *layout, const tfw_chunk *chunk, uint64_t first,
                       uint64_t count, const char *const *names) {
    const tfw_schema *const schemas[2] = {layout->context, layout->lists};
    const tfwi_piece *piece = &chunk->pieces.of[0];
    const uint64_t records = piece->end - piece->first;
    bool good = first <= records && count <= records - first;
    for (int i = 0; i < 2; i++) {
        const tfw_columns *columns = piece->block->columns[i];
        good = good && (columns != NULL ? columns->schema == schemas[i] && columns->note_absent
                                        : schemas[i] == NULL);
    }
    if ((layout->flags & TFW_ARROW_POSITIONS) != 0) {
        good = good && names != NULL && piece->block->offsets.count >= piece->end;
    }
    return good;
}

int tfw_arrow_chunk_create(const tfw_arrow_layout *layout, const tfw_chunk *chunk, uint64_t first,
                           uint64_t count, const char *const *names,
                           struct ArrowArray **out_array, tfw_error *error) {
    *out_array = NULL;
    if (!chunk_fits(layout, chunk, first, count, names)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a chunk of something else, or fewer records");
    }
    tfwi_places places = {.count = 0};
    struct ArrowArray *array = tfwi_calloc(1, sizeof *array);
    bool good = array != NULL;
    if (good && (layout->flags & TFW_ARROW_POSITIONS) != 0) {
        good = tfwi_places_add(&places, chunk, first, count);
    }
    const tfwi_positions positions = tfwi_places_of(&places, names, chunk->begin.file);
    int status = good ? tfwi_export_chunk(layout, chunk, first, count, &positions, array, error)
                      : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    tfwi_places_free(&places);
    if (status != TFW_OK) {
        tfw_free(array);
        return status;
    }
    *out_array = array;
    return TFW_OK;
}
