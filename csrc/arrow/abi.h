/* SPDX-License-Identifier: Apache-2.0 */
/* The Arrow C data interface and C stream interface: the structs by which libraries hand columns to
 * each other within a process, without linking to each other. Their layout is fixed:
 * https://arrow.apache.org/docs/format/CDataInterface.html
 * https://arrow.apache.org/docs/format/CStreamInterface.html
 *
 * A struct whose release is NULL holds nothing. Its last user calls release, which sets release to
 * NULL. To move a struct, copy it and set release of the old one to NULL.
 */
#ifndef TFWIRE_ABI_H
#define TFWIRE_ABI_H

#include <stdint.h>

/* The macros are those of the specification: a program may include other headers of these structs
 * beside this one. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* The type of an array, and its name. */
struct ArrowSchema {
    const char *format;   /* the type in a few letters: "l" is int64 */
    const char *name;     /* UTF-8, or NULL */
    const char *metadata; /* int32 count, then per pair int32 size, key, int32 size, value; or NULL;
                             integers in the order of the machine */
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

/* The values of an array: those from offset on, length of them. */
struct ArrowArray {
    int64_t length;
    int64_t null_count; /* -1: not known */
    int64_t offset;     /* in elements, for every buffer */
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers; /* the first is the validity bitmap, or NULL where nothing is null */
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* Arrays of one type, one after the other. The functions return 0 or an errno value. An array
 * outlives the stream that it came from. */
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out); /* the end: released */
    const char *(*get_last_error)(struct ArrowArrayStream *); /* valid until the next call */
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

#endif /* TFWIRE_ABI_H */
