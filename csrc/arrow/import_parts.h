/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow data as the columns that are encoded.
 *
 * A column holds values in nested lists. Its array is walked from the outside to the inside; on the
 * way, cells say which positions of the current array belong to which record. An array does not say
 * how large its buffers are, so their sizes follow from its length. Everything else that it says is
 * loaded once, since another thread may change it, and checked before it is used. */
#ifndef TFWIRE_IMPORT_PARTS_H
#define TFWIRE_IMPORT_PARTS_H

#include "arrow/abi.h"
#include "base/common.h"

/* ---- Types ---------------------------------------------------------------------------------- */

enum { TFWI_MAX_LISTS = 16 }; /* nested */

typedef enum tfwi_list_kind {
    TFWI_LIST_32,
    TFWI_LIST_64,
    TFWI_LIST_FIXED,
    TFWI_LIST_VIEW_32, /* offset and size of each: in any order, and they may overlap */
    TFWI_LIST_VIEW_64
} tfwi_list_kind;

typedef struct tfwi_list_type {
    int32_t kind;
    int32_t size; /* TFWI_LIST_FIXED */
} tfwi_list_type;

typedef enum tfwi_value_type {
    TFWI_VALUE_NULLS,
    TFWI_VALUE_BITS,
    TFWI_VALUE_INT8,
    TFWI_VALUE_UINT8,
    TFWI_VALUE_INT16,
    TFWI_VALUE_UINT16,
    TFWI_VALUE_INT32,
    TFWI_VALUE_UINT32,
    TFWI_VALUE_INT64,
    TFWI_VALUE_UINT64,
    TFWI_VALUE_FLOAT16,
    TFWI_VALUE_FLOAT32,
    TFWI_VALUE_FLOAT64,
    TFWI_VALUE_STRINGS_32,
    TFWI_VALUE_STRINGS_64,
    TFWI_VALUE_STRINGS_FIXED,
    TFWI_VALUE_STRING_VIEWS
} tfwi_value_type;

/* A column's type. */
typedef struct tfwi_type {
    const char *name;
    tfwi_list_type lists[TFWI_MAX_LISTS];
    size_t depth;  /* how many lists */
    int32_t value; /* enum tfwi_value_type */
    int32_t width; /* TFWI_VALUE_STRINGS_FIXED */
    int32_t index; /* of a dictionary: the type of its indices; otherwise TFWI_VALUE_NULLS */
    size_t place;  /* among the children of the table */
    size_t fields; /* of the struct that this is a field of; 0: of none */
    size_t member; /* which field */
    const char *field; /* its name */
} tfwi_type;

#define TFWI_A_STRUCT "a struct cannot be a feature; make its fields columns"

/* Reads the type of a column. TFW_E_UNSUPPORTED: a type that no feature holds; TFW_E_ARGUMENT: not
 * a valid type. */
int tfwi_read_type(const struct ArrowSchema *schema, tfwi_type *out, tfw_error *error);

/* How many fields a struct has; 0: it is none, or not a valid one. */
int64_t tfwi_count_fields(const struct ArrowSchema *schema);

/* Whether a list is in a list and has a length of its own: no feature says how long it was. */
bool tfwi_is_nested(const tfwi_type *type);

/* Checks that an array and its children are of a type and have at least that many elements, as far
 * as that can be known without reading the buffers. */
int tfwi_check_array(const struct ArrowArray *array, const tfwi_type *type, int64_t elements,
                     tfw_error *error);

/* The same for the array of all columns. */
int tfwi_check_table(const struct ArrowArray *array, const tfwi_type *columns, size_t count,
                     tfw_error *error);

/* ---- Memory for converted values ------------------------------------------------------------ */

typedef struct tfwi_arena {
    struct tfwi_block *last;
    size_t hint;   /* bytes of the first block */
    uint64_t used; /* bytes taken */
    uint64_t room; /* bytes that may be taken */
} tfwi_arena;

/* Forgets what was taken, and sets how many bytes may be taken next. */
void tfwi_arena_begin(tfwi_arena *arena, uint64_t room);

/* count elements of a size, aligned for any number. NULL: more than may be taken, or out of
 * memory. */
void *tfwi_arena_take(tfwi_arena *arena, uint64_t count, size_t size);

void tfwi_arena_free(tfwi_arena *arena);

/* ---- Columns -------------------------------------------------------------------------------- */

/* The positions of an array that belong to each record. With splits, record i has those from begin
 * + splits[i] to begin + splits[i + 1]; without, each record has count, one after the other. */
