/* Columns under construction: their memory, the judgement of a record, and handing over. */
#define _DEFAULT_SOURCE

#include "parse/columns.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

/* ---- Memory --------------------------------------------------------------------------------- */

#define LARGE_ARRAY ((size_t)1 << 22)
#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Asks for huge pages, where the system has them: fresh memory comes at a fault per page, which for
 * 4 KiB takes several times as long as filling it. */
static void prefer_huge_pages(uint8_t *data, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    uintptr_t begin = ((uintptr_t)data + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)data + size) & ~(HUGE_PAGE - 1);
    if (size >= LARGE_ARRAY && begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* without it, it works too */
    }
#else
    (void)data;
    (void)size;
#endif
}

bool tfwi_array_grow(tfwi_array *array, size_t size) {
    size_t capacity = array->capacity <= SIZE_MAX / 2 ? array->capacity * 2 : size;
    if (array->data == NULL && capacity < array->hint) {
        capacity = array->hint;
    }
    if (capacity < size) {
        capacity = size;
    }
    uint8_t *data = tfwi_realloc(array->data, capacity);
    if (data == NULL) {
        return false;
    }
    prefer_huge_pages(data, capacity);
    array->data = data;
    array->capacity = capacity;
    return true;
}

/* Forgets memory handed over; the size remembered, and an eighth more since batches vary, spares
 * the next one growing step by step. Kernels want room behind what they write. */
static void array_take(tfwi_array *array, size_t size) {
    *array = (tfwi_array){.hint = size + size / 8 + TFWI_MATCH_ROOM};
}

/* Room for count int64s, of which the first is 0 in empty columns. */
static bool reserve_int64s(tfwi_array *array, uint64_t count, bool empty) {
    size_t size;
    if (count > SIZE_MAX || tfwi_mul_overflows((size_t)count, sizeof(int64_t), &size) ||
        !tfwi_array_reserve(array, size)) {
        return false;
    }
    if (empty) {
        tfwi_int64s(array)[0] = 0;
    }
    return true;
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* Feature lists have defaults without values: they only allow the list to be absent. */
static bool default_is_complete(const tfw_feature *feature) {
    return !feature->has_default || feature->count == 0 || feature->default_values != NULL;
}

int tfw_columns_create(const tfw_schema *schema, unsigned flags, tfw_columns **out_columns,
                       tfw_error *error) {
    *out_columns = NULL;
    bool lists = (flags & TFW_FEATURE_LISTS) != 0;
    if (schema == NULL || (flags & ~(unsigned)TFW_FEATURE_LISTS) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no schema, or unknown flags");
    }
    size_t count = schema->count;
    for (size_t i = 0; i < count && !lists; i++) {
        if (!default_is_complete(&schema->features[i])) {
            return tfwi_columns_fail(TFW_E_SCHEMA, i, -1, -1, error);
        }
    }
    tfw_columns *columns = tfwi_calloc(1, sizeof *columns + count * sizeof columns->columns[0]);
    if (columns == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    columns->schema = schema;
    columns->count = count;
    columns->lists = lists;
    columns->kernel = count != 0 ? tfwi_matcher_best() : NULL;
    for (size_t i = 0; i < count; i++) {
        const tfw_feature *feature = &schema->features[i];
        bool variable = feature->layout != TFW_DENSE;
        columns->columns[i] = (tfwi_column){
            .next = &columns->columns[i + 1 < count ? i + 1 : 0],
            .feature = feature,
            .count = variable ? UINT64_MAX : feature->count,
            .multiple = feature->layout == TFW_REPEATED ? feature->count : 1,
            .value_size = tfwi_value_size(feature->kind),
            .kind = feature->kind,
            .variable = variable,
            .bound = !lists && !variable && feature->kind != TFW_BYTES,
            .lists = lists,
        };
        tfwi_template_init(&columns->columns[i].usual, feature, lists);
    }
    columns->first = count != 0 ? columns->columns : NULL;
    *out_columns = columns;
    return TFW_OK;
}

void tfw_columns_free(tfw_columns *columns) {
    if (columns == NULL) {
        return;
    }
    for (size_t i = 0; i < columns->count; i++) {
        tfwi_column *column = &columns->columns[i];
        if (!column->bound) {
            tfw_free(column->values.data);
        }
        tfw_free(column->offsets.data);
        tfw_free(column->splits.data);
        tfw_free(column->steps.data);
    }
    tfw_free(columns);
}

void tfw_columns_clear(tfw_columns *columns) {
    columns->records = 0;
    columns->taken = false;
    for (size_t i = 0; i < columns->schema->count; i++) {
        columns->columns[i].taken = false;
    }
}

void tfw_columns_truncate(tfw_columns *columns, uint64_t records) {
    if (records < columns->records) {
        columns->records = records;
    }
}

uint64_t tfw_columns_records(const tfw_columns *columns) { return columns->records; }

/* Bytes of the values of so many records; true on overflow. */
static bool dense_size(const tfwi_column *column, uint64_t records, size_t *out_size) {
    size_t record = (size_t)column->count * column->value_size; /* the schema saw to it */
    return records > SIZE_MAX || tfwi_mul_overflows(record, (size_t)records, out_size);
}

int tfw_columns_bind(tfw_columns *columns, size_t feature, void *values, uint64_t capacity,
                     tfw_error *error) {
    if (feature >= columns->schema->count || !columns->columns[feature].bound) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "only dense numbers can be bound");
    }
    tfwi_column *column = &columns->columns[feature];
    size_t size;
    if (dense_size(column, capacity, &size) || (values == NULL && size != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no memory that can be bound");
    }
    column->values.data = values;
    column->values.capacity = size;
    return TFW_OK;
}

int tfw_columns_bind_all(tfw_columns *columns, void *const *values, uint64_t capacity,
                         tfw_error *error) {
    int status = TFW_OK;
    for (size_t i = 0; i < columns->schema->count && status == TFW_OK; i++) {
        if (columns->columns[i].bound) {
            status = tfw_columns_bind(columns, i, values[i], capacity, error);
        }
    }
    return status;
}

/* What a column needs for so many records, apart from their values. */
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
        size_t size;
        if (column->bound &&
            (dense_size(column, records, &size) || size > column->values.capacity)) {
            return tfwi_columns_fail(TFW_E_ARGUMENT, i, -1, -1, error);
        }
        if (!reserve_column(column, records, columns->records == 0)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
    }
    return TFW_OK;
}

