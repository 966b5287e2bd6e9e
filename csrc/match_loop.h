/* Template: matching. A kernel's file includes it once, after it has defined
 *
 *     TARGET                           the function attribute that allows its instructions
 *     header_is(t, p, len)             whether the header of a value of len bytes is at p;
 *                                      TFWI_HEADER_SIZE bytes can be read there
 *     gather(word, mask)               the bits of word that mask selects, side by side; mask has
 *                                      the lower seven bits of some lower bytes
 *     read_varints                     a tfwi_varint_reader
 */
#ifndef TFWIRE_MATCH_LOOP_H
#define TFWIRE_MATCH_LOOP_H

#include "columns.h"

#define NO_MATCH SIZE_MAX

/* The longest strings are copied whole, whatever their length: 4 times faster than memcpy. */
#define SHORT_STRING 32
#define LONG_STRING 128

#define SEVENS UINT64_C(0x7f7f7f7f7f7f7f7f)
#define EIGHTHS UINT64_C(0x8080808080808080)

/* A block that is one varint of at most eight bytes; 16 bytes can be read. */
TARGET TFWI_INLINE bool read_short_varint(const uint8_t *p, size_t len, int64_t *out) {
    uint64_t word = tfwi_load64(p);
    unsigned unused = (unsigned)(64 - 8 * len) & 63;
    /* Of the block's bytes, only the last one ends a varint. */
    if (len - 1 >= 8 || (~word & EIGHTHS) << unused != UINT64_C(1) << 63) {
        return false;
    }
    *out = (int64_t)gather(word, SEVENS >> unused);
    return true;
}

/* A block that is one varint of nine or ten bytes. */
TARGET TFWI_INLINE bool read_wide_varint(const uint8_t *p, size_t len, int64_t *out) {
    uint64_t word = tfwi_load64(p);
    bool nine = len == 9 && p[8] < 0x80, ten = len == 10 && p[8] >= 0x80 && p[9] < 0x80;
    if ((word & EIGHTHS) != EIGHTHS || !(nine || ten)) {
        return false;
    }
    uint64_t high = (p[8] & 0x7fu) | (uint64_t)(ten ? p[9] : 0) << 7;
    *out = (int64_t)(gather(word, SEVENS) | high << 56);
    return true;
}

/* Stores a packed block as the column's values from index first on; returns how many those are,
 * or NO_MATCH. */
TARGET TFWI_INLINE size_t store_int64s(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len, const uint8_t *limit) {
    size_t room = column->count < len ? (size_t)column->count : len, count = 0;
    if (room == 0 || !tfwi_array_reserve(&column->values, (first + room) * sizeof(int64_t))) {
        return NO_MATCH; /* no memory: for the complete parser to report */
    }
    int64_t *out = tfwi_int64s(&column->values) + first;
    if (TFWI_LIKELY(read_short_varint(p, len, out)) || read_wide_varint(p, len, out)) {
        return 1;
    }
    const uint8_t *next = read_varints(p, p + len, limit, out, room, &count);
    return next == p + len ? count : NO_MATCH;
}

TARGET TFWI_INLINE size_t store_floats(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len) {
    if (len == 0 || len % sizeof(float) != 0 ||
        !tfwi_array_reserve(&column->values, first * sizeof(float) + len)) {
        return NO_MATCH;
    }
    uint8_t *out = column->values.data + first * sizeof(float);
    if (len == sizeof(float)) {
        tfwi_copy_floats(out, p, 1);
    } else {
        tfwi_copy_floats(out, p, len / sizeof(float));
    }
    return len / sizeof(float);
}

TARGET TFWI_INLINE size_t store_string(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len) {
    if (!tfwi_array_reserve(&column->offsets, (first + 2) * sizeof(int64_t))) {
        return NO_MATCH;
    }
    int64_t *offsets = tfwi_int64s(&column->offsets) + first;
    size_t begin = (size_t)offsets[0];
    if (!tfwi_array_reserve(&column->values, begin + LONG_STRING)) {
        return NO_MATCH;
    }
    memcpy(column->values.data + begin, p, SHORT_STRING);
    if (len > SHORT_STRING) {
        memcpy(column->values.data + begin, p, LONG_STRING);
    }
    offsets[1] = (int64_t)(begin + len);
    return 1;
}

/* Whether a cell may hold so many values. */
TARGET TFWI_INLINE bool count_matches(const tfwi_column *column, size_t count) {
    return !column->variable ? count == column->count
                             : column->multiple <= 1 || count % column->multiple == 0;
}

