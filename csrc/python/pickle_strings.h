/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles (protocol 5), written opcode by opcode: bytes of a message only ever become the payload
 * of counted strings. Functions return false when out of memory. */
#ifndef TFWIRE_PICKLE_STRINGS_H
#define TFWIRE_PICKLE_STRINGS_H

#include "tfwire_python.h"

#include "base/memory.h"
#include "python/opcodes.h"

/* Room for size more bytes, or NULL. */
TFWI_INLINE uint8_t *tfwi_bytes_room(tfwi_bytes *bytes, size_t size) {
    return TFWI_RESERVE_MORE(*bytes, size) ? bytes->of + bytes->count : NULL;
}

/* A key that the unpickler remembers. */
typedef struct tfwi_memo_key {
    uint64_t hash;
    size_t offset; /* of the key in the pickle */
    size_t len;
    size_t number; /* in the unpickler's memo, plus 1; 0: the slot is free */
    size_t next;   /* the slot of the key that came next the last time */
} tfwi_memo_key;

typedef struct tfwi_pickle {
    tfwi_bytes stream;
    tfwi_memo_key *memo; /* a hash table of the keys */
    size_t memo_mask;
    size_t memo_count;
    size_t last; /* the slot of the last key */
} tfwi_pickle;

TFWI_INLINE bool tfwi_pickle_opcodes(tfwi_pickle *pickle, const uint8_t *opcodes, size_t count) {
    if (!TFWI_RESERVE_MORE(pickle->stream, count)) {
        return false;
    }
    memcpy(pickle->stream.of + pickle->stream.count, opcodes, count);
    pickle->stream.count += count;
    return true;
}

#define TFWI_PICKLE(pickle, ...)                                 \
    tfwi_pickle_opcodes(pickle, (const uint8_t[]){__VA_ARGS__}, \
                        sizeof((const uint8_t[]){__VA_ARGS__}))

bool tfwi_pickle_bytes(tfwi_pickle *pickle, const uint8_t *data, size_t len);

/* A str, in full when it is new, else as a reference; bytes that are not UTF-8 are escaped as
 * surrogateescape does. */
bool tfwi_pickle_key(tfwi_pickle *pickle, const uint8_t *key, size_t len);

#endif /* TFWIRE_PICKLE_STRINGS_H */
