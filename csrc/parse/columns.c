/* SPDX-License-Identifier: Apache-2.0 */
/* Columns under construction: their life, their memory, and handing over. */
#include "parse/columns.h"

#include "base/search.h"

enum {
    COLUMNS_FLAGS = TFW_FEATURE_LISTS | TFW_OWN_NUMBERS | TFW_NOTE_ABSENT | TFW_NOTE_UNKNOWN
};

/* The hint for what comes after memory that is handed over: an eighth more, since batches vary,
 * and the room past their values that kernels want. */
static size_t hint_of(uint64_t needed) { return (size_t)(needed + needed / 8) + TFWI_MATCH_ROOM; }

/* Room for count int64s, of which the first is 0 in empty columns. */
static bool reserve_int64s(tfwi_int64s *array, uint64_t count, bool empty) {
    if (!TFWI_RESERVE(*array, count)) {
        return false;
    }
    if (empty) {
        array->of[0] = 0;
    }
    return true;
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* Defaults of feature lists have no values: they only allow the list to be absent. */
static bool default_is_complete(const tfw_feature *feature) {
    return !feature->has_default || feature->count == 0 || feature->default_values != NULL;
}

int tfw_columns_create(const tfw_schema *schema, unsigned flags, tfw_columns **out_columns,
                       tfw_error *error) {
    *out_columns = NULL;
    bool lists = (flags & TFW_FEATURE_LISTS) != 0;
    int status = schema == NULL ? tfwi_fail(error, TFW_E_ARGUMENT, "no schema")
                                : tfwi_check_flags(flags, COLUMNS_FLAGS, error);
    if (status != TFW_OK) {
        return status;
    }
    size_t count = schema->count;
    for (size_t i = 0; i < count && !lists; i++) {
        if (!default_is_complete(&schema->features[i])) {
            return tfwi_columns_fail(TFW_E_SCHEMA, i, -1, -1, error);
        }
    }
    tfw_columns *columns =
        tfwi_calloc(1, sizeof *columns + (count + 1) * sizeof columns->columns[0]);
    if (columns != NULL && (flags & TFW_NOTE_UNKNOWN) != 0) {
        columns->unknown = tfwi_calloc(1, sizeof *columns->unknown);
    }
    if (columns == NULL || ((flags & TFW_NOTE_UNKNOWN) != 0 && columns->unknown == NULL)) {
        tfw_free(columns);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    columns->schema = schema;
    columns->count = count;
    columns->lists = lists;
    columns->note_absent = (flags & TFW_NOTE_ABSENT) != 0;
    columns->kernel = count != 0 ? tfwi_matcher_best() : NULL;
    for (size_t i = 0; i < count; i++) {
        const tfw_feature *feature = &schema->features[i];
        bool variable = feature->layout != TFW_DENSE;
        bool numbers = !lists && !variable && feature->kind != TFW_BYTES;
        columns->columns[i] = (tfwi_column){
            .next = &columns->columns[i + 1 < count ? i + 1 : 0],
            .feature = feature,
            .count = variable ? UINT64_MAX : feature->count,
            .multiple = feature->layout == TFW_REPEATED ? feature->count : 1,
            .value_size = tfwi_value_size(feature->kind),
            .kind = feature->kind,
            .variable = variable,
            .bound = numbers && (flags & TFW_OWN_NUMBERS) == 0,
            .owned = numbers && (flags & TFW_OWN_NUMBERS) != 0,
            .lists = lists,
        };
        tfwi_template_init(&columns->columns[i].usual, feature, lists);
    }
    tfwi_template_init_none(&columns->columns[count].usual);
    columns->first = count != 0 ? columns->columns : NULL;
    *out_columns = columns;
    return TFW_OK;
}

static tfwi_column_memory memory_of(const tfwi_column *column) {
    return (tfwi_column_memory){column->values, column->offsets, column->splits, column->steps,
                                column->absent};
}

void tfwi_column_memory_free(tfwi_column_memory *memory) {
    tfw_free(memory->values.of);
    tfw_free(memory->offsets.of);
    tfw_free(memory->splits.of);
    tfw_free(memory->steps.of);
    tfw_free(memory->absent.of);
}

size_t tfwi_column_memory_size(const tfwi_column_memory *memory) {
    return memory->values.capacity +
           (memory->offsets.capacity + memory->splits.capacity + memory->steps.capacity +
            memory->absent.capacity) *
               sizeof(int64_t);
}

size_t tfwi_columns_memory_size(const tfw_columns *columns) {
    size_t size = 0;
    for (size_t i = 0; columns != NULL && i < columns->count; i++) {
        const tfwi_column_memory memory = memory_of(&columns->columns[i]);
        size += tfwi_column_memory_size(&memory);
    }
    return size;
}

void tfw_columns_free(tfw_columns *columns) {
    if (columns == NULL) {
        return;
    }
    for (size_t i = 0; i < columns->count; i++) {
        tfwi_column *column = &columns->columns[i];
        tfwi_column_memory memory = memory_of(column);
        if (column->bound) {
            memory.values.of = NULL;
        }
        tfwi_column_memory_free(&memory);
        tfw_free(column->kindless.of);
    }
    tfwi_unknown_clear(columns->unknown);
    tfw_free(columns->unknown);
    tfw_free(columns);
}

void tfw_columns_clear(tfw_columns *columns) {
    columns->records = 0;
    columns->taken = false;
    tfwi_unknown_clear(columns->unknown);
    for (size_t i = 0; i < columns->schema->count; i++) {
        columns->columns[i].taken = false;
        columns->columns[i].absent.count = 0;
        columns->columns[i].kindless.count = 0;
    }
}

size_t tfw_columns_records(const tfw_columns *columns) { return (size_t)columns->records; }

/* Bytes of the values of that many records; true on overflow. */
static bool dense_size(const tfwi_column *column, uint64_t records, size_t *out_size) {
    size_t record = (size_t)column->count * column->value_size; /* checked by the schema */
    return records > SIZE_MAX || tfwi_mul_overflows(record, (size_t)records, out_size);
}

int tfw_columns_bind(tfw_columns *columns, size_t feature, void *values, size_t capacity,
                     tfw_error *error) {
    if (feature >= columns->schema->count || !columns->columns[feature].bound) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "only dense numbers can be bound");
    }
    tfwi_column *column = &columns->columns[feature];
    size_t size;
    if (dense_size(column, capacity, &size) || (values == NULL && size != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no memory that can be bound");
    }
    column->values.of = values;
    column->values.capacity = size;
    return TFW_OK;
}

/* Reserves what a column needs for that many records, apart from their values. */
static bool reserve_column(tfwi_column *column, uint64_t records, bool empty) {
    uint64_t cells = column->lists ? 0 : records; /* steps are counted when they come */
    return (!column->lists || reserve_int64s(&column->steps, records + 1, empty)) &&
           (!column->variable || reserve_int64s(&column->splits, cells + 1, empty)) &&
           (column->kind != TFW_BYTES || reserve_int64s(&column->offsets, 1, empty));
}

int tfwi_columns_prepare(tfw_columns *columns, size_t count, tfw_error *error) {
    uint64_t records = columns->records + count;
    if (columns->taken) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "columns were taken and not cleared");
    }
    if (records + 1 <= count) { /* an overflow */
        return tfwi_fail(error, TFW_E_ARGUMENT, "more records than memory can hold");
    }
    for (size_t i = 0; i < columns->schema->count; i++) {
        tfwi_column *column = &columns->columns[i];
        size_t size = 0;
        bool overflow = (column->bound || column->owned) && dense_size(column, records, &size);
        if (column->bound && (overflow || size > column->values.capacity)) {
            return tfwi_columns_fail(TFW_E_ARGUMENT, i, -1, -1, error);
        }
        if (overflow || (column->owned && !TFWI_RESERVE(column->values, size)) ||
            !reserve_column(column, records, columns->records == 0)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
    }
    return TFW_OK;
}

