/* SPDX-License-Identifier: Apache-2.0 */
/* A column of Arrow data as the input of the encoder. */
#include "arrow/import_parts.h"

/* ---- Dictionaries --------------------------------------------------------------------------- */

/* A position is null only in the dictionary. Where each record has one, the record is absent. */
static int note_null(tfwi_column *c, uint64_t at) {
    uint64_t end;
    const uint64_t record = tfwi_record_of(&c->cells, at, &end);
    if (c->type->depth == 0) {
        int status = tfwi_mark_present(c);
        if (status != TFW_OK) {
            return status;
        }
        c->presence[record] = TFW_ABSENT;
    } else if (c->presence == NULL || c->presence[record] != TFW_ABSENT) {
        tfwi_fail(c->error, TFW_E_UNSUPPORTED, "a null inside a list; leave it out or fill it");
        TFWI_SET(c->error, record, (int64_t)record);
        return TFW_E_UNSUPPORTED;
    }
    return TFW_OK;
}

/* Checks indices in place; those of null become -1. */
static int check_indices(tfwi_column *c, const struct ArrowArray *array, int64_t *indices) {
    const struct ArrowArray *dictionary = array->dictionary;
    const uint8_t *index_bits = tfwi_bitmap(array);
    const uint8_t *bits = tfwi_bitmap(dictionary);
    const bool all_null = c->type->value == TFWI_VALUE_NULLS;
    for (uint64_t i = 0; i < c->cells.total; i++) {
        int64_t position = c->cells.take != NULL ? c->cells.take[i]
                                                 : (int64_t)(c->cells.begin + i);
        uint64_t at = (uint64_t)array->offset + (uint64_t)position;
        if (position < 0 || (index_bits != NULL && !tfwi_bit(index_bits, at))) {
            indices[i] = -1;
            continue;
        }
        if (indices[i] < 0 || indices[i] >= dictionary->length) {
            return tfwi_fail_at(c, i, "an index outside of the dictionary");
        }
        at = (uint64_t)dictionary->offset + (uint64_t)indices[i];
        if (all_null || (bits != NULL && !tfwi_bit(bits, at))) {
            indices[i] = -1;
            int status = note_null(c, i);
            if (status != TFW_OK) {
                return status;
            }
        }
    }
    return TFW_OK;
}

int tfwi_enter_dictionary(tfwi_column *c, const struct ArrowArray *array) {
    tfwi_cells *cells = &c->cells;
    int64_t *take = tfwi_arena_take(c->arena, cells->total, sizeof *take);
    if (take == NULL) {
        return tfwi_no_memory(c);
    }
    if (cells->total != 0) {
        tfwi_convert(c->type->index, array->buffers[1], (uint64_t)array->offset + cells->begin,
                     cells->take, cells->total, take);
    }
    int status = check_indices(c, array, take);
    cells->take = take;
    cells->begin = 0;
    return status;
}

/* ---- Columns -------------------------------------------------------------------------------- */

static uint64_t find_any(const void *of, const tfwi_cells *cells, uint64_t from) {
    (void)of;
    (void)cells;
    return from;
}

/* Values of the type null. Lists of them, all empty, do not say their kind; records that are null
 * are absent. */
static int import_nulls(tfwi_column *c) {
    const bool is_list = c->type->depth != 0;
    c->out->kind = TFW_INT64;
    if (is_list) {
        int status = tfwi_refuse(c, find_any, NULL, TFW_E_UNSUPPORTED,
                                 "a null inside a list; leave it out or fill it");
        if (status != TFW_OK) {
            return status;
        }
    }
    const bool all_alike = c->presence == NULL;
    if (all_alike) {
        c->presence = tfwi_arena_take(c->arena, c->cells.records, 1);
        if (c->presence == NULL) {
            return tfwi_no_memory(c);
        }
    }
    for (uint64_t i = 0; i < c->cells.records; i++) {
        if (all_alike || c->presence[i] == TFW_PRESENT) {
            c->presence[i] = is_list ? TFW_KINDLESS : TFW_ABSENT;
        }
    }
    c->cells = (tfwi_cells){.records = c->cells.records};
    return TFW_OK;
}

static int import_values(tfwi_column *c, const struct ArrowArray *array) {
    if (c->type->value == TFWI_VALUE_NULLS && c->type->index == TFWI_VALUE_NULLS) {
        return import_nulls(c);
    }
    int status = tfwi_note_nulls(c, array);
    if (status == TFW_OK && c->type->index != TFWI_VALUE_NULLS) {
        status = tfwi_enter_dictionary(c, array);
        array = array->dictionary;
    }
    if (status != TFW_OK || c->type->value == TFWI_VALUE_NULLS) {
        return status == TFW_OK ? import_nulls(c) : status;
    }
    return c->type->value < TFWI_VALUE_STRINGS_32 ? tfwi_import_numbers(c, array)
                                                  : tfwi_import_strings(c, array);
}

static void finish_import_column(const tfwi_column *c) {
    tfw_input *out = c->out;
    out->count = c->cells.splits == NULL ? c->cells.count : 0;
    out->splits = c->cells.splits;
    out->cell_count = c->cells.records;
    out->value_count = c->cells.total;
    out->presence = c->presence;
    if (out->kind != TFW_BYTES) {
        out->byte_count = out->value_count * (out->kind == TFW_FLOAT ? 4 : 8);
    }
}

/* From a struct to a field. Where the struct is null, no field has an element. */
static int enter_struct(tfwi_column *c, const struct ArrowArray *array) {
    int status = tfwi_note_nulls(c, array);
    c->cells.begin += (uint64_t)array->offset;
    if (status != TFW_OK || c->presence == NULL) {
        return status;
    }
    int64_t *take = tfwi_arena_take(c->arena, c->cells.records, sizeof *take);
    if (take == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i < c->cells.records; i++) {
        take[i] = c->presence[i] == TFW_PRESENT ? (int64_t)(c->cells.begin + i) : -1;
    }
    c->cells.take = take;
    c->cells.begin = 0;
    return TFW_OK;
}

int tfwi_import_column(const struct ArrowArray *array, const tfwi_type *type, uint64_t first,
                       uint64_t records, tfwi_arena *arena, tfw_input *out, tfw_level *levels,
                       tfw_error *error) {
    tfwi_column c = {.type = type, .arena = arena, .out = out, .error = error, .levels = levels,
                     .cells = {.records = records, .begin = first, .total = records, .count = 1}};
    *out = (tfw_input){.name = type->name, .name_len = strlen(type->name)};
    if (type->fields != 0) {
        int status = enter_struct(&c, array);
        if (status != TFW_OK) {
            return status;
        }
        array = array->children[type->member];
    }
    if (levels == NULL && tfwi_is_nested(type)) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED,
                         "lists in lists, whose lengths no feature holds");
    }
    for (; c.depth < type->depth; c.depth++) {
        if (levels != NULL) {
            levels[c.depth] = (tfw_level){0};
        }
        int status = tfwi_note_nulls(&c, array);
        if (status == TFW_OK) {
            status = tfwi_enter_list(&c, array, &type->lists[c.depth]);
        }
        if (status != TFW_OK) {
            return status;
        }
        array = array->children[0];
    }
    int status = import_values(&c, array);
    if (status == TFW_OK) {
        finish_import_column(&c);
    }
    if (levels != NULL && type->depth != 0) {
        levels[0].presence = c.presence;
    }
    return status;
}
