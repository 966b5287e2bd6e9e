/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a record while it is parsed into columns. Only this file and cells.c know how cells
 * are marked; others ask by the functions below.
 *
 * In each column the record's cell is in one of three states, told by the column's serial and that
 * of the columns:
 *
 *     ABSENT  column < columns       no entry of its key was met so far
 *     OPEN    column == columns      the complete parser met entries, which are judged at the end
 *     FILLED  column == columns + 1  a kernel has stored its only entry, complete and valid
 *
 *     tfwi_record_begin    all -> ABSENT, by adding 2 to the serial of the columns
 *     tfwi_cell_fill       ABSENT -> FILLED
 *     tfwi_cell_open       any -> OPEN, with the values that a FILLED cell has
 *     tfwi_record_finish   judges the cells that are not FILLED, and fills in defaults
 *     tfwi_record_end      the record counts
 *
 * filled counts the FILLED cells: if it is the number of columns, there is nothing to finish
 * (tfwi_record_is_filled). The loops of match_template.h count in a variable of their own, in a
 * register, and add it at their end; likewise they move expected, below.
 *
 * The column of a feature list (sequence.c) is ABSENT or OPEN, never FILLED. Each of its steps has
 * a cell:
 *
 *     an entry of its key  any -> OPEN, steps_found is 0, status TFW_OK: the steps and the misfit
 *                          of an earlier entry are dropped
 *     a step that fits     steps_found grows by one, by the complete parser or by a kernel
 *     a misfit             status, row, expected and found_instead say which; no later step of the
 *                          entry is counted
 *     finish_list          ABSENT: no steps, if that is allowed; OPEN: status is the verdict
 *
 * A record that fails is never ended: the next one overwrites it. Columns of which one was taken
 * take no records (tfwi_columns_prepare) until tfw_columns_clear.
 *
 * Features are expected in the order of the record before: expected points to the guess, which is
 * corrected there when it was wrong, and then to the next of the column found. */
#ifndef TFWIRE_CELLS_H
#define TFWIRE_CELLS_H

#include "parse/columns.h"

#define TFWI_PARSE_FLAGS (TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_ADDRESSES)

/* Flag, beside those: the record is the context of a SequenceExample. */
#define TFWI_CONTEXT 16

TFWI_INLINE void tfwi_record_begin(tfw_columns *columns) {
    columns->serial += 2;
    columns->filled = 0;
    columns->expected = &columns->first;
}

/* serial: of the columns. */
TFWI_INLINE bool tfwi_cell_is_absent(const tfwi_column *column, uint64_t serial) {
    return column->serial < serial;
}

TFWI_INLINE bool tfwi_cell_is_open(const tfwi_column *column, uint64_t serial) {
    return column->serial == serial;
}

TFWI_INLINE void tfwi_cell_mark_open(tfwi_column *column, uint64_t serial) {
    column->serial = serial;
}

/* With the default as its values. */
TFWI_INLINE void tfwi_cell_mark_absent(tfwi_column *column, uint64_t serial) {
    column->serial = serial - 1;
}

/* For the caller to count in filled. */
TFWI_INLINE void tfwi_cell_fill(tfwi_column *column, uint64_t serial) {
    column->serial = serial + 1;
}

TFWI_INLINE bool tfwi_cell_is_filled(const tfwi_column *column, uint64_t serial) {
    return column->serial == serial + 1;
}

/* Whether every cell is FILLED. */
TFWI_INLINE bool tfwi_record_is_filled(const tfw_columns *columns) {
    return columns->filled == columns->count;
}

/* Notes which features the record does not have, or has without a kind. REQUIRES:
 * tfwi_reserve_absent was called for each of them. */
void tfwi_record_note_absent(tfw_columns *columns);

TFWI_INLINE void tfwi_record_end(tfw_columns *columns) {
    if (columns->note_absent && !tfwi_record_is_filled(columns)) {
        tfwi_record_note_absent(columns);
    }
    columns->records++;
}

/* Makes room to note that the record does not have the feature, or without a kind; false: out of
 * memory. */
TFWI_INLINE bool tfwi_reserve_absent(const tfw_columns *columns, tfwi_column *column) {
    return !columns->note_absent || TFWI_RESERVE_MORE(column->absent, 1);
}

/* Makes the record's cell ready for another entry of its key. */
void tfwi_cell_open(tfw_columns *columns, tfwi_column *column);

/* The column of the feature with this key, guessed from the order of earlier records where that
 * succeeds, or NULL. */
tfwi_column *tfwi_columns_find(tfw_columns *columns, const uint8_t *key, size_t len);

/* Notes a key of the record that is not the schema's, if that is asked for. */
TFWI_INLINE void tfwi_note_unknown(tfw_columns *columns, const uint8_t *key, size_t len,
                                   bool is_list) {
    if (columns->unknown != NULL) {
        tfwi_unknown_note(columns->unknown, key, len, is_list, columns->records);
    }
}

/* The same of all keys between two entries of the usual shape, whose lengths take one byte. */
void tfwi_note_skipped(tfw_columns *columns, const uint8_t *p, const uint8_t *end);

/* Judges the record: missing features, kinds, counts; fills in defaults. */
int tfwi_record_finish(tfw_columns *columns, unsigned flags, tfw_error *error);

/* ---- The cell being filled ------------------------------------------------------------------ */

/* Values that the cell may still take. */
TFWI_INLINE uint64_t tfwi_cell_room(const tfwi_column *column) {
    bool fits = column->found_kind == column->kind && column->found < column->count;
    return fits ? column->count - column->found : 0;
}

/* Begins the cell with this index, of no kind. REQUIRES: the cells before it are complete. */
TFWI_INLINE void tfwi_cell_begin(tfwi_column *column, uint64_t index) {
    column->first = column->variable ? (uint64_t)column->splits.of[index]
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

/* Whether a cell may hold so many values. */
TFWI_INLINE bool tfwi_count_fits(const tfwi_column *column, uint64_t count) {
    if (!column->variable) {
        return count == column->count;
    }
    return column->multiple == 1 ||
           (column->multiple != 0 ? count % column->multiple == 0 : count == 0);
}

/* Whether the cell's values are what the schema says: TFW_OK, TFW_E_KIND or TFW_E_COUNT. */
int tfwi_cell_check(const tfwi_column *column, int64_t *out_expected, int64_t *out_found);

#endif /* TFWIRE_CELLS_H */