typedef struct tfwi_cells {
    uint64_t records;
    uint64_t begin;
    uint64_t total; /* positions of all records */
    uint64_t count;
    const int64_t *splits; /* from 0 to total, or NULL */
    const int64_t *take;   /* NULL, or begin is 0, and position i is element take[i] of the array;
                              no element if negative */
} tfwi_cells;

/* A column while its array becomes the input of the encoder. */
typedef struct tfwi_column {
    const tfwi_type *type;
    tfwi_arena *arena;
    tfwi_cells cells;
    uint8_t *presence; /* per record, or NULL */
    tfw_level *levels; /* what becomes of the lists at each depth; NULL: not asked for */
    size_t depth;      /* of the array */
    tfw_input *out;
    tfw_error *error;
} tfwi_column;

/* All of these return a status. TFW_NEED_SPACE: conversions take more than the arena's room. */

/* Makes the input of the records [first, first + records) of an array that was checked, and the
 * levels of its lists, unless levels is NULL. On failure error->record counts from first. */
int tfwi_import_column(const struct ArrowArray *array, const tfwi_type *type, uint64_t first,
                       uint64_t records, tfwi_arena *arena, tfw_input *out, tfw_level *levels,
                       tfw_error *error);

/* From a list to its elements. */
int tfwi_enter_list(tfwi_column *c, const struct ArrowArray *array, const tfwi_list_type *list);

/* From indices to the entries of the dictionary. */
int tfwi_enter_dictionary(tfwi_column *c, const struct ArrowArray *array);

/* The values: numbers; strings. */
int tfwi_import_numbers(tfwi_column *c, const struct ArrowArray *array);
int tfwi_import_strings(tfwi_column *c, const struct ArrowArray *array);

/* Marks all records as present, unless records are marked. */
int tfwi_mark_present(tfwi_column *c);

/* Marks records without a value, at the depth 0, as absent, and steps without a kind; refuses null
 * elsewhere. */
int tfwi_note_nulls(tfwi_column *c, const struct ArrowArray *array);

/* The first bad position from one on; total: there is none. */
typedef uint64_t tfwi_finder(const void *of, const tfwi_cells *cells, uint64_t from);

/* Fails with a text if a position is found that belongs to a record which is not absent. */
int tfwi_refuse(tfwi_column *c, tfwi_finder *find, const void *of, int status, const char *text);

/* ---- Helpers -------------------------------------------------------------------------------- */

TFWI_INLINE bool tfwi_has_nulls(const struct ArrowArray *a) {
    return a->null_count != 0 && a->n_buffers != 0 && a->buffers[0] != NULL;
}

/* The validity bitmap of an array with nulls; NULL: it has none. */
TFWI_INLINE const uint8_t *tfwi_bitmap(const struct ArrowArray *a) {
    return tfwi_has_nulls(a) ? a->buffers[0] : NULL;
}

TFWI_INLINE bool tfwi_bit(const uint8_t *bits, uint64_t i) {
    return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/* Element i of integers of 4 or 8 bytes, of any alignment. */
TFWI_INLINE int64_t tfwi_load_int(const void *of, bool is_64, uint64_t i) {
    int64_t wide;
    int32_t narrow;
    if (is_64) {
        memcpy(&wide, (const uint8_t *)of + i * 8, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)of + i * 4, sizeof narrow);
    return narrow;
}

/* Numbers of a type, elements first + i of a buffer, or first + take[i] (0 if that is negative), as
 * int64_t or, of fractions, float. */
void tfwi_convert(int32_t type, const void *buffer, uint64_t first, const int64_t *take,
                  uint64_t count, void *out);

/* The record that a position belongs to, and the position after its last. */
uint64_t tfwi_record_of(const tfwi_cells *cells, uint64_t at, uint64_t *out_end);

/* TFW_E_ARGUMENT at a position. */
int tfwi_fail_at(tfwi_column *c, uint64_t at, const char *text);

/* Whether that many elements, or bytes, are too many for a record, and why. */
int tfwi_check_record(tfwi_column *c, uint64_t total);

/* The status, and the error, for an arena that gave no memory. */
TFWI_INLINE int tfwi_no_memory(tfwi_column *c) {
    return c->arena->used > c->arena->room
               ? TFW_NEED_SPACE
               : tfwi_fail(c->error, TFW_E_MEMORY, "no memory for the columns of a table");
}

#endif /* TFWIRE_IMPORT_PARTS_H */
