/* Columns from the inside. A column is a row of cells, and a cell is what one Feature holds: of a
 * record, or in feature lists of one step.
 *
 * Nothing is rolled back explicitly: splits, steps and offsets say where each cell ends, the
 * columns say how many records there are, and whatever lies behind that does not exist.
 */
#ifndef TFWIRE_COLUMNS_H
#define TFWIRE_COLUMNS_H

#include "parse/match.h"
#include "parse/schema.h"
#include "wire/wire.h"

/* Memory that grows; sizes in bytes. */
typedef struct tfwi_array {
    uint8_t *data;
    size_t capacity;
    size_t hint; /* the size that was needed last time */
} tfwi_array;

/* Added to a serial number: the record's cell is complete, and right. */
#define TFWI_FILLED 1

struct tfwi_column {
    uint64_t serial; /* the columns' when the record has the feature, perhaps with TFWI_FILLED */
    tfwi_column *next; /* learned order: the feature that came behind this one */
    tfwi_array values;
    tfwi_array offsets; /* int64_t, strings only */
    tfwi_array splits;  /* int64_t, not dense */
    tfwi_array steps;   /* int64_t, feature lists only */
    const tfw_feature *feature;
    uint64_t count;    /* dense: values per cell; else UINT64_MAX */
    uint64_t multiple; /* not dense: what the number of values is a multiple of */
    size_t value_size;
    int32_t kind;
    bool variable; /* not dense */
    bool bound; /* dense numbers: values belong to the caller */
    bool lists;
    bool taken; /* handed over */

    /* The record being parsed. */
    uint64_t steps_found;
    int status; /* feature lists: the first misfit, kept until the last entry of the key is known */
    int64_t row;
    int64_t expected;
    int64_t found_instead;

    /* The cell being filled. */
    uint64_t first;     /* index of its first value */
    uint64_t found;     /* its values, also those that have no room */
    int32_t found_kind; /* enum tfw_kind */

    tfwi_template usual;
};

struct tfw_columns {
    const tfw_schema *schema;
    size_t count; /* of columns; a copy, so that freeing does not need the schema */
    uint64_t records;
    uint64_t serial;  /* grows by 2 with each record, also with one that fails */
    size_t filled;    /* cells of the record that are complete, and right */
    tfwi_column *first;     /* learned order: the feature that came first */
    tfwi_column **expected; /* where the next feature of the record is guessed: first or a next */
    const tfwi_matcher *kernel; /* NULL: parse everything completely */
    bool lists;
    bool taken;       /* a column was handed over: clear before the next record */
    uint8_t tail[2 * TFWI_MATCH_ROOM]; /* scratch: the end of a record where memory ends, too */
    tfwi_column columns[];
};

/* At least size bytes, or false. Growth is geometric. */
bool tfwi_array_grow(tfwi_array *array, size_t size);

TFWI_INLINE bool tfwi_array_reserve(tfwi_array *array, size_t size) {
    return TFWI_LIKELY(size <= array->capacity) || tfwi_array_grow(array, size);
}

TFWI_INLINE int64_t *tfwi_int64s(const tfwi_array *array) { return (int64_t *)(void *)array->data; }

/* Values that the cell may still take. */
TFWI_INLINE uint64_t tfwi_cell_room(const tfwi_column *column) {
    bool fits = column->found_kind == column->kind && column->found < column->count;
    return fits ? column->count - column->found : 0;
}

/* Begins the cell with this index, of no kind. REQUIRES: the cells before it are complete. */
TFWI_INLINE void tfwi_cell_begin(tfwi_column *column, uint64_t index) {
    column->first = column->variable ? (uint64_t)tfwi_int64s(&column->splits)[index]
                                     : index * column->count;
    column->found = 0;
    column->found_kind = TFW_NONE;
}

/* Declares the cell's values void and its kind another. */
TFWI_INLINE void tfwi_cell_restart(tfwi_column *column, int32_t kind) {
    column->found = 0;
    column->found_kind = kind;
}

/* Adds a string to the cell, or counts it where there is no room; false: out of memory. */
bool tfwi_cell_append_bytes(tfwi_column *column, const uint8_t *data, size_t len);

/* Whether the columns can take count records more; reserves what is written per record. */
int tfwi_columns_prepare(tfw_columns *columns, size_t count, tfw_error *error);

/* The column of the feature with this key, guessed from the order of earlier records where that
 * succeeds, or NULL. */
tfwi_column *tfwi_columns_find(tfw_columns *columns, const uint8_t *key, size_t len);

/* Flag, beside those of tfw_parse: the record is the context of a SequenceExample. */
#define TFWI_SEQUENCE 4

/* Judges a complete record: missing features, kinds, counts; fills in defaults. The record counts
 * once the caller increments records. */
int tfwi_columns_finish(tfw_columns *columns, unsigned flags, tfw_error *error);

/* Reports a misfit. */
int tfwi_columns_fail(int status, size_t feature, int64_t expected, int64_t found,
                      tfw_error *error);

#endif /* TFWIRE_COLUMNS_H */
