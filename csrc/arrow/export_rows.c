/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed of a record's values for Arrow: rows by partitions, and whether strings are
 * UTF-8. */
#include "arrow/export.h"

#include "base/utf8.h"

/* ---- Partitions ----------------------------------------------------------------------------- */

enum { BEYOND, BEGINNING, DECREASE, COVER, FAULTS };

static const char *const faults[][FAULTS] = {
    [TFW_UNIFORM_ROW_LENGTH] = {[COVER] = "The values do not fill their rows"},
    [TFW_ROW_LENGTHS] = {[BEYOND] = "RowLengths beyond the values",
                         [COVER] = "RowLengths do not cover the values"},
    [TFW_ROW_SPLITS] = {[BEYOND] = "RowSplits beyond the values",
                        [BEGINNING] = "RowSplits do not begin at 0",
                        [DECREASE] = "RowSplits decrease",
                        [COVER] = "RowSplits do not cover the values"},
    [TFW_ROW_STARTS] = {[BEYOND] = "RowStarts beyond the values",
                        [BEGINNING] = "RowStarts do not begin at 0",
                        [DECREASE] = "RowStarts decrease",
                        [COVER] = "RowStarts do not cover the values"},
    [TFW_ROW_LIMITS] = {[BEYOND] = "RowLimits beyond the values",
                        [DECREASE] = "RowLimits decrease",
                        [COVER] = "RowLimits do not cover the values"},
    [TFW_VALUE_ROW_IDS] = {[BEYOND] = "The row ids are too large",
                           [DECREASE] = "The row ids decrease or are negative",
                           [COVER] = "There is not one row id for every value"},
};

/* The numbers of one cell, and the rows that they divide. */
typedef struct cell_rows {
    const int64_t *numbers;
    int64_t count;  /* of them */
    int64_t inner;  /* rows to be divided */
    int64_t length; /* of uniform rows */
} cell_rows;

/* Checks the numbers alone. -1: they are in range; else a fault. */
static int check_numbers(int32_t kind, const cell_rows *c) {
    if (kind == TFW_UNIFORM_ROW_LENGTH) {
        return c->inner % c->length == 0 ? -1 : COVER;
    }
    if (kind == TFW_VALUE_ROW_IDS) {
        for (int64_t i = 0; i < c->count; i++) {
            if (c->numbers[i] < (i == 0 ? 0 : c->numbers[i - 1])) {
                return DECREASE;
            }
        }
        return c->count == c->inner ? -1 : COVER;
    }
    for (int64_t i = 0; i < c->count; i++) {
        if (c->numbers[i] < 0 || c->numbers[i] > c->inner) {
            return BEYOND;
        }
    }
    bool from_zero = kind == TFW_ROW_SPLITS || kind == TFW_ROW_STARTS;
    return from_zero && c->count != 0 && c->numbers[0] != 0 ? BEGINNING : -1;
}

/* How many rows the numbers make; -1: row ids make more than most. */
static int64_t count_rows(int32_t kind, const cell_rows *c, int64_t most) {
    switch (kind) {
    case TFW_UNIFORM_ROW_LENGTH: return c->inner / c->length;
    case TFW_ROW_SPLITS: return c->count > 0 ? c->count - 1 : 0;
    case TFW_VALUE_ROW_IDS:
        if (c->count == 0) {
            return 0;
        }
        return c->numbers[c->count - 1] < most ? c->numbers[c->count - 1] + 1 : -1;
    default: return c->count;
    }
}

/* Writes where the rows of a cell end, counted from base on. -1: they cover the inner rows; else a
 * fault. */
static int put_ends(int32_t kind, const cell_rows *c, int64_t rows, int64_t base, int64_t *out) {
    int64_t end = 0, id = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t before = end;
        switch (kind) {
        case TFW_UNIFORM_ROW_LENGTH: end += c->length; break;
        case TFW_ROW_LENGTHS: end += c->numbers[i]; break; /* neither is more than inner */
        case TFW_ROW_SPLITS: end = c->numbers[i + 1]; break;
        case TFW_ROW_STARTS: end = i + 1 < c->count ? c->numbers[i + 1] : c->inner; break;
        case TFW_ROW_LIMITS: end = c->numbers[i]; break;
        default:
            for (; id < c->count && c->numbers[id] == i; id++) {
            }
            end = id;
            break;
        }
        if (end < before) {
            return DECREASE;
        }
        if (end > c->inner) {
            return COVER;
        }
        out[i] = base + end;
    }
    return end == c->inner ? -1 : COVER;
}