/* ---- Finding and filling -------------------------------------------------------------------- */

tfwi_column *tfwi_columns_find(tfw_columns *columns, const uint8_t *key, size_t len) {
    tfwi_column *column = *columns->expected;
    if (column == NULL || !tfwi_key_is(column->feature, key, len)) {
        size_t found = tfwi_schema_find(columns->schema, key, len);
        if (found == TFWI_NOT_FOUND) {
            return NULL;
        }
        column = &columns->columns[found];
        *columns->expected = column;
    }
    columns->expected = &column->next;
    return column;
}

bool tfwi_cell_append_bytes(tfwi_column *column, const uint8_t *data, size_t len) {
    if (tfwi_cell_room(column) != 0) {
        size_t index = (size_t)(column->first + column->found);
        if (!tfwi_array_reserve(&column->offsets, (index + 2) * sizeof(int64_t))) {
            return false;
        }
        int64_t *offsets = tfwi_int64s(&column->offsets);
        size_t begin = (size_t)offsets[index], end;
        if (tfwi_add_overflows(begin, len, &end) || !tfwi_array_reserve(&column->values, end)) {
            return false;
        }
        if (len != 0) {
            memcpy(column->values.data + begin, data, len);
        }
        offsets[index + 1] = (int64_t)end;
    }
    column->found++;
    return true;
}

/* ---- Judging a record ----------------------------------------------------------------------- */

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
    if (error != NULL) {
        error->feature = (int32_t)feature;
        error->expected = expected;
        error->found = found;
    }
    return status;
}

static bool fill_default(tfwi_column *column) {
    const tfw_feature *feature = column->feature;
    size_t count = (size_t)feature->count;
    tfwi_cell_restart(column, column->kind);
    if (column->kind == TFW_BYTES) {
        const int64_t *offsets = feature->default_offsets;
        const uint8_t *strings = feature->default_values;
        for (size_t i = 0; i < count; i++) {
            if (!tfwi_cell_append_bytes(column, strings + offsets[i],
                                        (size_t)(offsets[i + 1] - offsets[i]))) {
                return false;
            }
        }
    } else if (count != 0) {
        memcpy(column->values.data + column->first * column->value_size, feature->default_values,
               count * column->value_size);
    }
    return true;
}

