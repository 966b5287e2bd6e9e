/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a record: finding those of its features, filling and judging them. */
#include "parse/cells.h"

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

void tfwi_note_skipped(tfw_columns *columns, const uint8_t *p, const uint8_t *end) {
    for (; columns->unknown != NULL && p < end; p += 2 + (size_t)p[1]) {
        tfwi_unknown_note(columns->unknown, p + 4, p[3], false, columns->records);
    }
}

void tfwi_cell_open(tfw_columns *columns, tfwi_column *column) {
    uint64_t cell = columns->records;
    if (!tfwi_cell_is_open(column, columns->serial)) {
        tfwi_cell_begin(column, cell);
    }
    if (tfwi_cell_is_filled(column, columns->serial)) {
        column->found_kind = column->kind;
        column->found = column->variable
                            ? (uint64_t)column->splits.of[cell + 1] - column->first
                            : column->count;
        columns->filled--;
    }
    tfwi_cell_mark_open(column, columns->serial);
}

bool tfwi_cell_append_bytes(tfwi_column *column, const uint8_t *data, size_t len) {
    if (tfwi_cell_room(column) != 0) {
        size_t index = (size_t)(column->first + column->found);
        if (!TFWI_RESERVE(column->offsets, index + 2)) {
            return false;
        }
        int64_t *offsets = column->offsets.of;
        size_t begin = (size_t)offsets[index], end;
        if (tfwi_add_overflows(begin, len, &end) || !TFWI_RESERVE(column->values, end)) {
            return false;
        }
        if (len != 0) {
            memcpy(column->values.of + begin, data, len);
        }
        offsets[index + 1] = (int64_t)end;
    }
    column->found++;
    return true;
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
        memcpy(column->values.of + column->first * column->value_size, feature->default_values,
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
    return !present || (column->found_kind == TFW_NONE && (flags & TFWI_CONTEXT) == 0);
}

int tfwi_cell_check(const tfwi_column *column, int64_t *out_expected, int64_t *out_found) {
    *out_expected = column->kind;
    *out_found = column->found_kind;
    if (column->found_kind != column->kind && column->found_kind != TFW_NONE) {
        return TFW_E_KIND;
    }
    *out_expected = (int64_t)column->feature->count;
    *out_found = (int64_t)column->found;
    return tfwi_count_fits(column, column->found) ? TFW_OK : TFW_E_COUNT;
}

static int finish_column(tfw_columns *columns, size_t i, unsigned flags, tfw_error *error) {
    tfwi_column *column = &columns->columns[i];
    bool present = !tfwi_cell_is_absent(column, columns->serial);
    if (tfwi_cell_is_filled(column, columns->serial)) {
        return TFW_OK;
    }
    if (!present) {
        tfwi_cell_begin(column, columns->records);
    }
    if (column->found_kind == TFW_NONE && !tfwi_reserve_absent(columns, column)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (!is_missing(column, present, flags)) {
        int64_t expected, found;
        int status = tfwi_cell_check(column, &expected, &found);
        if (status != TFW_OK) {
            return tfwi_columns_fail(status, i, expected, found, error);
        }
    } else if (!column->variable) {
        if (!column->feature->has_default) {
            return tfwi_columns_fail(TFW_E_MISSING, i, (int64_t)column->count, -1, error);
        }
        if (!tfwi_reserve_absent(columns, column) || !fill_default(column)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
        tfwi_cell_mark_absent(column, columns->serial);
    }
    if (column->variable) {
        column->splits.of[columns->records + 1] =
            (int64_t)(column->first + column->found);
    }
    return TFW_OK;
}

void tfwi_record_note_absent(tfw_columns *columns) {
    for (size_t i = 0; i < columns->count; i++) {
        tfwi_column *column = &columns->columns[i];
        bool kindless = !column->lists && tfwi_cell_is_open(column, columns->serial) &&
                        column->found_kind == TFW_NONE;
        if (tfwi_cell_is_absent(column, columns->serial) || kindless) {
            column->absent.of[column->absent.count++] = (int64_t)columns->records;
        }
    }
}

int tfwi_record_finish(tfw_columns *columns, unsigned flags, tfw_error *error) {
    size_t unfilled = columns->schema->count - columns->filled;
    for (size_t i = 0; i < columns->schema->count && unfilled != 0; i++) {
        int status = finish_column(columns, i, flags, error);
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
}
