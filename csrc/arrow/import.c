/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Arrow data, batch by batch. A large batch is converted in parts that fit the memory. */
#include "arrow/import_parts.h"

#include "base/memory.h"

#include <limits.h>

enum { MAX_COLUMNS = 1 << 20 };

struct tfw_import {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    tfwi_type *columns; /* NULL until the schema is known */
    tfw_input *inputs;
    tfw_level **levels; /* of columns that may be nested; NULL: of none */
    size_t count;       /* of columns */
    uint64_t before;    /* records of the batches before this one */
    uint64_t at;        /* the next record of this one */
    uint64_t records;   /* how many to try next, by the memory that earlier ones took */
    tfwi_arena arena;
    bool is_column; /* the arrays are those of the only column */
    bool stream_failed;
    bool ended; /* or failed: the stream is not asked again */
};

/* ---- Owning --------------------------------------------------------------------------------- */

#define RELEASE(owned)                     \
    do {                                   \
        if ((owned)->release != NULL) {    \
            (owned)->release(owned);       \
            (owned)->release = NULL;       \
        }                                  \
    } while (0)

#define MOVE(to, from) (*(to) = *(from), (from)->release = NULL)

int tfw_import_create(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                      struct ArrowArray *array, tfw_import **out_import, tfw_error *error) {
    *out_import = NULL;
    if (stream != NULL ? schema != NULL || array != NULL || stream->release == NULL
                       : schema == NULL || array == NULL || schema->release == NULL ||
                             array->release == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a table that was released, or is missing");
    }
    tfw_import *import = tfwi_calloc(1, sizeof *import);
    if (import == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a table");
    }
    if (stream != NULL) {
        MOVE(&import->stream, stream);
    } else {
        MOVE(&import->schema, schema);
        MOVE(&import->batch, array);
    }
    *out_import = import;
    return TFW_OK;
}

int tfw_import_create_column(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                             struct ArrowArray *array, tfw_import **out_import,
                             tfw_error *error) {
    int status = tfw_import_create(stream, schema, array, out_import, error);
    if (status == TFW_OK) {
        (*out_import)->is_column = true;
    }
    return status;
}

void tfw_import_free(tfw_import *import) {
    if (import == NULL) {
        return;
    }
    RELEASE(&import->batch);
    RELEASE(&import->schema);
    RELEASE(&import->stream);
    tfwi_arena_free(&import->arena);
    for (size_t i = 0; import->levels != NULL && i < import->count; i++) {
        tfw_free(import->levels[i]);
    }
    tfw_free(import->levels);
    tfw_free(import->columns);
    tfw_free(import->inputs);
    tfw_free(import);
}

/* ---- Streams -------------------------------------------------------------------------------- */

static int fail_stream(tfw_import *import, int code, tfw_error *error) {
    import->stream_failed = true;
    tfwi_fail(error, TFW_E_IO, "the stream failed");
    TFWI_SET(error, os_errno, code);
    return TFW_E_IO;
}

const char *tfw_import_message(tfw_import *import) {
    struct ArrowArrayStream *stream = &import->stream;
    if (!import->stream_failed || stream->get_last_error == NULL) {
        return "";
    }
    const char *message = stream->get_last_error(stream);
    return message != NULL ? message : "";
}

static int ask_for_schema(tfw_import *import, tfw_error *error) {
    struct ArrowArrayStream *stream = &import->stream;
    if (import->schema.release != NULL) {
        return TFW_OK;
    }
    if (stream->get_schema == NULL || stream->get_next == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a stream without functions");
    }
    int code = stream->get_schema(stream, &import->schema);
    if (code != 0) {
        import->schema.release = NULL; /* nothing was handed over */
        return fail_stream(import, code, error);
    }
    return import->schema.release != NULL
               ? TFW_OK
               : tfwi_fail(error, TFW_E_ARGUMENT, "a stream without a schema");
}

/* The next batch of a stream, which replaces this one. */
static int ask_for_batch(tfw_import *import, tfw_error *error) {
    struct ArrowArrayStream *stream = &import->stream;
    import->before += import->at;
    import->at = 0;
    RELEASE(&import->batch);
    import->batch = (struct ArrowArray){0};
    if (stream->release == NULL) {
        return TFW_END;
    }
    int code = stream->get_next(stream, &import->batch);
    if (code != 0) {
        import->batch = (struct ArrowArray){0};
        return fail_stream(import, code, error);
    }
    return import->batch.release == NULL ? TFW_END : TFW_OK;
}

/* ---- Columns -------------------------------------------------------------------------------- */

static int reserve_columns(tfw_import *import, int64_t count, tfw_error *error) {
    import->columns = tfwi_calloc((size_t)count, sizeof *import->columns);
    import->inputs = tfwi_calloc((size_t)count, sizeof *import->inputs);
    if (import->columns == NULL || import->inputs == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for the columns of a table");
    }
    import->count = (size_t)count;
    return TFW_OK;
}