/* ---- Records of other columns --------------------------------------------------------------- */

/* What some records have in a column: which cells, values and bytes. */
typedef struct extent {
    uint64_t cells[2], values[2], bytes[2];
} extent;

static uint64_t cells_before(const tfwi_column *column, uint64_t record) {
    return column->lists ? (uint64_t)column->steps.of[record] : record;
}

static uint64_t values_before(const tfwi_column *column, uint64_t cell) {
    return column->variable ? (uint64_t)column->splits.of[cell] : cell * column->count;
}

static uint64_t bytes_before(const tfwi_column *column, uint64_t value) {
    return column->kind == TFW_BYTES ? (uint64_t)column->offsets.of[value]
                                     : value * column->value_size;
}

static extent extent_of(const tfwi_column *column, uint64_t first, uint64_t end) {
    extent e;
    for (int i = 0; i < 2; i++) {
        e.cells[i] = cells_before(column, i == 0 ? first : end);
        e.values[i] = values_before(column, e.cells[i]);
        e.bytes[i] = bytes_before(column, e.values[i]);
    }
    return e;
}

static uint64_t size_within(const uint64_t bounds[2]) { return bounds[1] - bounds[0]; }

/* Appends offsets (begin, end] of an array to those up to at, which go on from there. */
static void append_offsets(int64_t *out, uint64_t at, const int64_t *from, uint64_t begin,
                           uint64_t end) {
    const int64_t shift = out[at] - from[begin];
    for (uint64_t i = begin; i < end; i++) {
        out[++at] = from[i + 1] + shift;
    }
}