static bool is_missing(const tfwi_column *column, bool present, unsigned flags) {
    bool empty = column->found_kind == column->kind && column->found == 0 && column->count != 0;
    if (empty && !column->variable && (flags & TFW_EMPTY_IS_MISSING) != 0) {
        return true;
    }
    /* The context of a SequenceExample is parsed by another rule of TensorFlow: there a Feature
     * that has no kind is present. */
    return !present || (column->found_kind == TFW_NONE && (flags & TFWI_SEQUENCE) == 0);
}

static bool count_fits(const tfwi_column *column) {
    uint64_t count = column->feature->count;
    switch (column->feature->layout) {
    case TFW_DENSE: return column->found == count;
    case TFW_REPEATED: return count != 0 ? column->found % count == 0 : column->found == 0;
    default: return true;
    }
}

static int finish_column(tfw_columns *columns, size_t i, unsigned flags, tfw_error *error) {
    tfwi_column *column = &columns->columns[i];
    bool present = column->serial >= columns->serial;
    if (column->serial == columns->serial + TFWI_FILLED) {
        return TFW_OK;
    }
    if (!present) {
        tfwi_cell_begin(column, columns->records);
    }
    if (!is_missing(column, present, flags)) {
        if (column->found_kind != column->kind && column->found_kind != TFW_NONE) {
            return tfwi_columns_fail(TFW_E_KIND, i, column->kind, column->found_kind, error);
        }
        if (!count_fits(column)) {
            return tfwi_columns_fail(TFW_E_COUNT, i, (int64_t)column->feature->count,
                                     (int64_t)column->found, error);
        }
    } else if (!column->variable) {
        if (!column->feature->has_default) {
            return tfwi_columns_fail(TFW_E_MISSING, i, (int64_t)column->count, -1, error);
        }
        if (!fill_default(column)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
    }
    if (column->variable) {
        tfwi_int64s(&column->splits)[columns->records + 1] =
            (int64_t)(column->first + column->found);
    }
    return TFW_OK;
}

int tfwi_columns_finish(tfw_columns *columns, unsigned flags, tfw_error *error) {
    size_t unfilled = columns->schema->count - columns->filled;
    for (size_t i = 0; i < columns->schema->count && unfilled != 0; i++) {
        int status = finish_column(columns, i, flags, error);
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
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
    /* An array that was never needed exists all the same, so that no pointer is missing. */
    if (!reserve_column(column, columns->records, columns->records == 0) ||
        !tfwi_array_reserve(&column->values, 1)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    uint64_t cells = columns->records;
    if (column->lists) {
        cells = (uint64_t)tfwi_int64s(&column->steps)[columns->records];
    }
    uint64_t values = cells * column->count;
    if (column->variable) {
        values = (uint64_t)tfwi_int64s(&column->splits)[cells];
    }
    uint64_t bytes = values * column->value_size;
    if (column->kind == TFW_BYTES) {
        bytes = (uint64_t)tfwi_int64s(&column->offsets)[values];
    }
    *out_column = (tfw_column){
        .values = column->values.data,
        .offsets = tfwi_int64s(&column->offsets),
        .splits = tfwi_int64s(&column->splits),
        .steps = tfwi_int64s(&column->steps),
        .value_count = values,
        .byte_count = bytes,
        .cell_count = cells,
        .capacity = column->values.capacity,
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
    array_take(&column->values, (size_t)out_column->byte_count);
    array_take(&column->offsets, (size_t)(out_column->value_count + 1) * sizeof(int64_t));
    array_take(&column->splits, (size_t)(out_column->cell_count + 1) * sizeof(int64_t));
    array_take(&column->steps, (size_t)(columns->records + 1) * sizeof(int64_t));
    column->taken = true;
    columns->taken = true;
    return TFW_OK;
}

int tfw_columns_donate(tfw_columns *columns, size_t feature, void *values, uint64_t capacity,
                       tfw_error *error) {
    if (feature >= columns->schema->count || columns->columns[feature].bound ||
        columns->columns[feature].values.data != NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "not a grown column, or it has memory");
    }
    if (capacity > SIZE_MAX || (values == NULL && capacity != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no memory that can be given");
    }
    columns->columns[feature].values.data = values;
    columns->columns[feature].values.capacity = (size_t)capacity;
    return TFW_OK;
}
