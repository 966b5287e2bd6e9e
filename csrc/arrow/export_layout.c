/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: which columns become which fields of a table, and the type of that. */
#include "arrow/export.h"
#include "parse/schema.h"

#include <stdio.h>

/* ---- Life ----------------------------------------------------------------------------------- */

static void free_field(tfwi_table_field *field) {
    tfw_free(field->name);
    tfw_free(field->metadata);
    tfw_free(field->shape);
    tfw_free(field->partitions);
    tfw_free(field->index_columns);
}

/* Frees the fields only: the schemas are the caller's until the layout is complete. */
static void free_fields(tfw_arrow_layout *layout) {
    for (size_t i = 0; layout->fields != NULL && i < layout->count; i++) {
        free_field(&layout->fields[i]);
    }
    tfw_free(layout->fields);
    tfw_free(layout);
}

tfw_arrow_layout *tfwi_layout_share(const tfw_arrow_layout *layout) {
    tfw_arrow_layout *shared = (tfw_arrow_layout *)(uintptr_t)layout; /* only the count changes */
    (void)atomic_fetch_add_explicit(&shared->shares, 1, memory_order_relaxed);
    return shared;
}

void tfw_arrow_layout_free(tfw_arrow_layout *layout) {
    if (layout != NULL &&
        atomic_fetch_sub_explicit(&layout->shares, 1, memory_order_acq_rel) == 1) {
        tfw_schema_free(layout->context);
        tfw_schema_free(layout->lists);
        free_fields(layout);
    }
}

/* ---- Making --------------------------------------------------------------------------------- */

static bool duplicate(void *out, const void *items, uint64_t count, size_t size) {
    void *copy = NULL;
    size_t bytes;
    if (count > SIZE_MAX || tfwi_mul_overflows((size_t)count, size, &bytes)) {
        return false;
    }
    if (items != NULL) {
        copy = tfwi_realloc(NULL, bytes);
        if (copy == NULL) {
            return false;
        }
        if (bytes != 0) {
            memcpy(copy, items, bytes);
        }
    }
    memcpy(out, &copy, sizeof copy);
    return true;
}

static bool hold_field(tfwi_table_field *field, const tfw_arrow_field *given) {
    *field = (tfwi_table_field){
        .metadata_len = tfwi_as_size(given->metadata_len),
        .column = tfwi_as_size(given->column),
        .is_list = given->is_list != 0,
        .is_scalar = given->is_scalar != 0,
        .strings = given->strings,
        .rank = tfwi_as_size(given->rank),
        .partition_count = tfwi_as_size(given->partition_count),
        .index_count = tfwi_as_size(given->index_count),
    };
    return duplicate(&field->name, given->name, strlen(given->name) + 1, 1) &&
           duplicate(&field->metadata, given->metadata, given->metadata_len, 1) &&
           duplicate(&field->shape, given->shape, given->rank, sizeof *field->shape) &&
           duplicate(&field->partitions, given->partitions, given->partition_count,
                     sizeof *field->partitions) &&
           duplicate(&field->index_columns, given->index_columns, given->index_count,
                     sizeof *field->index_columns);
}

/* Whether a schema has numbers of rows, or indices, in this column. */
static bool has_numbers(const tfw_schema *schema, uint64_t column) {
    return column < schema->count && schema->features[column].kind == TFW_INT64 &&
           schema->features[column].layout == TFW_VARIABLE;
}

/* Sizes are what pyarrow and others have room for. Lists of lists without values take no memory, so
 * their number is limited, too. */
static bool resolve_shape(tfwi_table_field *field, const tfw_feature *feature, bool is_flat) {
    size_t product = 1;
    for (size_t i = 0; i < field->rank; i++) {
        const bool many = product > INT32_MAX;
        if (field->shape[i] > INT32_MAX || (many && field->shape[i] == 0) ||
            tfwi_mul_overflows(product, (size_t)field->shape[i], &product)) {
            return false;
        }
    }
    field->size = product;
    field->list_sizes = is_flat ? &field->size : field->shape;
    field->list_depth = is_flat ? 1 : field->rank;
    return (!is_flat || product <= INT32_MAX) &&
           (feature->layout == TFW_VARIABLE || feature->count == product);
}

