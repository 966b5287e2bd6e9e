/* SPDX-License-Identifier: Apache-2.0 */
/* Python's rows from a stream of pickle or marshal: names and values, without Python objects.
 *
 * pickle.dumps is the fastest way to hand over many Python objects: 40 ns for an item of a dict.
 * For dicts of plain values it uses few opcodes. The usual row is read straight through
 * (pickle_usual.c); any other is read again from its beginning by a stack machine like pickle's own
 * (pickle_machine.c). Rows that the machine does not know are encoded in Python. marshal takes a
 * third less time, but does not distinguish bytes from other objects with a buffer, so it is used
 * for rows of numbers and text only (marshal_rows.c).
 *
 * The stream is not trusted: every length is checked against the bytes present, every reference
 * against the memo. */
#ifndef TFWIRE_UNPICKLER_H
#define TFWIRE_UNPICKLER_H

#include "tfwire_python.h"

#include "base/keys.h"
#include "python/opcodes.h"

#define TFWI_UNKNOWN TFW_E_UNSUPPORTED /* a row that Python must encode */
#define TFWI_UNUSUAL 100               /* a row for the machine; no value of enum tfw_status */

#define TFWI_PICKLE_FRAME_SIZE 9 /* the opcode, and a length that is not needed here */

/* What a value is. The types of scalars are the kinds of features. */
enum tfwi_item_type {
    TFWI_ITEM_STRING = TFW_BYTES,
    TFWI_ITEM_FLOAT = TFW_FLOAT,
    TFWI_ITEM_INT = TFW_INT64,
    TFWI_ITEM_LIST,    /* a list or tuple */
    TFWI_ITEM_RAW,     /* an array: the bytes of its numbers */
    TFWI_ITEM_MISSING, /* None, for a value: the row does not have the feature */
    TFWI_ITEM_NATIVE,  /* on the stack only: the marker that REDUCE applies */
    TFWI_ITEM_ROW      /* in the memo only: a dict */
};

#define TFWI_BIT(type) ((uint8_t)(1u << (type)))

typedef struct tfwi_item {
    uint8_t type;
    uint8_t kind;   /* raw: of its numbers */
    uint8_t kinds;  /* list: the types of its elements, a bit for each */
    uint8_t rank;   /* list: 1, or 2 for a list of lists; 0: still empty */
    uint32_t memo;  /* 1 + its index in the memo; 0: not there */
    uint64_t a;     /* number (bits); string, raw: offset in the stream; list: first element */
    uint64_t b;     /* string, raw: bytes; list: number of elements */
    uint64_t at;    /* where its opcodes begin */
    uint64_t inner; /* list of lists: elements of each */
} tfwi_item;

/* An element of a list. Numbers: bits and type; strings: offset and bytes. */
typedef struct tfwi_element {
    uint64_t a;
    uint64_t b;
} tfwi_element;

/* What MEMOIZE keeps. Lists and rows are run again from their opcodes [a, b). */
typedef struct tfwi_memo {
    uint8_t type; /* 0: nothing that can be referred to */
    uint8_t kind;
    uint32_t key; /* string: 1 + number of the key that it was found to be */
    uint64_t a;
    uint64_t b;
} tfwi_memo;

typedef struct tfwi_pair {
    uint32_t key;
    tfwi_item value;
} tfwi_pair;

typedef struct tfwi_mark {
    size_t items; /* on the stack below it */
    size_t at;    /* where its opcode stands */
} tfwi_mark;

#define TFWI_MAX_MARKS 8

typedef struct tfwi_unpickler {
    const uint8_t *stream;
    size_t len;
    size_t at;
    size_t end;       /* of what is being run */
    bool is_marshal;
    uint64_t rows_left; /* marshal: items that its list still holds */
    unsigned replays; /* memoised opcodes that are being run again; these are not memoised again */
    size_t mark_count;
    tfwi_mark marks[TFWI_MAX_MARKS];
    TFWI_ARRAY(tfwi_item) items;   /* the stack */
    TFWI_ARRAY(tfwi_element) tape; /* elements of the lists of a row */
    TFWI_ARRAY(tfwi_memo) memos;
    tfwi_keys keys;
    /* The row just read. Until then its pairs are those of the row before, whose keys are guesses;
     * same_keys: all of them, and no more, were right. */
    TFWI_ARRAY(tfwi_pair) pairs;
    bool same_keys;
} tfwi_unpickler;

/* ---- Reading rows --------------------------------------------------------------------------- */

/* Begins a stream. Keys and the last row are still remembered. */
void tfwi_unpickle_begin(tfwi_unpickler *u, const uint8_t *stream, size_t len);

/* Reads the next row into u->pairs. TFW_END: there are no more; TFWI_UNKNOWN: it holds something
 * that only Python can encode; TFW_E_MEMORY. A key may occur twice (as str and as bytes). */
int tfwi_unpickle_row(tfwi_unpickler *u);

/* Forgets everything and releases the memory. */
void tfwi_unpickle_clear(tfwi_unpickler *u);

/* ---- The ways of reading a row, for pickle_rows.c ------------------------------------------- */

/* marshal_rows.c: tfwi_unpickle_row for a stream of marshal. */
int tfwi_unmarshal_row(tfwi_unpickler *u);

/* pickle_usual.c: reads a row from after its EMPTY_DICT and MEMOIZE to after the SETITEMS of its
 * first items. TFWI_UNUSUAL: the machine must read it. */
int tfwi_read_usual_row(tfwi_unpickler *u);

/* pickle_machine.c: runs the opcode at u->at. */
int tfwi_run(tfwi_unpickler *u);

/* ---- For all of these: keys (pickle_keys.c), the stream, the memo --------------------------- */

/* The number of a string as a key; the guess is compared first. Text with surrogates is
 * TFWI_UNKNOWN, even if the same bytes are a known key. */
int tfwi_guess_key(tfwi_unpickler *u, const tfwi_item *name, bool is_text, uint32_t guess,
                   uint32_t *out_key);

/* The number of a string as a key. */
int tfwi_find_key(tfwi_unpickler *u, const tfwi_item *string, uint32_t *out_key);

TFWI_INLINE bool tfwi_has(const tfwi_unpickler *u, uint64_t bytes) {
    return u->end - u->at >= bytes;
}

/* The little-endian integer of size 0..8 at u->at, present in the stream. */
TFWI_INLINE uint64_t tfwi_load_sized(const tfwi_unpickler *u, size_t size) {
    if (TFWI_LIKELY(u->len - u->at >= 8)) {
        uint64_t v = tfwi_load64(u->stream + u->at);
        return size == 0 ? 0 : v & (~UINT64_C(0) >> (64 - 8 * size));
    }
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)u->stream[u->at + i] << (8 * i);
    }
    return v;
}

/* The same number with the sign of its highest byte. */
TFWI_INLINE uint64_t tfwi_extend_sign(uint64_t v, size_t size) {
    uint64_t sign = size == 0 ? 0 : UINT64_C(1) << (8 * size - 1);
    return (v ^ sign) - sign;
}

TFWI_INLINE int tfwi_memoize(tfwi_unpickler *u, tfwi_memo memo) {
    if (!TFWI_RESERVE_MORE(u->memos, 1)) {
        return TFW_E_MEMORY;
    }
    u->memos.of[u->memos.count++] = memo;
    return u->memos.count > UINT32_MAX - 1 ? TFWI_UNKNOWN : TFW_OK;
}

#endif /* TFWIRE_UNPICKLER_H */
