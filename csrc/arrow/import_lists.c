/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of Arrow data: which elements each record has, and which records have none. */
#include "arrow/import_parts.h"
#include "base/search.h"

#include <limits.h>

/* ---- Records and positions ------------------------------------------------------------------ */

uint64_t tfwi_record_of(const tfwi_cells *cells, uint64_t at, uint64_t *out_end) {
    if (cells->splits == NULL) {
        *out_end = (at / cells->count + 1) * cells->count;
        return at / cells->count;
    }
    const size_t record = tfwi_row_of(cells->splits, (size_t)cells->records, (int64_t)at);
    *out_end = (uint64_t)cells->splits[record + 1];
    return record;
}

int tfwi_fail_at(tfwi_column *c, uint64_t at, const char *text) {
    uint64_t end;
    tfwi_fail(c->error, TFW_E_ARGUMENT, text);
    TFWI_SET(c->error, record, (int64_t)tfwi_record_of(&c->cells, at, &end));
    return TFW_E_ARGUMENT;
}

int tfwi_check_record(tfwi_column *c, uint64_t total) {
    if (c->cells.records == 1 && total > INT_MAX) {
        return tfwi_fail_at(c, 0, "a message above 2 GiB, the limit of protobuf");
    }
    return TFW_OK;
}

int tfwi_refuse(tfwi_column *c, tfwi_finder *find, const void *of, int status, const char *text) {
    uint64_t at = find(of, &c->cells, 0);
    while (at < c->cells.total) {
        uint64_t end;
        uint64_t record = tfwi_record_of(&c->cells, at, &end);
        if (c->presence == NULL || c->presence[record] != TFW_ABSENT) {
            tfwi_fail(c->error, status, text);
            TFWI_SET(c->error, record, (int64_t)record);
            return status;
        }
        at = find(of, &c->cells, end);
    }
    return TFW_OK;
}

/* ---- Nulls ---------------------------------------------------------------------------------- */

/* The first 0 among count bits from bit first on; count: there is none. */
static uint64_t find_zero(const uint8_t *bits, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count;) {
        if (((first + i) & 7) == 0 && count - i >= 8 && bits[(first + i) >> 3] == 0xff) {
            i += 8;
        } else if (tfwi_bit(bits, first + i)) {
            i++;
        } else {
            return i;
        }
    }
    return count;
}

static uint64_t find_null(const void *of, const tfwi_cells *cells, uint64_t from) {
    const struct ArrowArray *a = of;
    const uint8_t *bits = tfwi_bitmap(a);
    const uint64_t offset = (uint64_t)a->offset;
    if (bits == NULL) {
        return cells->total;
    }
    if (cells->take == NULL) {
        return from + find_zero(bits, offset + cells->begin + from, cells->total - from);
    }
    while (from < cells->total &&
           (cells->take[from] < 0 || tfwi_bit(bits, offset + (uint64_t)cells->take[from]))) {
        from++;
    }
    return from;
}

/* The lists of records that are null, as steps without a kind. */
static int note_null_steps(tfwi_column *c, const struct ArrowArray *array) {
    const uint8_t *bits = tfwi_bitmap(array);
    if (bits == NULL) {
        return TFW_OK;
    }
    uint8_t *presence = tfwi_arena_take(c->arena, c->cells.total, 1);
    if (presence == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i < c->cells.total; i++) {
        const int64_t at = c->cells.take != NULL ? c->cells.take[i]
                                                 : (int64_t)(c->cells.begin + i);
        const bool is_null = at < 0 || !tfwi_bit(bits, (uint64_t)array->offset + (uint64_t)at);
        presence[i] = is_null ? TFW_KINDLESS : TFW_PRESENT;
    }
    c->levels[1].presence = presence;
    return TFW_OK;
}

int tfwi_mark_present(tfwi_column *c) {
    if (c->presence == NULL) {
        c->presence = tfwi_arena_take(c->arena, c->cells.records, 1);
        if (c->presence == NULL) {
            return tfwi_no_memory(c);
        }
        memset(c->presence, TFW_PRESENT, (size_t)c->cells.records);
    }
    return TFW_OK;
}