/* Completes a field by its schema; false: they do not fit. */
static bool resolve_field(tfwi_table_field *field, const tfw_schema *schema, bool is_flat) {
    if (schema == NULL || field->column >= schema->count || field->strings < TFW_LARGE_BINARY ||
        field->strings > TFW_STRING) {
        return false;
    }
    const tfw_feature *feature = &schema->features[field->column];
    field->kind = feature->kind;
    field->is_variable = feature->layout != TFW_DENSE;
    bool variable = feature->layout == TFW_VARIABLE;
    if (field->is_scalar && (!variable || field->is_list || field->rank != 0 ||
                             field->partition_count != 0 || field->index_count != 0)) {
        return false;
    }
    for (size_t i = 0; i < field->partition_count; i++) {
        const tfw_partition *partition = &field->partitions[i];
        bool uniform = partition->kind == TFW_UNIFORM_ROW_LENGTH;
        if (!variable || partition->kind < 0 || partition->kind > TFW_VALUE_ROW_IDS ||
            partition->reserved != 0 ||
            (uniform ? partition->length == 0 || partition->length > INT64_MAX
                     : !has_numbers(schema, partition->column))) {
            return false;
        }
    }
    for (size_t i = 0; i < field->index_count; i++) {
        if (!variable || field->is_list || field->partition_count != 0 || field->rank != 0 ||
            !has_numbers(schema, field->index_columns[i])) {
            return false;
        }
    }
    return resolve_shape(field, feature, is_flat);
}

