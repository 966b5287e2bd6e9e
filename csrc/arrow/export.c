/* SPDX-License-Identifier: Apache-2.0 */
/* Columns as Arrow arrays, which share the memory of values, offsets, splits and steps; all that is
 * computed is the validity, offsets of 32 bits, and rows of rows. */
#include "arrow/export.h"
#include "base/search.h"

typedef tfwi_exported source;

typedef struct exporter {
    const tfw_arrow_layout *layout;
    source *const *sources; /* of the context or the whole Example; of the feature lists */
    size_t records;
    tfw_error *error;
} exporter;

static int out_of_memory(tfw_error *error) {
    return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
}

/* ---- Which record --------------------------------------------------------------------------- */

static size_t record_of_cell(const exporter *e, const source *s, size_t cell) {
    return s->column.steps != NULL ? tfwi_row_of(s->column.steps, e->records, (int64_t)cell) : cell;
}

static size_t record_of_value(const exporter *e, const tfwi_table_field *field, const source *s,
                              size_t value) {
    size_t cell = s->column.splits != NULL
                      ? tfwi_row_of(s->column.splits, (size_t)s->column.cell_count, (int64_t)value)
                      : value / (size_t)field->size;
    return record_of_cell(e, s, cell);
}

static int fail_at(const exporter *e, int status, size_t record, const char *text) {
    tfwi_fail(e->error, status, text);
    TFWI_SET(e->error, record, (int64_t)record);
    return status;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* The offsets of strings in 32 bits. */
static int narrow_offsets(const exporter *e, const tfwi_table_field *field, const source *s,
                          tfwi_buffer **out) {
    const size_t count = (size_t)s->column.value_count;
    if (s->column.byte_count > INT32_MAX) {
        size_t last = tfwi_row_of(s->column.offsets, count, INT32_MAX);
        return fail_at(e, TFW_E_UNSUPPORTED, record_of_value(e, field, s, last),
                       "The strings of a batch take 2 GiB; use large_binary or smaller batches");
    }
    *out = tfwi_buffer_new((count + 1) * sizeof(int32_t));
    if (*out == NULL) {
        return out_of_memory(e->error);
    }
    int32_t *narrow = (*out)->memory;
    for (size_t i = 0; i <= count; i++) {
        narrow[i] = (int32_t)s->column.offsets[i];
    }
    return TFW_OK;
}

static int export_strings(const exporter *e, const tfwi_table_field *field, const source *s,
                          struct ArrowArray *out) {
    const size_t count = (size_t)s->column.value_count;
    size_t wrong;
    if (field->strings >= TFW_LARGE_STRING &&
        !tfwi_strings_are_utf8(s->column.values, s->column.offsets, count, &wrong)) {
        return fail_at(e, TFW_E_WIRE, record_of_value(e, field, s, wrong),
                       "A string is not UTF-8; binary_as={column: \"large_binary\"} reads bytes");
    }
    tfwi_buffer *offsets = tfwi_buffer_share(s->offsets);
    int status = TFW_OK;
    if (field->strings == TFW_BINARY || field->strings == TFW_STRING) {
        tfwi_buffer_drop(offsets);
        offsets = NULL;
        status = narrow_offsets(e, field, s, &offsets);
    }
    tfwi_buffer *const buffers[3] = {NULL, offsets, s->values};
    if (status == TFW_OK && !tfwi_array_init(out, (int64_t)count, buffers, 3, 0, false)) {
        status = out_of_memory(e->error);
    }
    tfwi_buffer_drop(offsets);
    return status;
}

/* All values of a column. */
static int export_values(const exporter *e, const tfwi_table_field *field, const source *s,
                         struct ArrowArray *out) {
    if (field->kind == TFW_BYTES) {
        return export_strings(e, field, s, out);
    }
    tfwi_buffer *const buffers[2] = {NULL, s->values};
    return tfwi_array_init(out, (int64_t)s->column.value_count, buffers, 2, 0, false)
               ? TFW_OK
               : out_of_memory(e->error);
}

/* Makes values the items of fixed lists: elements of a shape. */
static int wrap_array(const exporter *e, const tfwi_table_field *field, struct ArrowArray *array,
                      int64_t elements) {
    for (size_t i = field->list_depth; i-- > 0;) {
        int64_t length = elements;
        for (size_t k = 0; k < i; k++) {
            length *= (int64_t)field->list_sizes[k];
        }
        if (!tfwi_array_wrap(array, length, NULL)) {
            return out_of_memory(e->error);
        }
    }
    return TFW_OK;
}

static int wrap_list(const exporter *e, struct ArrowArray *array, size_t length,
                     tfwi_buffer *offsets) {
    return tfwi_array_wrap(array, (int64_t)length, offsets) ? TFW_OK : out_of_memory(e->error);
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static tfwi_buffer *offsets_of(const tfwi_rows *rows) {
    tfwi_buffer *buffer = tfwi_buffer_new((rows->cells + 1) * sizeof(int64_t));
    if (buffer != NULL) {
        int64_t *offsets = buffer->memory;
        offsets[0] = 0;
        for (size_t i = 0; i < rows->cells; i++) {
            offsets[i + 1] = offsets[i] + rows->counts[i];
        }
    }
    return buffer;
}

/* The number of elements of every cell. */
static int count_elements(const exporter *e, const tfwi_table_field *field, const source *s,
                          tfwi_rows *rows) {
    const int64_t *splits = s->column.splits, size = (int64_t)field->size;
    rows->cells = (size_t)s->column.cell_count;
    rows->counts = tfwi_calloc(rows->cells, sizeof *rows->counts);
    if (rows->counts == NULL) {
        return out_of_memory(e->error);
    }
    for (size_t i = 0; i < rows->cells; i++) {
        const int64_t count = splits[i + 1] - splits[i];
        rows->counts[i] = size != 0 ? count / size : 0;
        rows->total += rows->counts[i];
        if (rows->counts[i] * size != count) {
            rows->cell = i;
            rows->fault = "The values do not fill their rows";
            return TFW_E_COUNT;
        }
    }
    return TFW_OK;
}

/* Whether the steps of a partition are those of the values. */
static int check_steps(const exporter *e, const source *s, const source *numbers) {
    for (size_t i = 1; s->column.steps != NULL && i <= e->records; i++) {
        if (s->column.steps[i] != numbers->column.steps[i]) {
            return fail_at(e, TFW_E_COUNT, i - 1,
                           "Values and partitions have different numbers of steps");
        }
    }
    return TFW_OK;
}

/* In a message with row ids, rows without values take no bytes: a few bytes could ask for any
 * number of rows. */
#define MOST_EMPTY_ROWS ((int64_t)1 << 24)

static int wrap_partitions(const exporter *e, const tfwi_table_field *field, const source *s,
                           struct ArrowArray *array, tfwi_rows *rows) {
    const int64_t most = MOST_EMPTY_ROWS + (int64_t)s->column.value_count;
    int status = TFW_OK;
    for (size_t i = field->partition_count; status == TFW_OK && i-- > 0;) {
        const tfw_partition *partition = &field->partitions[i];
        const bool uniform = partition->kind == TFW_UNIFORM_ROW_LENGTH;
        const source *numbers = uniform ? s : &e->sources[field->is_list][partition->column];
        tfwi_buffer *offsets = NULL;
        status = check_steps(e, s, numbers);
        if (status != TFW_OK) {
            return status;
        }
        status = tfwi_partition(rows, partition, &numbers->column, most, &offsets);
        if (status == TFW_OK) {
            status = wrap_list(e, array, (size_t)rows->total, offsets);
        } else if (status == TFW_E_MEMORY) {
            (void)out_of_memory(e->error);
        }
        tfwi_buffer_drop(offsets);
    }
    return status;
}

/* The lists of cells: of values, of elements, or of rows. Where splits are as they should be, they
 * are the offsets. */
static int wrap_cells(const exporter *e, const tfwi_table_field *field, const source *s,
                      struct ArrowArray *array) {
    if (field->size == 1 && field->partition_count == 0) {
        const int64_t count = (int64_t)s->column.value_count;
        int status = wrap_array(e, field, array, count);
        return status == TFW_OK ? wrap_list(e, array, (size_t)s->column.cell_count, s->splits)
                                : status;
    }
    tfwi_rows rows = {.fault = NULL};
    int status = count_elements(e, field, s, &rows);
    if (status == TFW_OK) {
        status = wrap_array(e, field, array, rows.total);
    }
    if (status == TFW_OK) {
        status = wrap_partitions(e, field, s, array, &rows);
    }
    if (status == TFW_OK) {
        tfwi_buffer *offsets = offsets_of(&rows);
        status = offsets == NULL ? out_of_memory(e->error)
                                 : wrap_list(e, array, rows.cells, offsets);
        tfwi_buffer_drop(offsets);
    }
    if (rows.fault != NULL) {
        (void)fail_at(e, status, record_of_cell(e, s, rows.cell), rows.fault);
    }
    tfw_free(rows.counts);
    return status;
}

/* One value for each record; null where there is none. */
static int export_scalars(const exporter *e, const tfwi_table_field *field, const source *s,
                          struct ArrowArray *out) {
    size_t several;
    if (tfwi_has_one_each(&s->column, &several)) {
        return export_values(e, field, s, out);
    }
    if (several != SIZE_MAX) {
        return fail_at(e, TFW_E_COUNT, several,
                       "Several values of what was inferred to be one");
    }
    source spread;
    tfwi_buffer *buffer;
    if (!tfwi_fill_cells(field->kind, s, &spread, &buffer)) {
        return out_of_memory(e->error);
    }
    int status = export_values(e, field, &spread, out);
    if (status == TFW_OK && !tfwi_mark_empty(&s->column, out)) {
        status = out_of_memory(e->error);
    }
    tfwi_buffer_drop(buffer);
    return status;
}

/* ---- Validity ------------------------------------------------------------------------------- */

tfwi_nulls tfwi_nulls_between(const int64_t *of, size_t count, int64_t first, int64_t end) {
    const size_t begin = tfwi_count_below(of, count, first);
    const size_t stop = tfwi_count_below(of, count, end);
    return (tfwi_nulls){count != 0 ? of + begin : NULL, stop - begin, first};
}

static const tfwi_nulls *nulls_of(const exporter *e, const tfwi_table_field *field, size_t column,
                                  bool steps) {
    const source *s = &e->sources[field->is_list][column];
    return steps ? &s->kindless : &s->absent;
}

static bool is_null(const tfwi_nulls *n, int64_t at) {
    at += n->first;
    return n->count != 0 && n->of[tfwi_row_of(n->of, n->count, at)] == at;
}

/* Whether all features of a field are null in a record or step, given that the values are. */
static bool all_null(const exporter *e, const tfwi_table_field *field, bool steps, int64_t at) {
    bool null = true;
    for (size_t i = 0; null && i < field->partition_count; i++) {
        const tfw_partition *partition = &field->partitions[i];
        null = partition->kind == TFW_UNIFORM_ROW_LENGTH ||
               is_null(nulls_of(e, field, (size_t)partition->column, steps), at);
    }
    for (size_t i = 0; null && i < field->index_count; i++) {
        null = is_null(nulls_of(e, field, (size_t)field->index_columns[i], steps), at);
    }
    return null;
}

/* Marks the records, or steps, without the feature or a kind as null. */
static int mark_nulls(const exporter *e, const tfwi_table_field *field, bool steps,
                      struct ArrowArray *array) {
    const tfwi_nulls *values = nulls_of(e, field, field->column, steps);
    const size_t size = ((size_t)array->length + 7) / 8;
    if (values->count == 0) {
        return TFW_OK;
    }
    tfwi_buffer *bitmap = tfwi_buffer_new(size);
    if (bitmap == NULL) {
        return out_of_memory(e->error);
    }
    uint8_t *bits = bitmap->memory;
    int64_t null_count = 0;
    memset(bits, 0xff, size);
    for (size_t i = 0; i < values->count; i++) {
        const int64_t at = values->of[i] - values->first;
        if (all_null(e, field, steps, at)) {
            bits[at / 8] &= (uint8_t)~(1u << at % 8);
            null_count++;
        }
    }
    if (null_count != 0) {
        tfwi_array_set_validity(array, bitmap, null_count);
    }
    tfwi_buffer_drop(bitmap);
    return TFW_OK;
}

/* ---- Fields --------------------------------------------------------------------------------- */

static int export_plain(const exporter *e, const tfwi_table_field *field, struct ArrowArray *out) {
    const source *s = &e->sources[field->is_list][field->column];
    int status = (field->is_scalar ? export_scalars : export_values)(e, field, s, out);
    if (status == TFW_OK && field->is_variable && !field->is_scalar) {
        status = wrap_cells(e, field, s, out);
        if (status == TFW_OK) {
            status = mark_nulls(e, field, field->is_list, out);
        }
    } else if (status == TFW_OK) {
        const int64_t cells = (int64_t)s->column.cell_count;
        status = wrap_array(e, field, out, cells);
        if (status == TFW_OK && !field->is_variable && !field->is_list &&
            (e->layout->flags & TFW_ARROW_SAMPLED) != 0) {
            status = mark_nulls(e, field, false, out);
        }
    }
    if (status == TFW_OK && field->is_list) {
        status = wrap_list(e, out, e->records, s->steps);
        if (status == TFW_OK) {
            status = mark_nulls(e, field, false, out);
        }
    }
    return status;
}

/* The indices of several dimensions side by side: rows of them. */
static int interleave(const exporter *e, const tfwi_table_field *field, size_t count,
                      struct ArrowArray *out) {
    const size_t rank = field->index_count;
    tfwi_buffer *buffer = tfwi_buffer_new(count * rank * sizeof(int64_t));
    if (buffer == NULL) {
        return out_of_memory(e->error);
    }
    int64_t *rows = buffer->memory;
    for (size_t k = 0; k < rank; k++) {
        const int64_t *values = e->sources[0][field->index_columns[k]].column.values;
        for (size_t i = 0; i < count; i++) {
            rows[i * rank + k] = values[i];
        }
    }
    tfwi_buffer *const buffers[2] = {NULL, buffer};
    bool good = tfwi_array_init(out, (int64_t)(count * rank), buffers, 2, 0, false) &&
                tfwi_array_wrap(out, (int64_t)count, NULL);
    tfwi_buffer_drop(buffer);
    return good ? TFW_OK : out_of_memory(e->error);
}

static int export_indices(const exporter *e, const tfwi_table_field *field, const source *s,
                          struct ArrowArray *out) {
    for (size_t k = 0; k < field->index_count; k++) {
        const int64_t *splits = e->sources[0][field->index_columns[k]].column.splits;
        for (size_t i = 0; i < e->records; i++) {
            if (splits[i + 1] != s->column.splits[i + 1]) {
                return fail_at(e, TFW_E_COUNT, i, "There is not one index for every value");
            }
        }
    }
    if (field->index_count != 1) {
        return interleave(e, field, (size_t)s->column.value_count, out);
    }
    const source *indices = &e->sources[0][field->index_columns[0]];
    tfwi_buffer *const buffers[2] = {NULL, indices->values};
    return tfwi_array_init(out, (int64_t)s->column.value_count, buffers, 2, 0, false)
               ? TFW_OK
               : out_of_memory(e->error);
}

static int export_sparse(const exporter *e, const tfwi_table_field *field, struct ArrowArray *out) {
    const source *s = &e->sources[0][field->column];
    tfwi_buffer *const none[1] = {NULL};
    if (!tfwi_array_init(out, (int64_t)e->records, none, 1, 2, false)) {
        return out_of_memory(e->error);
    }
    int status = export_indices(e, field, s, out->children[0]);
    if (status == TFW_OK) {
        status = wrap_list(e, out->children[0], e->records, s->splits);
    }
    if (status == TFW_OK) {
        status = export_values(e, field, s, out->children[1]);
    }
    if (status == TFW_OK) {
        status = wrap_list(e, out->children[1], e->records, s->splits);
    }
    return status == TFW_OK ? mark_nulls(e, field, false, out) : status;
}

/* ---- Tables --------------------------------------------------------------------------------- */

static int export_table(const exporter *e, const tfwi_positions *positions,
                        struct ArrowArray *out) {
    const tfw_arrow_layout *layout = e->layout;
    tfwi_buffer *const none[1] = {NULL};
    const size_t more = (layout->flags & TFW_ARROW_POSITIONS) != 0 ? 3 : 0;
    if (!tfwi_array_init(out, (int64_t)e->records, none, 1, layout->count + more, false)) {
        return out_of_memory(e->error);
    }
    int status = TFW_OK;
    for (size_t i = 0; status == TFW_OK && i < layout->count; i++) {
        const tfwi_table_field *field = &layout->fields[i];
        status = (field->index_count != 0 ? export_sparse : export_plain)(e, field,
                                                                          out->children[i]);
        if (status != TFW_OK) {
            TFWI_SET(e->error, feature, (int32_t)i);
        }
    }
    if (status == TFW_OK && more != 0) {
        const bool good = tfwi_export_positions(positions, e->records,
                                                out->children + layout->count);
        status = good ? TFW_OK : out_of_memory(e->error);
    }
    if (status != TFW_OK) {
        tfwi_array_release(out);
    }
    return status;
}

int tfwi_export(const tfw_arrow_layout *layout, tfwi_exported *const columns[2], size_t count,
                const tfwi_positions *positions, struct ArrowArray *out, tfw_error *error) {
    const exporter e = {.layout = layout, .sources = columns, .records = count, .error = error};
    return export_table(&e, positions, out);
}
