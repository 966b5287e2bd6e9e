/* SPDX-License-Identifier: Apache-2.0 */
/* Template: matching. A kernel's file includes it once, after it has defined
 *
 *     TARGET                           the function attribute that allows its instructions
 *     prefix_is(t, p, len)             whether the prefix of a value of len bytes is at p;
 *                                      TFWI_TEMPLATE_SIZE bytes can be read there
 *     read_varint(p, len, out)         whether a block of at most ten bytes is one varint; its
 *                                      value; 16 bytes can be read
 *     read_number(p, row, out)         whether a single number of this row (match.h) is at p; its
 *                                      bits; 16 bytes can be read
 *     read_varints                     a tfwi_varint_reader
 */
#ifndef TFWIRE_MATCH_TEMPLATE_H
#define TFWIRE_MATCH_TEMPLATE_H

#include "parse/cells.h"

#define NO_MATCH SIZE_MAX

/* Strings are copied as if they had one of these lengths: 4 times as fast as memcpy. */
#define SHORT_STRING 32
#define LONG_STRING 128

/* A tfwi_varint_reader for blocks that are mostly a single value. */
TARGET static const uint8_t *read_block(const uint8_t *p, const uint8_t *end, const uint8_t *limit,
                                        int64_t *out, size_t room, size_t *out_count) {
    size_t len = (size_t)(end - p);
    if (len <= TFWI_MAX_VARINT && limit - p >= 16 && room != 0 && read_varint(p, len, out)) {
        *out_count = 1;
        return end;
    }
    return read_varints(p, end, limit, out, room, out_count);
}

/* Stores a packed block as the column's values from index first on; returns how many those are,
 * or NO_MATCH. */
TARGET TFWI_INLINE size_t store_int64s(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len, const uint8_t *limit) {
    size_t room = column->count < len ? (size_t)column->count : len, count = 0;
    if (room == 0 || !TFWI_RESERVE(column->values, (first + room) * sizeof(int64_t))) {
        return NO_MATCH; /* no memory: for the complete parser to report */
    }
    int64_t *out = (int64_t *)(void *)column->values.of + first;
    if (len <= TFWI_MAX_VARINT && read_varint(p, len, out)) {
        return 1;
    }
    const uint8_t *next = read_varints(p, p + len, limit, out, room, &count);
    return next == p + len ? count : NO_MATCH;
}

TARGET TFWI_INLINE size_t store_floats(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len) {
    if (len == 0 || len % sizeof(float) != 0 ||
        !TFWI_RESERVE(column->values, first * sizeof(float) + len)) {
        return NO_MATCH;
    }
    uint8_t *out = column->values.of + first * sizeof(float);
    if (len == sizeof(float)) {
        tfwi_load_floats(out, p, 1);
    } else {
        tfwi_load_floats(out, p, len / sizeof(float));
    }
    return len / sizeof(float);
}

TARGET TFWI_INLINE size_t store_string(tfwi_column *column, size_t first, const uint8_t *p,
                                       size_t len) {
    if (!TFWI_RESERVE(column->offsets, first + 2)) {
        return NO_MATCH;
    }
    int64_t *offsets = column->offsets.of + first;
    size_t begin = (size_t)offsets[0];
    size_t end;
    if (tfwi_add_overflows(begin, len > LONG_STRING ? len : LONG_STRING, &end) ||
        !TFWI_RESERVE(column->values, end)) {
        return NO_MATCH;
    }
    uint8_t *out = column->values.of + begin;
    memcpy(out, p, SHORT_STRING);
    if (len > LONG_STRING) {
        memcpy(out, p, len);
    } else if (len > SHORT_STRING) {
        memcpy(out, p, LONG_STRING);
    }
    offsets[1] = (int64_t)(begin + len);
    return 1;
}

