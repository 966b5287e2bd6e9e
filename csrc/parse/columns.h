/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of columns. A column is a row of cells. A cell holds the values of one Feature: of
 * a record or, in feature lists, of one step.
 *
 * Nothing is rolled back: splits, steps and offsets say where each cell ends, records says how many
 * records there are, and nothing past that exists. */
#ifndef TFWIRE_COLUMNS_H
#define TFWIRE_COLUMNS_H

#include "base/memory.h"
#include "parse/match.h"
#include "parse/schema.h"
#include "parse/unknown.h"
#include "wire/field.h"
#include "wire/floats.h"

struct tfwi_column {
    uint64_t serial;     /* the state of the record's cell, see cells.h */
    tfwi_column *next;   /* learned order: the feature that came after this one */
    tfwi_bytes values;   /* of these four, count is 0: splits, steps and offsets say it */
    tfwi_int64s offsets; /* strings only */
    tfwi_int64s splits;  /* not dense */
    tfwi_int64s steps;   /* feature lists only */
    tfwi_int64s absent;  /* if asked for: records without an entry of the key, or without a kind */
    tfwi_int64s kindless; /* the same: steps without a kind, also some past those held */
    const tfw_feature *feature;
    uint64_t count;    /* dense: values per cell; else UINT64_MAX */
    uint64_t multiple; /* not dense: what the number of values is a multiple of */
    size_t value_size;
    int32_t kind;
    bool variable; /* not dense */
    bool bound;    /* dense numbers: values belong to the caller */
    bool owned;    /* dense numbers: values grow with the records */
    bool lists;
    bool taken;    /* handed over */

    /* The cell being filled. */
    uint64_t first;     /* index of its first value */
    uint64_t found;     /* its values, also those that have no room */
    int32_t found_kind; /* enum tfw_kind */

    /* The feature list being parsed. */
    int status; /* the first misfit, kept until the last entry of the key is known */
    int64_t row;
    int64_t expected;
    int64_t found_instead;
    uint64_t steps_found;

    tfwi_template usual;
};

struct tfw_columns {
    const tfw_schema *schema;
    size_t count; /* of columns; a copy, so that freeing does not need the schema */
    uint64_t records;
    uint64_t serial;        /* of the record, see cells.h */
    size_t filled;          /* cells of the record in state FILLED */
    tfwi_column *first;     /* learned order: the feature that came first */
    tfwi_column **expected; /* where the next feature of the record is guessed: first or a next */
    const tfwi_matcher *kernel; /* NULL: parse everything completely */
    bool lists;
    bool note_absent;
    bool taken; /* a column was handed over: clear before the next record */
    tfwi_unknown *unknown; /* if asked for: keys that are not the schema's */
    uint8_t tail[2 * TFWI_MATCH_ROOM]; /* scratch: the end of a record where memory ends, too */
    tfwi_column columns[]; /* and one that no entry matches, for keys that are not asked for */
};

/* Whether the columns can take count records more; reserves what is written per record. */
int tfwi_columns_prepare(tfw_columns *columns, size_t count, tfw_error *error);

/* Appends records [first, end) of other columns, which are of the same schema, were made with the
 * same flags, and have been peeked at. REQUIRES: none is bound. */
int tfwi_columns_append(tfw_columns *columns, const tfw_columns *from, size_t first, size_t end,
                        tfw_error *error);

/* The memory of a grown column, which another column of the same feature can go on with. */
typedef struct tfwi_column_memory {
    tfwi_bytes values;
    tfwi_int64s offsets, splits, steps, absent;
} tfwi_column_memory;

/* Exchanges the memory of a column for another; clear before the next record. Memory that is all
 * zeros is none; the column that is left with it gets as much as it had where it needs some. */
void tfwi_columns_exchange(tfw_columns *columns, size_t feature, tfwi_column_memory *memory);
void tfwi_column_memory_free(tfwi_column_memory *memory);

/* Bytes of it, and of that of all columns. */
size_t tfwi_column_memory_size(const tfwi_column_memory *memory);
size_t tfwi_columns_memory_size(const tfw_columns *columns);

/* Writes every grown column to out, as tfw_columns_peek; zeros for bound ones. After this
 * tfw_columns_take cannot fail. */
int tfwi_columns_peek_all(tfw_columns *columns, tfw_column *out_columns, tfw_error *error);

/* Reports a misfit. */
int tfwi_columns_fail(int status, size_t feature, int64_t expected, int64_t found,
                      tfw_error *error);

#endif /* TFWIRE_COLUMNS_H */