static bool reserve_extent(tfwi_column *column, const extent *at, const extent *e,
                           uint64_t records) {
    const uint64_t cells = at->cells[1] + size_within(e->cells);
    const uint64_t values = at->values[1] + size_within(e->values);
    return (!column->lists || TFWI_RESERVE(column->steps, records + 1)) &&
           (!column->variable || TFWI_RESERVE(column->splits, cells + 1)) &&
           (column->kind != TFW_BYTES || TFWI_RESERVE(column->offsets, values + 1)) &&
           TFWI_RESERVE(column->values, at->bytes[1] + size_within(e->bytes));
}

/* Appends the numbers within [begin, end), which then count from at on. */
static bool append_numbers(tfwi_int64s *out, uint64_t at, const tfwi_int64s *from, uint64_t begin,
                           uint64_t end) {
    const size_t stop = tfwi_count_below(from->of, from->count, (int64_t)end);
    size_t next = tfwi_count_below(from->of, from->count, (int64_t)begin);
    if (!TFWI_RESERVE_MORE(*out, stop - next)) {
        return false;
    }
    for (; next < stop; next++) {
        out->of[out->count++] = from->of[next] - (int64_t)begin + (int64_t)at;
    }
    return true;
}

static bool append_column(tfwi_column *column, uint64_t records, const tfwi_column *from,
                          size_t first, size_t end) {
    const extent e = extent_of(from, first, end), at = extent_of(column, records, records);
    if (!reserve_extent(column, &at, &e, records + (end - first)) ||
        !append_numbers(&column->absent, records, &from->absent, first, end) ||
        !append_numbers(&column->kindless, at.cells[1], &from->kindless, e.cells[0], e.cells[1])) {
        return false;
    }
    if (size_within(e.bytes) != 0) {
        memcpy(column->values.of + at.bytes[1], from->values.of + e.bytes[0],
               (size_t)size_within(e.bytes));
    }
    if (column->kind == TFW_BYTES) {
        append_offsets(column->offsets.of, at.values[1], from->offsets.of, e.values[0],
                       e.values[1]);
    }
    if (column->variable) {
        append_offsets(column->splits.of, at.cells[1], from->splits.of, e.cells[0], e.cells[1]);
    }
    if (column->lists) {
        append_offsets(column->steps.of, records, from->steps.of, first, end);
    }
    return true;
}

int tfwi_columns_append(tfw_columns *columns, const tfw_columns *from, size_t first, size_t end,
                        tfw_error *error) {
    int status = tfwi_columns_prepare(columns, end - first, error);
    for (size_t i = 0; i < columns->count && status == TFW_OK; i++) {
        if (!append_column(&columns->columns[i], columns->records, &from->columns[i], first,
                           end)) {
            status = tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
    }
    columns->records += status == TFW_OK ? end - first : 0;
    return status;
}

/* ---- Errors --------------------------------------------------------------------------------- */

static const char *misfit_text(int status) {
    switch (status) {
    case TFW_E_MISSING: return "required but missing";
    case TFW_E_KIND: return "values of another kind";
    case TFW_E_COUNT: return "another number of values";
    case TFW_E_SCHEMA: return "a default without values";
    default: return "a dense column has no room";
    }
}

int tfwi_columns_fail(int status, size_t feature, int64_t expected, int64_t found,
                      tfw_error *error) {
    tfwi_fail(error, status, misfit_text(status));
    TFWI_SET(error, feature, (int32_t)feature);
    TFWI_SET(error, expected, expected);
    TFWI_SET(error, found, found);
    return status;
}

/* ---- Handing over --------------------------------------------------------------------------- */

int tfw_columns_peek(tfw_columns *columns, size_t feature, tfw_column *out_column,
                     tfw_error *error) {
    *out_column = (tfw_column){0};
    if (feature >= columns->schema->count || columns->columns[feature].bound ||
        columns->columns[feature].taken) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "not a grown column, or taken already");
    }
    tfwi_column *column = &columns->columns[feature];
    /* Allocates arrays that were never needed, so that no pointer is NULL. */
    if (!reserve_column(column, columns->records, columns->records == 0) ||
        !TFWI_RESERVE(column->values, 1)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    uint64_t cells = columns->records;
    if (column->lists) {
        cells = (uint64_t)column->steps.of[columns->records];
    }
    uint64_t values = cells * column->count;
    if (column->variable) {
        values = (uint64_t)column->splits.of[cells];
    }
    uint64_t bytes = values * column->value_size;
    if (column->kind == TFW_BYTES) {
        bytes = (uint64_t)column->offsets.of[values];
    }
    *out_column = (tfw_column){
        .values = column->values.of,
        .offsets = column->offsets.of,
        .splits = column->splits.of,
        .steps = column->steps.of,
        .value_count = values,
        .byte_count = bytes,
        .cell_count = cells,
        .capacity = column->values.capacity,
        .absent = column->absent.of,
        .absent_count = column->absent.count,
    };
    return TFW_OK;
}

