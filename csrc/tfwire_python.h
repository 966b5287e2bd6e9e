/* SPDX-License-Identifier: Apache-2.0 */
/* tfwire: functions that only the Python package needs, by the conventions of tfwire.h.
 *
 * Objects of Python cross by Python's C API. The text between the CDEF marks is also what cffi
 * reads, after that of tfwire.h.
 */
#ifndef TFWIRE_PYTHON_H
#define TFWIRE_PYTHON_H

#include "tfwire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CDEF-BEGIN */

/* ---- Objects of Python ----------------------------------------------------------------------
 * What takes and gives objects are functions of a module of Python (csrc/python/functions.c). */

/* Appends that module to a list. Only the Python package's module has this function.
 * REQUIRES: the address of a list of Python, which the caller holds. */
int tfw_add_functions(uintptr_t list);

struct tfw_unknown;

/* The report of tfw_arrow_stream_options: Python's main thread warns as soon as it runs code. From
 * any thread, with the GIL or without. Only the Python package's module has this function. */
void tfw_report_unknown(const char *name, const struct tfw_unknown *unknown, size_t count);

/* ---- Messages whose size nobody knows ------------------------------------------------------- */

/* What decoding makes of a SequenceExample; or limits of it. */
typedef struct tfw_extent {
    uint64_t features; /* of both maps; as a limit: of each */
    uint64_t objects;  /* features, steps and strings, and what long keys count for */
    uint64_t bytes;    /* of keys, strings and numbers */
} tfw_extent;

/* Measures what decoding would make, in memory that does not depend on it.
 * TFW_E_WIRE: it would fail, too. */
TFW_API int tfw_measure(const uint8_t *message, size_t len, tfw_extent *out_extent,
                        tfw_error *error);

/* The values that a feature or a feature list has lost, and the steps. */
typedef struct tfw_cut {
    uint64_t key_at; /* in the message */
    uint64_t key_len;
    uint64_t steps;
    uint64_t values;
    uint64_t is_list;
} tfw_cut;

/* Writes the message with its first features and feature lists only, each with its first steps and
 * values, as many as its share of the limits holds: an equal one, and what those before it did not
 * use. Fields of no meaning are left out. out has
 * room for len bytes. *out_left_out features and feature lists are left out, and those that are
 * cut are noted. TFW_E_ARGUMENT: there is no room for two cuts of every feature of *most.
 * TFW_E_WIRE: as tfw_measure. */
TFW_API int tfw_shorten(const uint8_t *message, size_t len, const tfw_extent *most, uint8_t *out,
                        size_t *out_len, tfw_cut *cuts, size_t cut_capacity, size_t *out_cuts,
                        uint64_t *out_left_out, tfw_error *error);

/* ---- Searches ------------------------------------------------------------------------------- */

/* A value of a feature that is searched for. */
typedef struct tfw_wanted {
    const uint8_t *name; /* of the feature or the feature list; NULL: of any, and a record that has
                            none may hold the part, too */
    uint64_t name_len;
    const uint8_t *part; /* that a string holds */
    uint64_t part_len;   /* 0: the feature with any value, or none */
    int64_t integer;     /* that an int64 equals, with has_integer */
    float number;        /* that a float equals, with has_number */
    int32_t has_integer;
    int32_t has_number;
    int32_t is_list;     /* the name is that of a feature list */
} tfw_wanted;

/* Which records hold a value, as a tfw_select of a tfw_wanted.
 * None that holds it is missing, unless a varint has more bytes or bits than it needs; among them
 * may be some that are not well-formed, or that have a key twice. Without a name, strings whose
 * beginning is not UTF-8 do not count.
 * REQUIRES: spans in increasing order, fewer than 2^32; out has room for count numbers. */
TFW_API size_t tfw_find(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
                        const void *wanted, uint32_t *out);

/* ---- Files of Python ------------------------------------------------------------------------ */

/* Reads a whole record at an offset of a file, and verifies it and its length. TFW_OK, or what
 * tfw_read_at or tfw_verify_record found; TFW_E_TRUNCATED: the file ends before.
 * REQUIRES: out has room for size bytes. */
TFW_API int tfw_read_record(int32_t fd, uint64_t offset, size_t size, uint8_t *out);

/* Copies byte strings, given as spans of addresses, into out as framed records, one after the
 * other: as many as fit, *out_done, in *out_len bytes. TFW_NEED_SPACE: the next does not fit. */
TFW_API int tfw_pack_addresses(const tfw_span *spans, size_t count, uint8_t *out, size_t capacity,
                               size_t *out_done, size_t *out_len);

/* Where in data the first header of a gzip member may begin that has reserved flags, which zlib
 * refuses and isal takes; len: nowhere, unless in the last three bytes. */
TFW_API size_t tfw_find_reserved_flags(const uint8_t *data, size_t len);

/* Closes the file of a descriptor, if it is not -1, and makes it -1. A destructor for the memory
 * that has it: Python loses an interrupt that arrives in a destructor of its own. */
TFW_API void tfw_close_file(int32_t *fd);

enum tfw_lock_flags {
    TFW_LOCK_SHARED = 1 /* others may share it */
};

/* Locks a file against other openings of it, without waiting, until it is unlocked or closed.
 * TFW_E_IO; its errno value is EAGAIN where another has the lock. */
TFW_API int tfw_lock_file(int32_t fd, uint32_t flags, tfw_error *error);

/* Releases the lock of a file, if it has one, also if a forked process has the file open. */
TFW_API int tfw_unlock_file(int32_t fd, tfw_error *error);

/* ---- Sequences packed into rows ------------------------------------------------------------- */

/* Rows of num_parts parts, into which elements are packed. Part p of each is widths[p] values long;
 * of row r, filled[r * num_parts + p] are in use, by held[r] elements. */
typedef struct tfw_rows {
    const int64_t *widths;
    int64_t *filled;
    int64_t *held;
    size_t num_parts;
    size_t num_rows;
} tfw_rows;

/* Puts elements, from the first on, each into the first row that has room for all of its parts,
 * until one fits into no row: *out_end, or count. Part p of element i has lengths[p * count + i]
 * values. places has num_parts + 2 rows of count numbers: the row, which element of this row
 * it is, from 1, and where each of its parts begins.
 * TFW_E_ARGUMENT: a length below 0 or above its width, or rows filled by as much. */
TFW_API int tfw_first_fit(const tfw_rows *rows, const int64_t *lengths, size_t count, size_t first,
                          int64_t *places, size_t *out_end, tfw_error *error);

/* Segments of an array of values, and where they go: values [begins[i], begins[i] + lengths[i]) to
 * rows[i], from starts[i] on, as numbers[i] of this row. */
typedef struct tfw_segments {
    const int64_t *begins;
    const int64_t *lengths;
    const int64_t *rows;
    const int64_t *numbers;
    const int64_t *starts;
    size_t count;
} tfw_segments;

/* Copies segments into rows of one width, and writes the number of each beside its values, and
 * their positions in it; what lies between them is left as it is. values may be NULL: they are not
 * copied. TFW_E_ARGUMENT: a segment leaves the values or the rows.
 * REQUIRES: room for num_rows * width values of value_size bytes at out, and as many numbers at ids
 * and positions. */
TFW_API int tfw_copy_segments(const tfw_segments *segments, const void *values, size_t value_count,
                              size_t value_size, size_t num_rows, size_t width, void *out,
                              int32_t *ids, int32_t *positions, tfw_error *error);

/* CDEF-END */

#ifdef __cplusplus
}
#endif

#endif /* TFWIRE_PYTHON_H */
