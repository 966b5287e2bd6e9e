/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path: messages of the usual shape are compared, not parsed.
 *
 * Writers produce one form: key before value, one packed list, shortest lengths. So the prefix of a
 * value, everything from the beginning of its map entry on, is known in advance but for the
 * lengths, and those are constants plus the length of the value. A template holds these bytes. What
 * does not match goes to the complete parser.
 *
 * A match proves that the complete parser would find exactly one list of the right kind, in an
 * entry that ends where the list ends. Without that proof nothing of the entry counts. So both
 * give the same answer, and tests compare them.
 */
#ifndef TFWIRE_MATCH_H
#define TFWIRE_MATCH_H

#include "wire/field.h"

typedef struct tfwi_column tfwi_column;

#define TFWI_TEMPLATE_SIZE 64 /* bytes of the longest prefix that a template can hold */

/* The most bytes that a kernel reads from the beginning of an entry without knowing where it
 * ends. */
#define TFWI_MATCH_ROOM 192

#define TFWI_WINDOW 64 /* bytes of a block of varints that kernels read at once */

/* The shape of the value after a prefix. */
enum tfwi_shape {
    TFWI_SHAPE_OTHER = 0, /* no usual shape: never matched */
    TFWI_SHAPE_FLOATS = 1,
    TFWI_SHAPE_INT64S = 2,
    TFWI_SHAPE_STRING = 3,   /* one string */
    TFWI_SHAPE_ONE_FLOAT = 4, /* one, in memory that the caller has bound: the most frequent */
    TFWI_SHAPE_ONE_INT64 = 5
};

/* Kernels read a single number by tables, without a branch on what it is: a row for each length of
 * a varint, and one for a float. */
enum { TFWI_FLOAT_ROW = TFWI_MAX_VARINT + 1, TFWI_NUMBER_ROWS };

/* What precedes the value of a feature in messages of the usual shape. */
typedef struct tfwi_template {
    uint8_t bytes[TFWI_TEMPLATE_SIZE]; /* for a value of fixed_len bytes */
    uint8_t grows[TFWI_TEMPLATE_SIZE]; /* 255 where a length stands that grows with the value's */
    uint64_t bytes_mask;             /* bit i: byte i belongs to the prefix */
    size_t fixed_len;
    uint8_t len;       /* bytes of the prefix, of which the last one is the value's length */
    uint8_t shape;     /* enum tfwi_shape */
    uint8_t max_len;   /* the longest value whose lengths all take one byte */
    uint8_t number_len; /* the longest value that is one number in memory that is bound; else 0 */
    uint8_t number_row; /* the number's row in the tables of kernels is this plus its length */
} tfwi_template;

/* How messages are matched on some CPU. p to end is a part of a message, limit the end of the
 * memory that may be read, end or later. */
typedef struct tfwi_matcher {
    const char *name;
    unsigned features; /* the TFWI_CPU_ bits that it needs */
    /* Stores entries of a Features message while they match; returns where it stopped. */
    const uint8_t *(*entries)(tfw_columns *columns, const uint8_t *p, const uint8_t *end,
                              const uint8_t *limit);
    /* Stores steps of a feature list while they match, the first as the cell with this index;
     * returns where it stopped and counts the steps. */
    const uint8_t *(*steps)(tfwi_column *column, uint64_t cell, const uint8_t *p,
                            const uint8_t *end, const uint8_t *limit);
    tfwi_varint_reader *varints;
} tfwi_matcher;

/* Matcher i of this build, best first, or NULL. */
const tfwi_matcher *tfwi_matcher_at(size_t i);

/* The best one that this CPU can run. */
const tfwi_matcher *tfwi_matcher_best(void);

#ifdef TFWI_X86
extern const tfwi_matcher tfwi_matcher_avx2;
extern const tfwi_matcher tfwi_matcher_avx512;
#endif
#ifdef TFWI_ARM64
extern const tfwi_matcher tfwi_matcher_neon;
#endif

/* ends: bit i is set if byte i of a window ends a varint. True if eight, or ten, bytes in a row do
 * not end one. If false, no varint is longer than eight, or ten, bytes. */
TFWI_INLINE bool tfwi_has_eight(uint64_t ends) {
    uint64_t two = ~ends & ~ends >> 1, four = two & two >> 2;
    return (four & four >> 4) != 0;
}

TFWI_INLINE bool tfwi_has_ten(uint64_t ends) {
    uint64_t two = ~ends & ~ends >> 1, four = two & two >> 2;
    return (four & four >> 4 & two >> 8) != 0;
}

/* The last bytes of a message, copied to where kernels have the room after them that they want. */
typedef struct tfwi_tail {
    const uint8_t *begin;
    const uint8_t *end;
    const uint8_t *limit;
} tfwi_tail;

/* REQUIRES: there are at most TFWI_MATCH_ROOM of them. */
TFWI_INLINE tfwi_tail tfwi_tail_of(uint8_t room[2 * TFWI_MATCH_ROOM], const uint8_t *p,
                                   const uint8_t *end) {
    memcpy(room, p, (size_t)(end - p));
    return (tfwi_tail){room, room + (end - p), room + 2 * TFWI_MATCH_ROOM};
}

/* The template of a feature's map entries, or of the steps of its list. */
void tfwi_template_init(tfwi_template *out_template, const tfw_feature *feature, bool list);

/* A template that no entry matches. */
void tfwi_template_init_none(tfwi_template *out_template);

#endif /* TFWIRE_MATCH_H */