int tfw_columns_take(tfw_columns *columns, size_t feature, tfw_column *out_column,
                     tfw_error *error) {
    int status = tfw_columns_peek(columns, feature, out_column, error);
    if (status != TFW_OK) {
        return status;
    }
    tfwi_column *column = &columns->columns[feature];
    column->values = (tfwi_bytes){.hint = hint_of(out_column->byte_count)};
    column->offsets = (tfwi_int64s){.hint = hint_of(out_column->value_count)};
    column->splits = (tfwi_int64s){.hint = hint_of(out_column->cell_count)};
    column->steps = (tfwi_int64s){.hint = hint_of(columns->records)};
    column->absent = (tfwi_int64s){0};
    column->taken = true;
    columns->taken = true;
    return TFW_OK;
}

void tfwi_columns_exchange(tfw_columns *columns, size_t feature, tfwi_column_memory *memory) {
    tfwi_column *column = &columns->columns[feature];
    const tfwi_column_memory old = memory_of(column);
    column->values = memory->values;
    column->offsets = memory->offsets;
    column->splits = memory->splits;
    column->steps = memory->steps;
    column->absent = memory->absent;
    if (memory->values.of == NULL) {
        column->values.hint = old.values.capacity;
        column->offsets.hint = old.offsets.capacity;
        column->splits.hint = old.splits.capacity;
        column->steps.hint = old.steps.capacity;
    }
    *memory = old;
}

/* ---- Whole batches -------------------------------------------------------------------------- */

int tfw_columns_begin(tfw_columns *columns, void **memory, const size_t *sizes, size_t capacity,
                      tfw_error *error) {
    int status = TFW_OK;
    tfw_columns_clear(columns);
    for (size_t i = 0; i < columns->count && status == TFW_OK; i++) {
        if (columns->columns[i].bound) {
            status = tfw_columns_bind(columns, i, memory[i], capacity, error);
        }
    }
    for (size_t i = 0; i < columns->count && status == TFW_OK; i++) {
        tfwi_column *column = &columns->columns[i];
        if (!column->bound && column->values.of == NULL && memory[i] != NULL) {
            column->values.of = memory[i];
            column->values.capacity = sizes[i];
            memory[i] = NULL;
        }
    }
    return status;
}

int tfwi_columns_peek_all(tfw_columns *columns, tfw_column *out_columns, tfw_error *error) {
    int status = TFW_OK;
    for (size_t i = 0; i < columns->schema->count && status == TFW_OK; i++) {
        out_columns[i] = (tfw_column){0};
        if (!columns->columns[i].bound) {
            status = tfw_columns_peek(columns, i, &out_columns[i], error);
        }
    }
    return status;
}

int tfw_columns_finish(tfw_columns *columns, const uint8_t *lent, tfw_column *out_columns,
                       tfw_error *error) {
    int status = tfwi_columns_peek_all(columns, out_columns, error);
    for (size_t i = 0; i < columns->schema->count && status == TFW_OK; i++) {
        if (!columns->columns[i].bound && (lent == NULL || lent[i] == 0)) {
            status = tfw_columns_take(columns, i, &out_columns[i], error);
        }
    }
    return status;
}