int tfwi_note_nulls(tfwi_column *c, const struct ArrowArray *array) {
    if (c->depth == 1 && c->levels != NULL && c->type->depth > 1) {
        return note_null_steps(c, array);
    }
    if (c->depth != 0) {
        return tfwi_refuse(c, find_null, array, TFW_E_UNSUPPORTED,
                           "a null inside a list; leave it out or fill it");
    }
    if (find_null(array, &c->cells, 0) == c->cells.total) {
        return TFW_OK;
    }
    const uint8_t *bits = array->buffers[0];
    int status = tfwi_mark_present(c);
    for (uint64_t i = 0; status == TFW_OK && i < c->cells.records; i++) {
        const int64_t at = c->cells.take != NULL ? c->cells.take[i]
                                                 : (int64_t)(c->cells.begin + i);
        if (at >= 0 && !tfwi_bit(bits, (uint64_t)array->offset + (uint64_t)at)) {
            c->presence[i] = TFW_ABSENT;
        }
    }
    return status;
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* The splits of records whose positions hold [inner[i], inner[i + 1]) each. */
static int compose(tfwi_column *c, const int64_t *inner, tfwi_cells *next) {
    const tfwi_cells *cells = &c->cells;
    next->splits = inner;
    if (c->levels != NULL) {
        c->levels[c->depth].splits = inner;
        c->levels[c->depth].count = cells->total;
    }
    if (cells->splits == NULL && cells->count == 1) {
        return TFW_OK;
    }
    int64_t *splits = tfwi_arena_take(c->arena, cells->records + 1, sizeof *splits);
    if (splits == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i <= cells->records; i++) {
        splits[i] = inner[cells->splits == NULL ? i * cells->count : (uint64_t)cells->splits[i]];
    }
    next->splits = splits;
    return TFW_OK;
}

/* The level of lists of one size. */
static int note_fixed_level(tfwi_column *c, uint64_t size) {
    const uint64_t count = c->cells.total;
    int64_t *splits = tfwi_arena_take(c->arena, count + 1, sizeof *splits);
    if (splits == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i <= count; i++) {
        splits[i] = (int64_t)(i * size);
    }
    c->levels[c->depth].splits = splits;
    c->levels[c->depth].count = count;
    return TFW_OK;
}

static int enter_fixed(tfwi_column *c, const struct ArrowArray *array, uint64_t size) {
    tfwi_cells *cells = &c->cells;
    if (c->levels != NULL) {
        int status = note_fixed_level(c, size);
        if (status != TFW_OK) {
            return status;
        }
    }
    if (cells->splits != NULL) {
        int64_t *splits = tfwi_arena_take(c->arena, cells->records + 1, sizeof *splits);
        if (splits == NULL) {
            return tfwi_no_memory(c);
        }
        for (uint64_t i = 0; i <= cells->records; i++) {
            splits[i] = cells->splits[i] * (int64_t)size;
        }
        cells->splits = splits;
    }
    cells->begin = ((uint64_t)array->offset + cells->begin) * size;
    cells->total *= size;
    cells->count *= size;
    return TFW_OK;
}

/* Lists that lie one after the other, by the offsets of an array. */
static int enter_contiguous(tfwi_column *c, const struct ArrowArray *array, bool is_64) {
    tfwi_cells next = {.records = c->cells.records};
    int64_t *inner = tfwi_arena_take(c->arena, c->cells.total + 1, sizeof *inner);
    if (inner == NULL) {
        return tfwi_no_memory(c);
    }
    const uint64_t at = (uint64_t)array->offset + c->cells.begin;
    const int64_t first = c->cells.total != 0 ? tfwi_load_int(array->buffers[1], is_64, at) : 0;
    int64_t last = first;
    inner[0] = 0;
    for (uint64_t i = 1; i <= c->cells.total; i++) {
        int64_t end = tfwi_load_int(array->buffers[1], is_64, at + i);
        if (first < 0 || end < last) {
            return tfwi_fail_at(c, i - 1, "offsets of lists that decrease, or are negative");
        }
        inner[i] = end - first;
        last = end;
    }
    if (last > array->children[0]->length) {
        return tfwi_fail_at(c, c->cells.total - 1, "offsets of lists outside of the elements");
    }
    next.begin = (uint64_t)first;
    next.total = (uint64_t)(last - first);
    int status = compose(c, inner, &next);
    c->cells = next;
    return status;
}

/* Where element i of an array of lists begins in its child, and how long it is. */
static bool locate_list(const struct ArrowArray *array, const tfwi_list_type *list, uint64_t i,
                        int64_t *out_begin, int64_t *out_size) {
    const bool is_64 = list->kind == TFWI_LIST_64 || list->kind == TFWI_LIST_VIEW_64;
    if (list->kind == TFWI_LIST_FIXED) {
        *out_begin = (int64_t)i * list->size;
        *out_size = list->size;
        return true; /* checked before */
    }
    *out_begin = tfwi_load_int(array->buffers[1], is_64, i);
    if (list->kind >= TFWI_LIST_VIEW_32) {
        *out_size = tfwi_load_int(array->buffers[2], is_64, i);
    } else {
        int64_t end = tfwi_load_int(array->buffers[1], is_64, i + 1);
        if (end < *out_begin) {
            return false;
        }
        *out_size = *out_begin < 0 ? -1 : end - *out_begin;
    }
    const int64_t length = array->children[0]->length;
    return *out_begin >= 0 && *out_size >= 0 && *out_begin <= length &&
           *out_size <= length - *out_begin;
}

/* What expand writes: inner splits, and where each list begins in the child. */
static int locate_lists(tfwi_column *c, const struct ArrowArray *array, const tfwi_list_type *list,
                        int64_t *inner, int64_t *begins) {
    const uint8_t *bits = tfwi_bitmap(array);
    const uint64_t offset = (uint64_t)array->offset;
    inner[0] = 0;
    for (uint64_t i = 0; i < c->cells.total; i++) {
        int64_t position = c->cells.take != NULL ? c->cells.take[i]
                                                 : (int64_t)(c->cells.begin + i);
        int64_t size = 0;
        begins[i] = 0;
        const uint64_t at = offset + (uint64_t)position;
        if (position >= 0 && (bits == NULL || tfwi_bit(bits, at)) &&
            !locate_list(array, list, at, &begins[i], &size)) {
            return tfwi_fail_at(c, i, "offsets or sizes of lists outside of the elements");
        }
        if (size > INT64_MAX / 16 - inner[i]) {
            return tfwi_fail_at(c, i, "more elements than memory can hold");
        }
        inner[i + 1] = inner[i] + size;
    }
    return tfwi_check_record(c, (uint64_t)inner[c->cells.total]);
}

/* Lists that lie anywhere: their elements are taken one by one. */
static int expand(tfwi_column *c, const struct ArrowArray *array, const tfwi_list_type *list) {
    const uint64_t lists = c->cells.total;
    int64_t *inner = tfwi_arena_take(c->arena, lists + 1, sizeof *inner);
    int64_t *begins = tfwi_arena_take(c->arena, lists, sizeof *begins);
    if (inner == NULL || begins == NULL) {
        return tfwi_no_memory(c);
    }
    int status = locate_lists(c, array, list, inner, begins);
    if (status != TFW_OK) {
        return status;
    }
    tfwi_cells next = {.records = c->cells.records, .total = (uint64_t)inner[lists]};
    int64_t *take = tfwi_arena_take(c->arena, next.total, sizeof *take);
    if (take == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i < lists; i++) {
        for (int64_t k = inner[i]; k < inner[i + 1]; k++) {
            take[k] = begins[i] + (k - inner[i]);
        }
    }
    next.take = take;
    status = compose(c, inner, &next);
    c->cells = next;
    return status;
}

int tfwi_enter_list(tfwi_column *c, const struct ArrowArray *array, const tfwi_list_type *list) {
    const bool is_kept = c->levels != NULL && tfwi_has_nulls(array); /* null may hide elements */
    if (c->cells.take != NULL || list->kind >= TFWI_LIST_VIEW_32 || is_kept) {
        return expand(c, array, list);
    }
    if (list->kind == TFWI_LIST_FIXED) {
        return enter_fixed(c, array, (uint64_t)list->size);
    }
    return enter_contiguous(c, array, list->kind == TFWI_LIST_64);
}