static cell_rows cell_at(const tfwi_rows *rows, const tfw_partition *partition,
                         const tfw_column *numbers, size_t i) {
    cell_rows cell = {.inner = rows->counts[i], .length = (int64_t)partition->length};
    if (partition->kind != TFW_UNIFORM_ROW_LENGTH) {
        cell.numbers = (const int64_t *)numbers->values + numbers->splits[i];
        cell.count = numbers->splits[i + 1] - numbers->splits[i];
    }
    return cell;
}

static int note_misfit(tfwi_rows *rows, size_t cell, int32_t kind, int fault) {
    rows->cell = cell;
    rows->fault = faults[kind][fault];
    return TFW_E_COUNT;
}

int tfwi_partition(tfwi_rows *rows, const tfw_partition *partition, const tfw_column *numbers,
                   int64_t most, tfwi_buffer **out_offsets) {
    const int32_t kind = partition->kind;
    int64_t total = 0, base = 0, done = 1;
    *out_offsets = NULL;
    for (size_t i = 0; i < rows->cells; i++) {
        const cell_rows cell = cell_at(rows, partition, numbers, i);
        const int fault = check_numbers(kind, &cell);
        const int64_t more = fault < 0 ? count_rows(kind, &cell, most - total) : 0;
        if (fault >= 0 || more < 0) {
            return note_misfit(rows, i, kind, fault >= 0 ? fault : BEYOND);
        }
        total += more;
    }
    tfwi_buffer *buffer = tfwi_buffer_new(((size_t)total + 1) * sizeof(int64_t));
    if (buffer == NULL) {
        return TFW_E_MEMORY;
    }
    int64_t *offsets = buffer->memory;
    offsets[0] = 0;
    for (size_t i = 0; i < rows->cells; i++) {
        const cell_rows cell = cell_at(rows, partition, numbers, i);
        const int64_t more = count_rows(kind, &cell, INT64_MAX);
        const int fault = put_ends(kind, &cell, more, base, offsets + done);
        if (fault >= 0) {
            tfwi_buffer_drop(buffer);
            return note_misfit(rows, i, kind, fault);
        }
        base += cell.inner;
        done += more;
        rows->counts[i] = more;
    }
    rows->total = total;
    *out_offsets = buffer;
    return TFW_OK;
}

/* ---- UTF-8 ---------------------------------------------------------------------------------- */

/* Whether strings that lie side by side are UTF-8 together, and none begins within a character:
 * then each is, without a loop for each. */
static bool are_utf8_together(const uint8_t *data, const int64_t *offsets, size_t count) {
    const uint8_t *p = data + offsets[0], *end = data + offsets[count];
    uint64_t high = 0;
    for (; end - p >= 8; p += 8) {
        high |= tfwi_load64(p);
    }
    for (; p < end; p++) {
        high |= (uint64_t)*p << 56;
    }
    if ((high & UINT64_C(0x8080808080808080)) == 0) {
        return true;
    }
    bool within = false;
    for (size_t i = 0; i < count; i++) {
        within |= offsets[i] < offsets[count] && tfwi_utf8_continues(data[offsets[i]]);
    }
    return !within &&
           tfwi_is_utf8(data + offsets[0], (size_t)(offsets[count] - offsets[0]));
}

bool tfwi_strings_are_utf8(const uint8_t *data, const int64_t *offsets, size_t count,
                           size_t *out_wrong) {
    size_t i = are_utf8_together(data, offsets, count) ? count : 0;
    while (i < count && tfwi_is_utf8(data + offsets[i], (size_t)(offsets[i + 1] - offsets[i]))) {
        i++;
    }
    if (i < count) {
        *out_wrong = i;
    }
    return i == count;
}