/* Stores a value of any size in a cell. */
TARGET TFWI_INLINE bool fill_cell(tfwi_column *column, uint8_t shape, uint64_t cell,
                                  const uint8_t *p, size_t len, const uint8_t *limit) {
    size_t first = column->variable ? (size_t)column->splits.of[cell]
                                    : (size_t)(cell * column->count);
    size_t count;
    switch (shape) {
    case TFWI_SHAPE_FLOATS: count = store_floats(column, first, p, len); break;
    case TFWI_SHAPE_INT64S: count = store_int64s(column, first, p, len, limit); break;
    case TFWI_SHAPE_STRING: count = store_string(column, first, p, len); break;
    default: return false;
    }
    if (count == NO_MATCH || !tfwi_count_fits(column, count)) {
        return false;
    }
    if (column->variable) {
        column->splits.of[cell + 1] = (int64_t)(first + count);
    }
    return true;
}

/* Not inlined, so that the loop over single numbers keeps its variables in registers. */
TARGET TFWI_NOINLINE static bool store_cell(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                            size_t len, const uint8_t *limit) {
    return fill_cell(column, column->usual.shape, cell, p, len, limit);
}

/* Whether the prefix of an entry or step of the usual shape is at p. It is asked first and without
 * a branch on the template: where keys have no order, wrong guesses all fail at the same branch,
 * which is predicted, and cost a comparison each. */
TARGET TFWI_INLINE bool is_usual(const tfwi_template *t, const uint8_t *p) {
    return prefix_is(t, p, p[(size_t)t->len - 1]);
}

/* The value after such a prefix; NULL: it is too long for it, or leaves the message. */
TARGET TFWI_INLINE const uint8_t *value_at(const tfwi_template *t, const uint8_t *p,
                                           const uint8_t *end, size_t *out_len) {
    const uint8_t *value = p + t->len;
    size_t len = t->fixed_len != 0 ? t->fixed_len : value[-1];
    bool usual = t->fixed_len != 0 || len <= t->max_len;
    *out_len = len;
    return usual && value <= end && len <= (size_t)(end - value) ? value : NULL;
}

/* Stores the value after such a prefix in a cell; returns its end, or NULL: it is not of the usual
 * shape either, or leaves the message. */
TARGET TFWI_INLINE const uint8_t *store_usual(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                              const uint8_t *end, const uint8_t *limit) {
    const tfwi_template *t = &column->usual;
    const uint8_t *value = p + t->len;
    size_t len = value[-1];
    if (TFWI_LIKELY(t->shape == TFWI_SHAPE_ONE_INT64)) { /* read before its end is known: */
        bool single = len <= t->max_len &&
                      read_varint(value, len, (int64_t *)(void *)column->values.of + cell);
        value += len; /* there is room */
        return TFWI_LIKELY(single && value <= end) ? value : NULL;
    }
    if (TFWI_LIKELY(t->shape == TFWI_SHAPE_ONE_FLOAT)) {
        tfwi_load_floats(column->values.of + cell * sizeof(float), value, 1);
        value += sizeof(float);
        return TFWI_LIKELY(value <= end) ? value : NULL;
    }
    value = value_at(t, p, end, &len);
    return value != NULL && store_cell(column, cell, value, len, limit) ? value + len : NULL;
}

/* Stores the bits of a single number, without a branch on its size. */
TARGET TFWI_INLINE void store_number(tfwi_column *column, uint64_t cell, uint64_t bits) {
    size_t size = column->value_size;
    uint8_t *out = column->values.of + cell * size;
#ifdef TFWI_BIG_ENDIAN
    bits <<= 64 - 8 * size;
    memcpy(out, &bits, size);
#else
    tfwi_store32(out, (uint32_t)bits);
    tfwi_store32(out + size - 4, (uint32_t)(bits >> (8 * size - 32))); /* a float's is the same */
#endif
}

/* The column whose entry seems to begin at p, or NULL. Only hashes are compared: a match proves the
 * key. */
TARGET TFWI_NOINLINE static tfwi_column *peek_column(tfw_columns *columns, const uint8_t *p,
                                                     const uint8_t *end) {
    const tfw_schema *schema = columns->schema;
    size_t left = (size_t)(end - p);
    if (left < 4 || p[2] != TFWI_TAG(1, TFWI_WIRE_LEN) || p[3] > 0x7f || p[3] > left - 4) {
        return NULL;
    }
    uint64_t hash = tfwi_hash(&schema->seed, p + 4, p[3]);
    size_t i = (size_t)hash & schema->mask;
    while (schema->slots[i].feature != 0) {
        if (schema->slots[i].hash == (uint32_t)(hash >> 32)) {
            return &columns->columns[schema->slots[i].feature - 1];
        }
        i = (i + 1) & schema->mask;
    }
    return NULL;
}