/* Stores a value of any size in a cell. */
TARGET TFWI_INLINE bool store_cell(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                   size_t len, const uint8_t *limit) {
    size_t first = column->variable ? (size_t)tfwi_int64s(&column->splits)[cell]
                                    : (size_t)(cell * column->count);
    size_t count;
    switch (column->usual.shape) {
    case TFWI_FLOATS: count = store_floats(column, first, p, len); break;
    case TFWI_INT64S: count = store_int64s(column, first, p, len, limit); break;
    case TFWI_STRING: count = store_string(column, first, p, len); break;
    default: return false;
    }
    if (count == NO_MATCH || !count_matches(column, count)) {
        return false;
    }
    if (column->variable) {
        tfwi_int64s(&column->splits)[cell + 1] = (int64_t)(first + count);
    }
    return true;
}

/* Bytes of a value, and of all of an entry or step. */
typedef struct extent {
    size_t len;
    size_t size;
} extent;

/* Whether an entry or step of the usual shape is at p. The header is asked first and without a
 * branch on the template: where keys come in no order, wrong guesses all fail at the same place,
 * which is predicted, and cost a comparison each. */
TARGET TFWI_INLINE bool is_usual(const tfwi_template *t, const uint8_t *p, const uint8_t *end,
                                 extent *out) {
    size_t grown = p[t->length_at] & t->grows_by;
    /* By its own length and not by the value's, though both are the same when it matches: where
     * the next one begins is what everything waits for, and so it is known soonest. */
    size_t size = t->fixed_size != 0 ? t->fixed_size : 2u + p[1];
    *out = (extent){.len = t->fixed_len + grown, .size = size};
    return header_is(t, p, grown) && grown <= t->max_len && (size_t)(end - p) >= size;
}

/* Stores what is_usual found in a cell; false when it is not of the usual shape either. */
TARGET TFWI_INLINE bool store_usual(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                    size_t len, const uint8_t *limit) {
    const uint8_t *value = p + column->usual.len;
    if (column->usual.shape == TFWI_ONE_INT64) {
        int64_t *out = tfwi_int64s(&column->values) + cell;
        return TFWI_LIKELY(read_short_varint(value, len, out)) ||
               read_wide_varint(value, len, out);
    }
    if (column->usual.shape == TFWI_ONE_FLOAT) {
        tfwi_copy_floats(column->values.data + cell * sizeof(float), value, 1);
        return true;
    }
    return store_cell(column, cell, value, len, limit);
}

/* The feature whose entry seems to begin at p, or TFWI_NOT_FOUND. Only hashes are compared: a
 * match proves the key. */
TARGET TFWI_INLINE size_t peek_feature(const tfw_schema *schema, const uint8_t *p,
                                       const uint8_t *end) {
    size_t left = (size_t)(end - p);
    if (left < 4 || p[2] != TFWI_TAG(1, TFWI_BYTES) || p[3] > 0x7f || p[3] > left - 4) {
        return TFWI_NOT_FOUND;
    }
    uint64_t hash = tfwi_hash(p + 4, p[3]);
    size_t i = (size_t)hash & schema->mask;
    while (schema->slots[i].feature != 0) {
        if (schema->slots[i].hash == (uint32_t)(hash >> 32)) {
            return schema->slots[i].feature - 1;
        }
        i = (i + 1) & schema->mask;
    }
    return TFWI_NOT_FOUND;
}

TARGET static const uint8_t *match_entries(tfw_columns *columns, const uint8_t *p,
                                           const uint8_t *end, const uint8_t *limit) {
    const uint64_t cell = columns->records, serial = columns->serial;
    tfwi_column **expected = columns->expected;
    size_t filled = 0;
    while (limit - p >= TFWI_MATCH_ROOM && p != end) {
        extent found;
        tfwi_column *column = *expected;
        if (!is_usual(&column->usual, p, end, &found) || column->serial >= serial) {
            size_t other = peek_feature(columns->schema, p, end);
            if (other == TFWI_NOT_FOUND) {
                break;
            }
            column = &columns->columns[other];
            if (!is_usual(&column->usual, p, end, &found) || column->serial >= serial) {
                break;
            }
            *expected = column;
        }
        if (!store_usual(column, cell, p, found.len, limit)) {
            break;
        }
        column->serial = serial + TFWI_FILLED;
        expected = &column->next;
        filled++;
        p += found.size;
    }
    columns->expected = expected;
    columns->filled += filled;
    return p;
}

TARGET static const uint8_t *match_steps(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                         const uint8_t *end, const uint8_t *limit) {
    while (limit - p >= TFWI_MATCH_ROOM && p != end) {
        extent found;
        if (!is_usual(&column->usual, p, end, &found) ||
            (column->variable &&
             !tfwi_array_reserve(&column->splits, (size_t)(cell + 2) * sizeof(int64_t))) ||
            !store_usual(column, cell, p, found.len, limit)) {
            break;
        }
        p += found.size;
        cell++;
        column->steps_found++;
    }
    return p;
}

#endif /* TFWIRE_MATCH_LOOP_H */
