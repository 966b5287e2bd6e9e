/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that are handed to callers, each in its own memory. */
#include "arrow/export.h"
#include "parse/columns.h"

/* ---- The memory of columns ------------------------------------------------------------------ */

static bool lend(tfwi_buffer **out, void *memory) {
    if (memory != NULL) {
        *out = tfwi_buffer_over(memory);
    }
    return memory == NULL || *out != NULL;
}

/* Wraps the memory of columns, which still belongs to them. */
static bool lend_grown(tfw_columns *columns, tfwi_exported **out) {
    *out = columns != NULL ? tfwi_calloc(columns->count, sizeof **out) : NULL;
    bool good = columns == NULL || *out != NULL;
    for (size_t i = 0; columns != NULL && good && i < columns->count; i++) {
        tfwi_exported *s = &(*out)[i];
        tfw_column *c = &s->column;
        const tfwi_int64s *kindless = &columns->columns[i].kindless;
        good = tfw_columns_peek(columns, i, c, NULL) == TFW_OK && lend(&s->values, c->values) &&
               lend(&s->offsets, c->offsets) && lend(&s->splits, c->splits) &&
               lend(&s->steps, c->steps);
        s->absent = (tfwi_nulls){c->absent, (size_t)c->absent_count, 0};
        s->kindless =
            tfwi_nulls_between(kindless->of, kindless->count, 0, (int64_t)c->cell_count);
    }
    return good;
}

static void drop(tfwi_buffer *buffer, bool taken) {
    if (buffer != NULL && !taken) {
        buffer->owner = NULL;
    }
    tfwi_buffer_drop(buffer);
}

/* Ends the loan: the memory belongs to the arrays, or to the columns again. */
static void end_loan_of_grown(tfw_columns *columns, tfwi_exported *lent, bool taken) {
    for (size_t i = 0; lent != NULL && i < columns->count; i++) {
        tfwi_exported *s = &lent[i];
        if (taken) {
            (void)tfw_columns_take(columns, i, &s->column, NULL);
            tfw_free(s->column.absent);
        }
        drop(s->values, taken);
        drop(s->offsets, taken);
        drop(s->splits, taken);
        drop(s->steps, taken);
    }
    tfw_free(lent);
    if (taken && columns != NULL) {
        tfw_columns_clear(columns);
    }
}

static int export_columns(const tfw_arrow_layout *layout, tfw_columns *const parts[2],
                          size_t count, const tfw_arrow_positions *positions,
                          struct ArrowArray *out, tfw_error *error) {
    tfwi_exported *lent[2] = {NULL, NULL};
    const bool good = lend_grown(parts[0], &lent[0]) && lend_grown(parts[1], &lent[1]);
    const int status = good ? tfwi_export(layout, lent, count, positions, out, error)
                            : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    end_loan_of_grown(parts[0], lent[0], status == TFW_OK);
    end_loan_of_grown(parts[1], lent[1], status == TFW_OK);
    return status;
}

/* ---- Making --------------------------------------------------------------------------------- */

static bool columns_fit(const tfw_schema *schema, const tfw_columns *columns, bool lists,
                        size_t count) {
    if (schema == NULL || columns == NULL) {
        return schema == NULL && columns == NULL;
    }
    bool good = columns->schema == schema && columns->lists == lists &&
                columns->records == count && !columns->taken;
    for (size_t i = 0; good && i < columns->count; i++) {
        good = !columns->columns[i].bound;
    }
    return good;
}

int tfw_arrow_array_create(const tfw_arrow_layout *layout, tfw_columns *context,
                           tfw_columns *lists, size_t count, const tfw_arrow_positions *positions,
                           struct ArrowArray **out_array, tfw_error *error) {
    *out_array = NULL;
    if (!columns_fit(layout->context, context, false, count) ||
        !columns_fit(layout->lists, lists, true, count)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "columns of another schema or number of records");
    }
    if ((layout->flags & TFW_ARROW_POSITIONS) != 0 && positions == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no positions");
    }
    if (positions != NULL && positions->size != sizeof *positions) {
        return tfwi_fail(error, TFW_E_ARGUMENT,
                         "positions->size is not sizeof(tfw_arrow_positions)");
    }
    tfw_columns *const parts[2] = {context, lists};
    struct ArrowArray *array = tfwi_calloc(1, sizeof *array);
    int status = array == NULL ? tfwi_fail(error, TFW_E_MEMORY, "out of memory")
                               : export_columns(layout, parts, count, positions, array, error);
    if (status != TFW_OK) {
        tfw_free(array);
        return status;
    }
    *out_array = array;
    return TFW_OK;
}

/* Keeps only some of the records. The fields move, not the struct: some consumers want it at offset
 * 0. */
static void slice(struct ArrowArray *array, int64_t first, int64_t count) {
    if (count == array->length) {
        return;
    }
    array->length = count;
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        child->offset += first;
        child->length = count;
        child->null_count = child->null_count == 0 ? 0 : -1;
    }
}

int tfw_arrow_array_share(const struct ArrowArray *array, size_t first, size_t count,
                          struct ArrowArray **out_array, tfw_error *error) {
    const uint64_t length = (uint64_t)array->length;
    *out_array = NULL;
    if (first > length || count > length - first) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the array has fewer records");
    }
    struct ArrowArray *shared = tfwi_calloc(1, sizeof *shared);
    if (shared == NULL || !tfwi_array_share(array, shared)) {
        tfw_free(shared);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    slice(shared, (int64_t)first, (int64_t)count);
    *out_array = shared;
    return TFW_OK;
}

void tfw_arrow_array_free(struct ArrowArray *array) {
    if (array != NULL) {
        tfwi_array_release(array);
        tfw_free(array);
    }
}