/* ---- Entries of the usual shape with lengths of more than a byte ---------------------------- */

/* A length of up to three bytes; returns its end, or NULL. */
TARGET TFWI_INLINE const uint8_t *read_len(const uint8_t *p, size_t *out) {
    *out = p[0] & 0x7fu;
    if (p[0] < 0x80) {
        return p + 1;
    }
    *out |= (size_t)(p[1] & 0x7f) << 7;
    if (p[1] < 0x80) {
        return p + 2;
    }
    *out |= (size_t)p[2] << 14;
    return p[2] < 0x80 ? p + 3 : NULL;
}

/* The content of a field that fills the bytes up to end, or NULL. */
TARGET TFWI_INLINE const uint8_t *enter(const uint8_t *p, const uint8_t *end, uint32_t tag) {
    size_t len;
    if (p == NULL || end - p < 4 || *p != tag || (p = read_len(p + 1, &len)) == NULL) {
        return NULL;
    }
    return (size_t)(end - p) == len ? p : NULL;
}

/* Stores an entry of the usual shape that is read, not compared; returns its end, or NULL. */
TARGET TFWI_NOINLINE static const uint8_t *store_long(tfw_columns *columns, const uint8_t *p,
                                                      const uint8_t *end, const uint8_t *limit) {
    size_t size, key_len;
    if (*p != TFWI_TAG(1, TFWI_WIRE_LEN) || (p = read_len(p + 1, &size)) == NULL || p > end ||
        size > (size_t)(end - p) || size < 8 || *p != TFWI_TAG(1, TFWI_WIRE_LEN)) {
        return NULL;
    }
    end = p + size;
    const uint8_t *key = read_len(p + 1, &key_len);
    if (key == NULL || key > end || key_len > (size_t)(end - key)) {
        return NULL;
    }
    tfwi_column *column = tfwi_columns_find(columns, key, key_len);
    if (column == NULL || !tfwi_cell_is_absent(column, columns->serial) ||
        column->usual.fixed_len != 0) {
        return NULL;
    }
    p = enter(key + key_len, end, TFWI_TAG(2, TFWI_WIRE_LEN));
    p = enter(p, end, TFWI_TAG(column->kind, TFWI_WIRE_LEN));
    p = enter(p, end, TFWI_TAG(1, TFWI_WIRE_LEN));
    if (p == NULL || limit - p < LONG_STRING ||
        !store_cell(column, columns->records, p, (size_t)(end - p), limit)) {
        return NULL;
    }
    tfwi_cell_fill(column, columns->serial);
    columns->filled++;
    return end;
}

/* ---- Entries that are not asked for --------------------------------------------------------- */

/* Skips entries of the usual shape whose keys are not asked for; returns where it stopped. The next
 * entry waits for a single load: the comparisons are predicted. */
TARGET TFWI_NOINLINE static const uint8_t *skip_unasked(const tfw_columns *columns,
                                                        const uint8_t *p, const uint8_t *stop,
                                                        const uint8_t *end) {
    const tfwi_guesses *guesses = &columns->schema->guesses;
    const uint32_t tags = TFWI_TAG(1, TFWI_WIRE_LEN) | TFWI_TAG(1, TFWI_WIRE_LEN) << 16;
    while (p < stop) {
        uint32_t head = tfwi_load32(p), len = head >> 24, size = head >> 8 & 0xff;
        uint32_t value = TFWI_TAG(2, TFWI_WIRE_LEN) + ((size - len - 4) << 8);
        const uint8_t *next = p + 2 + size;
        if ((head & 0x80ff80ff) != tags || (tfwi_load32(p + 4 + len) & 0xffff) != value ||
            next > end || tfwi_guess(guesses, p + 4, len) != columns->count) {
            break;
        }
        p = next;
    }
    return p;
}

/* ---- Entries in any order ------------------------------------------------------------------- */

/* How many entries ahead columns are looked up: as many as are stored while a lookup takes. */
#define LOOKED_UP 4

/* After this many entries, checks whether they now come in the expected order. */
#define UNORDERED 32