static int read_type(tfw_import *import, const struct ArrowSchema *schema, size_t column,
                     tfw_error *error) {
    int status = tfwi_read_type(schema, &import->columns[column], error);
    if (status != TFW_OK) {
        TFWI_SET(error, feature, (int32_t)column);
    }
    return status;
}

/* How many columns a table has: of a struct, its fields. Above MAX_COLUMNS: too many. */
static int64_t count_columns(const struct ArrowSchema *schema) {
    int64_t count = 0;
    for (int64_t i = 0; i < schema->n_children && count <= MAX_COLUMNS; i++) {
        const int64_t fields = tfwi_count_fields(schema->children[i]);
        count += fields > MAX_COLUMNS ? MAX_COLUMNS + 1 : fields > 0 ? fields : 1;
    }
    return count;
}

/* Reads the types of the columns at a place, from *column on. */
static int read_place(tfw_import *import, size_t place, size_t *column, tfw_error *error) {
    const struct ArrowSchema *schema = import->schema.children[place];
    const int64_t fields = tfwi_count_fields(schema);
    int64_t member = 0;
    int status;
    do {
        tfwi_type *type = &import->columns[*column];
        status = read_type(import, fields != 0 ? schema->children[member] : schema, *column, error);
        type->place = place;
        if (fields != 0) {
            type->fields = (size_t)fields;
            type->member = (size_t)member;
            type->field = type->name;
            type->name = schema->name != NULL ? schema->name : "";
        }
        ++*column;
    } while (status == TFW_OK && ++member < fields && *column < import->count);
    return status;
}

static int read_table(tfw_import *import, tfw_error *error) {
    const struct ArrowSchema *schema = &import->schema;
    if (schema->format == NULL || strcmp(schema->format, "+s") != 0 || schema->dictionary != NULL) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED,
                         "expected a table, whose type is a struct; found another type");
    }
    if (schema->n_children < 0 || schema->n_children > MAX_COLUMNS ||
        (schema->n_children != 0 && schema->children == NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible number of columns");
    }
    const int64_t count = count_columns(schema);
    if (count > MAX_COLUMNS) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible number of columns");
    }
    int status = reserve_columns(import, count, error);
    size_t column = 0;
    for (int64_t i = 0; status == TFW_OK && i < schema->n_children && column < import->count; i++) {
        status = read_place(import, (size_t)i, &column, error);
    }
    return status;
}

static int read_column(tfw_import *import, tfw_error *error) {
    int status = reserve_columns(import, 1, error);
    if (status == TFW_OK) {
        status = read_type(import, &import->schema, 0, error);
        import->columns[0].name = "";
    }
    return status;
}

/* Checks the batch that was just handed over. */
static int check_batch(const tfw_import *import, tfw_error *error) {
    const struct ArrowArray *batch = &import->batch;
    return import->is_column ? tfwi_check_array(batch, import->columns, 0, error)
                             : tfwi_check_table(batch, import->columns, import->count, error);
}

int tfw_import_schema(tfw_import *import, size_t *out_columns, tfw_error *error) {
    *out_columns = 0;
    if (import->columns != NULL || import->ended) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the schema was asked for before");
    }
    int status = ask_for_schema(import, error);
    if (status == TFW_OK) {
        status = (import->is_column ? read_column : read_table)(import, error);
    }
    if (status == TFW_OK && import->batch.release != NULL) {
        status = check_batch(import, error);
    }
    import->ended = status != TFW_OK;
    *out_columns = import->count;
    return status;
}

const char *tfw_import_name(const tfw_import *import, size_t column) {
    const char *name = column < import->count ? import->columns[column].name : NULL;
    return name != NULL ? name : "";
}

const char *tfw_import_field(const tfw_import *import, size_t column) {
    return column < import->count ? import->columns[column].field : NULL;
}

/* ---- Columns with lists in lists ------------------------------------------------------------ */

int tfw_import_nest(tfw_import *import, size_t column, tfw_error *error) {
    if (column >= import->count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "there is no such column");
    }
    if (import->levels == NULL) {
        import->levels = tfwi_calloc(import->count, sizeof *import->levels);
    }
    if (import->levels != NULL && import->levels[column] == NULL) {
        import->levels[column] = tfwi_calloc(TFWI_MAX_LISTS, sizeof **import->levels);
    }
    return import->levels != NULL && import->levels[column] != NULL
               ? TFW_OK
               : tfwi_fail(error, TFW_E_MEMORY, "no memory for the lists of a column");
}

