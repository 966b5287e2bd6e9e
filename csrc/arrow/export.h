/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make Arrow data: nodes with reference-counted buffers, and layouts. */
#ifndef TFWIRE_EXPORT_H
#define TFWIRE_EXPORT_H

#include "arrow/abi.h"
#include "base/memory.h"
#include "tfwire_arrow.h"

#include <stdatomic.h>

/* ---- Buffers -------------------------------------------------------------------------------- */

/* Memory that arrays share. */
typedef struct tfwi_buffer {
    atomic_size_t count;
    void *memory;
    void (*give_back)(void *owner); /* when nobody shares it any more */
    void *owner;                    /* of the memory */
} tfwi_buffer;

/* A buffer over memory that another owns; NULL: out of memory, and it is not given back. */
tfwi_buffer *tfwi_buffer_lent(void *memory, void (*give_back)(void *owner), void *owner);

/* An uninitialised buffer of size bytes; NULL: out of memory. */
tfwi_buffer *tfwi_buffer_new(size_t size);

tfwi_buffer *tfwi_buffer_share(tfwi_buffer *buffer);
void tfwi_buffer_drop(tfwi_buffer *buffer); /* NULL is allowed */

/* ---- Nodes ----------------------------------------------------------------------------------
 * Each function that makes one returns false when out of memory; *out then holds nothing. */

/* An array with so many buffers, of which it takes a share each (NULL: no such buffer), and room
 * for children that hold nothing yet. */
bool tfwi_array_init(struct ArrowArray *out, int64_t length, tfwi_buffer *const *buffers,
                     size_t buffer_count, size_t child_count, bool has_dictionary);

/* Makes *array the only child of a list over it: a FixedSizeList without buffers but the validity,
 * or with offsets a (Large)List. On failure *array is released. */
bool tfwi_array_wrap(struct ArrowArray *array, int64_t length, tfwi_buffer *offsets);

/* Sets the validity of a node that has none. */
void tfwi_array_set_validity(struct ArrowArray *array, tfwi_buffer *bitmap, int64_t null_count);

bool tfwi_array_share(const struct ArrowArray *array, struct ArrowArray *out);

/* Calls release, unless the array holds nothing. */
void tfwi_array_release(struct ArrowArray *array);

/* A type, with a copy of the format and room for children that hold nothing yet. */
bool tfwi_schema_init(struct ArrowSchema *out, const char *format, size_t child_count);

/* Makes *schema the only child, named "item", of a list with this format. On failure *schema is
 * released. */
bool tfwi_schema_wrap(struct ArrowSchema *schema, const char *format);

/* Moves *values into the type of indices, as the type of its dictionary. */
void tfwi_schema_set_dictionary(struct ArrowSchema *indices, struct ArrowSchema *values);

/* Names a node, with copies. metadata may be NULL. */
bool tfwi_schema_name(struct ArrowSchema *schema, const char *name, const uint8_t *metadata,
                      size_t metadata_len);

void tfwi_schema_release(struct ArrowSchema *schema);

/* ---- Layouts -------------------------------------------------------------------------------- */

/* A tfw_arrow_field, held. */
typedef struct tfwi_table_field {
    char *name;
    uint8_t *metadata; /* NULL: none */
    size_t metadata_len;
    size_t column;
    bool is_list;
    bool is_variable; /* the column has splits */
    bool is_scalar;   /* no cell of these has several values */
    int32_t kind;
    int32_t strings;
    uint64_t size; /* product of the shape */
    uint64_t *shape;
    size_t rank;
    const uint64_t *list_sizes; /* of fixed lists in fixed lists: the shape, or the size alone */
    size_t list_depth;
    tfw_partition *partitions;
    size_t partition_count;
    uint64_t *index_columns;
    size_t index_count;
} tfwi_table_field;

struct tfw_arrow_layout {
    atomic_size_t shares;
    tfw_schema *context;
    tfw_schema *lists;
    unsigned flags;
    size_t count;
    tfwi_table_field *fields;
};

tfw_arrow_layout *tfwi_layout_share(const tfw_arrow_layout *layout);

bool tfwi_layout_schema(const tfw_arrow_layout *layout, struct ArrowSchema *out);

/* The format of a leaf. */
const char *tfwi_leaf_format(int32_t kind, int32_t strings);

/* ---- Columns -------------------------------------------------------------------------------- */

/* Numbers of cells, less first, which increase: the records of a column that do not have the
 * feature, or one without a kind; or the steps without a kind. */
typedef struct tfwi_nulls {
    const int64_t *of;
    size_t count;
    int64_t first;
} tfwi_nulls;

/* Those of cells [first, end). */
tfwi_nulls tfwi_nulls_between(const int64_t *of, size_t count, int64_t first, int64_t end);

/* Where each of some records comes from. */
typedef struct tfwi_positions {
    const char *const *paths; /* UTF-8 that ends with 0 */
    size_t path_count;
    const int32_t *files;     /* indices of paths */
    const int64_t *numbers;
    const int64_t *offsets;
} tfwi_positions;

/* A column to be exported: its contents, whose offsets, splits and steps begin with 0, and
 * references to its memory. */
typedef struct tfwi_exported {
    tfw_column column;
    tfwi_nulls absent;
    tfwi_nulls kindless;
    tfwi_buffer *values;
    tfwi_buffer *offsets;
    tfwi_buffer *splits;
    tfwi_buffer *steps;
} tfwi_exported;

/* Makes the array of count records. columns: those of the layout's context, and of its lists. The
 * array takes a share of their memory. Fails as tfw_arrow_chunk_create. */
int tfwi_export(const tfw_arrow_layout *layout, tfwi_exported *const columns[2], size_t count,
                const tfwi_positions *positions, struct ArrowArray *out, tfw_error *error);

/* Makes the three columns of the positions of count records; false: out of memory. */
bool tfwi_export_positions(const tfwi_positions *positions, size_t count,
                           struct ArrowArray **out);

/* The rows of each cell of a column: at first its values, then the rows that partitions make. */
typedef struct tfwi_rows {
    int64_t *counts; /* how many each cell has */
    size_t cells;
    int64_t total;     /* their sum */
    const char *fault; /* why a cell does not fit */
    size_t cell;       /* which */
} tfwi_rows;

/* Replaces the rows by those that a partition makes of them. numbers: the partition's numbers (not
 * needed for TFW_UNIFORM_ROW_LENGTH); most: the most rows that row ids may make. *out_offsets:
 * where each new row begins among the old ones. TFW_E_COUNT: the numbers do not fit the rows. */
int tfwi_partition(tfwi_rows *rows, const tfw_partition *partition, const tfw_column *numbers,
                   int64_t most, tfwi_buffer **out_offsets);

/* Whether every string is UTF-8; if not, *out_wrong is the first that is not. */
bool tfwi_strings_are_utf8(const uint8_t *data, const int64_t *offsets, size_t count,
                           size_t *out_wrong);

/* Whether every cell has one value. *out_several: the first that has several, or SIZE_MAX. */
bool tfwi_has_one_each(const tfw_column *column, size_t *out_several);

/* The column whose cells, none of which has several values, have one each: 0 or "" where it lacks
 * one. It holds *out_buffer, which is the caller's. false: out of memory. */
bool tfwi_fill_cells(int32_t kind, const tfwi_exported *column, tfwi_exported *out,
                     tfwi_buffer **out_buffer);

/* Marks the cells without a value as null; false: out of memory. */
bool tfwi_mark_empty(const tfw_column *column, struct ArrowArray *array);

#endif /* TFWIRE_EXPORT_H */