/* The end of an entry of the usual shape, whatever its value is, or NULL. */
TARGET TFWI_INLINE const uint8_t *skip_entry(const uint8_t *p, const uint8_t *end) {
    size_t size = p[1], len = p[3];
    bool usual = p[0] == TFWI_TAG(1, TFWI_WIRE_LEN) && p[2] == TFWI_TAG(1, TFWI_WIRE_LEN) &&
                 size < 0x80 && len + 4 <= size && size + 2 <= (size_t)(end - p) &&
                 p[len + 4] == TFWI_TAG(2, TFWI_WIRE_LEN) && p[len + 5] == size - len - 4;
    return usual ? p + size + 2 : NULL;
}

/* Stores an entry whose key was guessed wrong, or skips it if its key is not asked for; returns its
 * end, or NULL. */
TARGET TFWI_NOINLINE static const uint8_t *match_by_hash(tfw_columns *columns, const uint8_t *p,
                                                         const uint8_t *end,
                                                         const uint8_t *limit) {
    const uint8_t *skipped = skip_entry(p, end);
    tfwi_column *column = skipped != NULL ? peek_column(columns, p, end) : NULL;
    if (column == NULL) {
        tfwi_note_skipped(columns, p, skipped != NULL ? skipped : p);
        return skipped;
    }
    if (!is_usual(&column->usual, p) || !tfwi_cell_is_absent(column, columns->serial)) {
        return NULL;
    }
    const uint8_t *next = store_usual(column, columns->records, p, end, limit);
    if (next != NULL) {
        tfwi_cell_fill(column, columns->serial);
        columns->filled++;
        *columns->expected = column;
        columns->expected = &column->next;
    }
    return next;
}

/* The column that the entry at *p is guessed to belong to. *p becomes the next entry, if the length
 * of this one takes one byte. */
TARGET TFWI_INLINE tfwi_column *look_up(tfwi_column *columns, const tfwi_guesses *guesses,
                                        const uint8_t **p) {
    const uint8_t *entry = *p;
    *p = entry + 2 + (size_t)entry[1];
    return &columns[tfwi_guess(guesses, entry + 4, entry[3])];
}

/* Stores a single number in a cell, whichever kind it is; returns its end, or NULL. */
TARGET TFWI_INLINE const uint8_t *store_single(tfwi_column *column, uint64_t cell,
                                               const uint8_t *value, size_t len,
                                               const uint8_t *end) {
    uint64_t bits;
    if (TFWI_UNLIKELY(value + len > end ||
                      !read_number(value, len + column->usual.number_row, &bits))) {
        return NULL;
    }
    store_number(column, cell, bits);
    return value + len;
}

/* Stores and skips entries until another loop may be faster; returns where it stopped. No branch
 * depends on what is random: the key, its length, the kind or the length of a number. Lookups do
 * not wait for earlier entries, since the first bytes of an entry say where it ends. */