void tfw_import_levels(const tfw_import *import, size_t column, const tfw_level **out_levels,
                       size_t *out_count) {
    const bool is_kept = import->levels != NULL && column < import->count &&
                         import->levels[column] != NULL;
    *out_levels = is_kept ? import->levels[column] : NULL;
    *out_count = is_kept ? import->columns[column].depth : 0;
}

/* The next length, or the number of pairs; negative: it is not valid. */
static int32_t take_length(const char **at) {
    int32_t length;
    memcpy(&length, *at, sizeof length);
    *at += sizeof length;
    return length;
}

int tfw_import_metadata(const tfw_import *import, size_t column, const char *key,
                        const char **out_value, size_t *out_len, tfw_error *error) {
    *out_value = NULL;
    *out_len = 0;
    if (column >= import->count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "there is no such column");
    }
    const struct ArrowSchema *schema = &import->schema;
    const size_t place = import->columns[column].place;
    const char *at = (import->is_column ? schema : schema->children[place])->metadata;
    const int32_t pairs = at != NULL ? take_length(&at) : 0;
    for (int32_t i = 0; i < pairs; i++) {
        const int32_t key_len = take_length(&at);
        const char *found = at;
        const int32_t value_len = key_len < 0 ? -1 : (at += key_len, take_length(&at));
        if (value_len < 0) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "metadata of a length below zero");
        }
        if ((size_t)key_len == strlen(key) && memcmp(found, key, (size_t)key_len) == 0) {
            *out_value = at;
            *out_len = (size_t)value_len;
            return TFW_OK;
        }
        at += value_len;
    }
    return pairs >= 0 ? TFW_OK
                      : tfwi_fail(error, TFW_E_ARGUMENT, "metadata of a length below zero");
}

/* Makes the inputs of that many records. TFW_NEED_SPACE: they take more memory than allowed. */
static int import_columns(tfw_import *import, uint64_t records, uint64_t room, tfw_error *error) {
    tfwi_arena_begin(&import->arena, room);
    const struct ArrowArray *batch = &import->batch;
    const uint64_t first = import->at + (import->is_column ? 0 : (uint64_t)batch->offset);
    for (size_t i = 0; i < import->count; i++) {
        const struct ArrowArray *array = import->is_column
                                             ? batch : batch->children[import->columns[i].place];
        tfw_level *levels = import->levels != NULL ? import->levels[i] : NULL;
        int status = tfwi_import_column(array, &import->columns[i], first, records, &import->arena,
                                        &import->inputs[i], levels, error);
        if (status < 0) {
            TFWI_SET(error, feature, (int32_t)i);
            if (error != NULL && error->record >= 0) {
                error->record += (int64_t)(import->before + import->at);
            }
        }
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
}

/* How many records the next call tries, by the memory that these took. */
static uint64_t records_for(uint64_t records, uint64_t room, uint64_t used) {
    const uint64_t factor = used == 0 ? 16 : room / used;
    return records * (factor > 16 ? 16 : factor > 1 ? factor : 1);
}

static int import_records(tfw_import *import, size_t room, uint64_t *out_records,
                          tfw_error *error) {
    const uint64_t left = (uint64_t)import->batch.length - import->at;
    uint64_t records = import->records != 0 ? import->records : room / 1024;
    records = records > left ? left : records;
    int status;
    for (;;) {
        records = records > 1 ? records : 1;
        status = import_columns(import, records, records > 1 ? room : UINT64_MAX, error);
        if (status != TFW_NEED_SPACE) {
            break;
        }
        records /= 2;
    }
    if (status == TFW_OK) {
        *out_records = records;
        import->at += records;
        import->records = records_for(records, room, import->arena.used);
    }
    return status;
}

/* Fields of structs are columns for who has asked for their levels alone; also of no rows. */
static int check_structs(const tfw_import *import, tfw_error *error) {
    for (size_t i = 0; i < import->count; i++) {
        if (import->columns[i].fields != 0 &&
            (import->levels == NULL || import->levels[i] == NULL)) {
            const int status = tfwi_fail(error, TFW_E_UNSUPPORTED, TFWI_A_STRUCT);
            TFWI_SET(error, feature, (int32_t)i);
            return status;
        }
    }
    return TFW_OK;
}

int tfw_import_next(tfw_import *import, size_t room, const tfw_input **out_inputs,
                    uint64_t *out_records, tfw_error *error) {
    *out_inputs = import->inputs;
    *out_records = 0;
    if (import->columns == NULL || import->ended) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the table has ended, or its schema is not known");
    }
    int status = check_structs(import, error);
    while (status == TFW_OK && import->at == (uint64_t)import->batch.length) {
        status = ask_for_batch(import, error);
        if (status == TFW_OK) {
            status = check_batch(import, error);
        }
    }
    status = status == TFW_OK ? import_records(import, room, out_records, error) : status;
    import->ended = status != TFW_OK;
    return status;
}