int tfw_arrow_layout_create(const tfw_arrow_field *fields, size_t count, tfw_schema *context,
                            tfw_schema *lists, unsigned flags, tfw_arrow_layout **out_layout,
                            tfw_error *error) {
    *out_layout = NULL;
    int status = tfwi_check_flags(
        flags, TFW_ARROW_POSITIONS | TFW_ARROW_SEQUENCE | TFW_ARROW_SAMPLED, error);
    if (status != TFW_OK) {
        return status;
    }
    if ((flags & TFW_ARROW_SEQUENCE) == 0 && (context == NULL || lists != NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an Example has one schema");
    }
    tfw_arrow_layout *layout = tfwi_calloc(1, sizeof *layout);
    if (layout != NULL) {
        layout->flags = flags;
        layout->fields = tfwi_calloc(count, sizeof *layout->fields);
    }
    bool held = layout != NULL && layout->fields != NULL;
    for (size_t i = 0; held && status == TFW_OK && i < count; i++) {
        layout->count = i + 1;
        held = hold_field(&layout->fields[i], &fields[i]);
        const tfw_schema *schema = fields[i].is_list ? lists : context;
        if (held && ((fields[i].is_scalar & ~1) != 0 ||
                     !resolve_field(&layout->fields[i], schema, fields[i].is_flat != 0))) {
            status = tfwi_fail(error, TFW_E_ARGUMENT, "a field that does not fit the schema");
            TFWI_SET(error, feature, (int32_t)i);
        }
    }
    if (!held || status != TFW_OK) {
        if (layout != NULL) {
            free_fields(layout);
        }
        return held ? status : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    atomic_init(&layout->shares, 1);
    layout->context = context;
    layout->lists = lists;
    *out_layout = layout;
    return TFW_OK;
}

/* ---- Types ---------------------------------------------------------------------------------- */

const char *tfwi_leaf_format(int32_t kind, int32_t strings) {
    static const char *const formats[] = {"Z", "z", "U", "u"};
    return kind == TFW_INT64 ? "l" : kind == TFW_FLOAT ? "f" : formats[strings];
}

/* Makes a type the items of FixedSizeLists of a shape. */
static bool wrap_schema(struct ArrowSchema *schema, const uint64_t *shape, size_t rank) {
    bool good = true;
    for (size_t i = rank; good && i-- > 0;) {
        char format[32];
        (void)snprintf(format, sizeof format, "+w:%llu", (unsigned long long)shape[i]);
        good = tfwi_schema_wrap(schema, format);
    }
    return good;
}

static bool wrap_lists(struct ArrowSchema *schema, size_t count) {
    bool good = true;
    for (; good && count != 0; count--) {
        good = tfwi_schema_wrap(schema, "+L");
    }
    return good;
}

/* A struct of indices, int64 or of several dimensions fixed lists of it, and of values. */
static bool sparse_schema(const tfwi_table_field *field, struct ArrowSchema *out) {
    if (!tfwi_schema_init(out, "+s", 2)) {
        return false;
    }
    struct ArrowSchema *indices = out->children[0], *values = out->children[1];
    const uint64_t rank = field->index_count;
    return tfwi_schema_init(indices, "l", 0) && wrap_schema(indices, &rank, rank == 1 ? 0 : 1) &&
           wrap_lists(indices, 1) && tfwi_schema_name(indices, "indices", NULL, 0) &&
           tfwi_schema_init(values, tfwi_leaf_format(field->kind, field->strings), 0) &&
           wrap_lists(values, 1) && tfwi_schema_name(values, "values", NULL, 0);
}

static bool field_schema(const tfwi_table_field *field, struct ArrowSchema *out) {
    size_t lists = field->partition_count + field->is_list + field->is_variable -
                   field->is_scalar;
    bool good = field->index_count != 0
                    ? sparse_schema(field, out)
                    : tfwi_schema_init(out, tfwi_leaf_format(field->kind, field->strings), 0) &&
                          wrap_schema(out, field->list_sizes, field->list_depth) &&
                          wrap_lists(out, lists);
    return good && tfwi_schema_name(out, field->name, field->metadata, field->metadata_len);
}

static bool position_schemas(struct ArrowSchema **out) {
    struct ArrowSchema paths;
    if (!tfwi_schema_init(out[0], "i", 0) || !tfwi_schema_name(out[0], "path", NULL, 0) ||
        !tfwi_schema_init(&paths, "U", 0)) {
        return false;
    }
    tfwi_schema_set_dictionary(out[0], &paths);
    return tfwi_schema_init(out[1], "l", 0) &&
           tfwi_schema_name(out[1], "record_index", NULL, 0) &&
           tfwi_schema_init(out[2], "l", 0) && tfwi_schema_name(out[2], "offset", NULL, 0);
}

bool tfwi_layout_schema(const tfw_arrow_layout *layout, struct ArrowSchema *out) {
    const bool positions = (layout->flags & TFW_ARROW_POSITIONS) != 0;
    bool good = tfwi_schema_init(out, "+s", layout->count + (positions ? 3 : 0));
    for (size_t i = 0; good && i < layout->count; i++) {
        good = field_schema(&layout->fields[i], out->children[i]);
    }
    if (good && positions) {
        good = position_schemas(out->children + layout->count);
    }
    if (!good) {
        tfwi_schema_release(out);
    }
    return good;
}

int tfw_arrow_schema_create(const tfw_arrow_layout *layout, struct ArrowSchema **out_schema,
                            tfw_error *error) {
    struct ArrowSchema *schema = tfwi_calloc(1, sizeof *schema);
    *out_schema = NULL;
    if (schema == NULL || !tfwi_layout_schema(layout, schema)) {
        tfw_free(schema);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    *out_schema = schema;
    return TFW_OK;
}

void tfw_arrow_schema_free(struct ArrowSchema *schema) {
    if (schema != NULL) {
        tfwi_schema_release(schema);
        tfw_free(schema);
    }
}