TARGET TFWI_NOINLINE static const uint8_t *match_unordered(tfw_columns *columns, const uint8_t *p,
                                                           const uint8_t *stop, const uint8_t *end,
                                                           const uint8_t *limit) {
    const uint64_t cell = columns->records, serial = columns->serial;
    const tfwi_guesses *guesses = &columns->schema->guesses;
    /* What is to be noted goes to match_by_hash. */
    const tfwi_column *unasked =
        columns->unknown == NULL ? &columns->columns[columns->count] : NULL;
    tfwi_column **expected = columns->expected, *found[LOOKED_UP];
    const uint8_t *ahead = p, *next;
    size_t filled = 0;
    for (size_t i = 0; i < LOOKED_UP && ahead < stop; i++) {
        found[i] = look_up(columns->columns, guesses, &ahead);
    }
    for (size_t i = 0; p < stop; i++, p = next) {
        if (i % UNORDERED == UNORDERED - 1 && is_usual(&(*expected)->usual, p)) {
            break;
        }
        tfwi_column *column = found[i % LOOKED_UP];
        if (ahead < stop) {
            found[i % LOOKED_UP] = look_up(columns->columns, guesses, &ahead);
        }
        const uint8_t *value = p + column->usual.len;
        size_t len = value[-1];
        if (TFWI_UNLIKELY(!prefix_is(&column->usual, p, len) ||
                          !tfwi_cell_is_absent(column, serial))) {
            if (column == unasked) {
                next = skip_entry(p, end);
            } else {
                columns->expected = expected;
                next = match_by_hash(columns, p, end, limit);
                expected = columns->expected;
            }
            if (next == NULL) {
                break;
            }
            continue;
        }
        if (TFWI_LIKELY(len - 1 < column->usual.number_len)) {
            next = store_single(column, cell, value, len, end);
        } else {
            next = store_usual(column, cell, p, end, limit);
            stop = p[1] < 0x80 ? stop : p; /* otherwise the lookups ahead are of other entries */
        }
        if (TFWI_UNLIKELY(next == NULL)) {
            break;
        }
        tfwi_cell_fill(column, serial);
        *expected = column;
        expected = &column->next;
        filled++;
    }
    columns->expected = expected;
    columns->filled += filled;
    return p;
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Entries and steps that begin before this have enough readable bytes after them for a kernel. */
TARGET TFWI_INLINE const uint8_t *stop_of(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit) {
    ptrdiff_t usable = limit - p - TFWI_MATCH_ROOM + 1;
    return usable < end - p ? p + (usable > 0 ? usable : 0) : end;
}

TARGET static const uint8_t *match_entries(tfw_columns *columns, const uint8_t *p,
                                           const uint8_t *end, const uint8_t *limit) {
    const uint64_t cell = columns->records, serial = columns->serial;
    const uint8_t *const stop = stop_of(p, end, limit);
    tfwi_column **expected = columns->expected;
    size_t filled = 0;
    while (p < stop) {
        tfwi_column *column = *expected;
        if (TFWI_UNLIKELY(!is_usual(&column->usual, p) ||
                          !tfwi_cell_is_absent(column, serial))) {
            columns->expected = expected;
            const uint8_t *other = skip_unasked(columns, p, stop, end);
            if (TFWI_UNLIKELY(columns->unknown != NULL)) {
                tfwi_note_skipped(columns, p, other);
            }
            if (other == p) {
                other = p[1] > 0x7f ? store_long(columns, p, end, limit)
                                    : match_unordered(columns, p, stop, end, limit);
            }
            expected = columns->expected;
            if (other == NULL || other == p) {
                break;
            }
            p = other;
            continue;
        }
        const uint8_t *next = store_usual(column, cell, p, end, limit);
        if (TFWI_UNLIKELY(next == NULL)) {
            break;
        }
        tfwi_cell_fill(column, serial);
        expected = &column->next;
        filled++;
        p = next;
    }
    columns->expected = expected;
    columns->filled += filled;
    return p;
}

/* The steps of one shape: each shape has its own loop, which does not test it at every step. */
TARGET TFWI_INLINE const uint8_t *steps_of(uint8_t shape, tfwi_column *column, uint64_t cell,
                                           const uint8_t *p, const uint8_t *end,
                                           const uint8_t *limit) {
    const uint8_t *const stop = stop_of(p, end, limit);
    const uint64_t first = cell;
    for (; p < stop && is_usual(&column->usual, p); cell++) {
        size_t len;
        const uint8_t *value = value_at(&column->usual, p, end, &len);
        if (value == NULL ||
            (column->variable &&
             !TFWI_RESERVE(column->splits, cell + 2)) ||
            !fill_cell(column, shape, cell, value, len, limit)) {
            break;
        }
        p = value + len;
    }
    column->steps_found += cell - first;
    return p;
}

TARGET static const uint8_t *match_steps(tfwi_column *column, uint64_t cell, const uint8_t *p,
                                         const uint8_t *end, const uint8_t *limit) {
    switch (column->usual.shape) {
    case TFWI_SHAPE_FLOATS: return steps_of(TFWI_SHAPE_FLOATS, column, cell, p, end, limit);
    case TFWI_SHAPE_INT64S: return steps_of(TFWI_SHAPE_INT64S, column, cell, p, end, limit);
    case TFWI_SHAPE_STRING: return steps_of(TFWI_SHAPE_STRING, column, cell, p, end, limit);
    default: return p;
    }
}

#endif /* TFWIRE_MATCH_TEMPLATE_H */
