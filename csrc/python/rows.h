/* SPDX-License-Identifier: Apache-2.0 */
/* The row encoder, and what it remembers of keys. */
#ifndef TFWIRE_ROWS_H
#define TFWIRE_ROWS_H

#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/keys.h"
#include "encode/numbers.h"

#define TFWI_UNKNOWN TFW_E_UNSUPPORTED /* a row that Python must encode */

/* What a value is. The types of scalars are the kinds of features. */
enum tfwi_item_type {
    TFWI_ITEM_STRING = TFW_BYTES,
    TFWI_ITEM_FLOAT = TFW_FLOAT,
    TFWI_ITEM_INT = TFW_INT64,
    TFWI_ITEM_LIST,   /* a list or tuple, or a list of lists of one length */
    TFWI_ITEM_RAW,    /* an array: the bytes of its numbers */
    TFWI_ITEM_MISSING /* None: the row does not have the feature */
};

#define TFWI_BIT(type) ((uint8_t)(1u << (type)))

typedef struct tfwi_item {
    uint8_t type;
    uint8_t kind;  /* raw: of its numbers */
    uint8_t kinds; /* list: the types of its elements, a bit for each */
    uint64_t a;    /* number: its bits; string, raw: address; list: its first element */
    uint64_t b;    /* string, raw: bytes; list: number of elements */
} tfwi_item;

/* An element of a list. Numbers: bits and type; strings: address and bytes. */
typedef struct tfwi_element {
    uint64_t a;
    uint64_t b;
} tfwi_element;

typedef struct tfwi_pair {
    uint32_t key;
    PyObject *name; /* the key's object, or NULL: held, so that no other has its address */
    tfwi_item value;
} tfwi_pair;

/* Of a key whose values may have several kinds. */
#define TFWI_ANY_KIND 0xff

/* What is remembered of a key. Prefixes, by kind less one, may be used if the key's kind is theirs,
 * or not settled. */
typedef struct tfwi_key_prefixes {
    tfwi_scalar scalars[3]; /* where the prefix is ready and has a template; else all 0 */
    tfwi_prefix of[3];
    uint32_t uses[3]; /* 0: not made yet */
    bool ready[3];    /* made, and may be used */
    uint8_t kind;     /* the one that its values have; TFW_NONE: not settled */
    bool widens;      /* ints are written as floats */
    uint64_t first;   /* the number of the row that settled the kind */
} tfwi_key_prefixes;

/* Encodes rows, and remembers their keys from call to call. For one thread at a time. */
typedef struct tfwi_rows {
    tfwi_keys keys;
    /* The row just read. Until then its pairs are those of the row before, whose keys are guesses;
     * same_keys: all of them, and no more, were right. Names are held by known pairs. */
    TFWI_ARRAY(tfwi_pair) pairs;
    size_t known;
    bool same_keys;
    TFWI_ARRAY(tfwi_element) tape; /* elements of the lists of a row */
#ifdef Py_GIL_DISABLED
    TFWI_ARRAY(PyObject *) held; /* copies of what other threads might change */
#endif
    uint8_t *scratch;              /* for the message of a single row */
    PyObject *array_type;          /* of the tuples (kind, bytes) that stand for arrays */
    TFWI_ARRAY(tfwi_key_prefixes) prefixes;  /* by key */
    TFWI_ARRAY(void *) blocks;               /* their memory */
    TFWI_ARRAY(uint32_t) order;              /* of the pairs, by name */
    TFWI_ARRAY(const tfwi_scalar *) scalars; /* of a run of numbers */
    /* Whether rows must agree in the kinds of features; the keys whose kind is settled, in order;
     * whether this call may settle more; whether those of all pairs are settled. */
    bool compares;
    bool may_settle;
    bool is_settled;
    TFWI_ARRAY(uint32_t) settled;
    uint64_t number;    /* of the row */
    PyObject *declared; /* kinds by the bytes of keys, a dict; or NULL */
    const tfwi_writer *writer;
    bool sort_keys; /* what order was made for */
    uint64_t stamp;
    size_t guess; /* bytes of the last message's length */
} tfwi_rows;

/* From this use of a key on, its template pays. */
#define TFWI_TEMPLATE_USES 4

/* The encoder of a capsule, ready for a call; NULL, with an exception. */
tfwi_rows *tfwi_rows_take(PyObject *capsule);

/* Reads a dict into r->pairs. TFWI_UNKNOWN: it holds something that only Python can encode;
 * TFW_E_MEMORY. A key may occur twice (as str and as bytes). */
int tfwi_read_row(tfwi_rows *r, PyObject *row);

#ifdef Py_GIL_DISABLED
/* Lets go of what the row was read from. */
void tfwi_release_held(tfwi_rows *r);
#endif

/* Writes the pairs as an Example. TFWI_UNKNOWN, TFW_E_MEMORY; TFW_NEED_SPACE: out is full. */
int tfwi_put_row(tfwi_rows *r, tfwi_output *out);

/* Finds the order of the pairs, whose keys are not those of the row before. TFWI_UNKNOWN: a key
 * occurs twice; TFW_E_MEMORY. */
int tfwi_rows_order(tfwi_rows *r);

/* Makes the prefix of a key and a kind at its first use, the template at a later one.
 * TFWI_OTHER_KIND, TFW_E_MEMORY. */
int tfwi_rows_prepare(tfwi_rows *r, uint32_t key, int32_t kind);

/* Gives every key a place for its prefixes. */
int tfwi_rows_make_places(tfwi_rows *r);

/* Forgets all keys. */
void tfwi_rows_forget(tfwi_rows *r);

/* The prefix for a key and a kind; NULL: tfwi_rows_prepare failed. */
TFWI_INLINE tfwi_prefix *tfwi_rows_prefix(tfwi_rows *r, uint32_t key, int32_t kind,
                                          int *out_status) {
    const bool ready = key < r->prefixes.count && r->prefixes.of[key].ready[kind - 1];
    if (TFWI_UNLIKELY(!ready) &&
        (*out_status = tfwi_rows_prepare(r, key, kind)) != TFW_OK) {
        return NULL;
    }
    return &r->prefixes.of[key].of[kind - 1];
}

/* ---- Kinds ---------------------------------------------------------------------------------- */

/* A value of another kind than its key has. */
#define TFWI_OTHER_KIND (-1000)

/* The kind of a value; of a list, that of its elements; of an empty one, that of its key, if any
 * is settled. TFW_NONE: numbers and strings are mixed. */
int32_t tfwi_kind_of(const tfwi_rows *r, const tfwi_pair *pair);

/* Settles the kinds of the pairs' keys. TFWI_UNKNOWN: a value of another kind, or this call may
 * settle none; TFW_E_MEMORY. */
int tfwi_rows_settle(tfwi_rows *r);

/* Makes a value of another kind one of its key's: ints floats, where that was asked for; NaN among
 * strings a value that is missing. TFWI_UNKNOWN, TFW_E_MEMORY. */
int tfwi_rows_fit(tfwi_rows *r, tfwi_pair *pair);

/* Forgets the kinds that were settled after the first few. */
void tfwi_rows_unsettle(tfwi_rows *r, size_t count);

#endif /* TFW_PYTHON */
#endif /* TFWIRE_ROWS_H */
