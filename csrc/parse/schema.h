/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a schema: the features asked for, and the index of their keys. */
#ifndef TFWIRE_SCHEMA_H
#define TFWIRE_SCHEMA_H

#include "parse/key_guess.h"

#include <stdatomic.h>

/* A slot of the hash table. */
typedef struct tfwi_slot {
    uint32_t hash;    /* the upper half; the lower half chose the slot */
    uint32_t feature; /* index + 1; 0: the slot is free */
} tfwi_slot;

struct tfw_schema {
    atomic_size_t shares; /* its creator's, and those of pipelines: freed with the last one */
    size_t count;
    tfw_feature *features; /* their pointers lead into the two blocks below */
    uint8_t *names;
    uint8_t *defaults;
    tfwi_slot *slots;
    size_t mask; /* number of slots, a power of two, less one */
    tfwi_seed seed; /* of the hash */
    tfwi_guesses guesses;
};

#define TFWI_NOT_FOUND SIZE_MAX

/* One share more, to be given back by tfw_schema_free; NULL is allowed. Nothing that is read
 * changes. */
void tfwi_schema_share(const tfw_schema *schema);

TFWI_INLINE bool tfwi_key_is(const tfw_feature *feature, const uint8_t *key, size_t len) {
    return feature->name_len == len && (len == 0 || memcmp(feature->name, key, len) == 0);
}

/* The index of the feature with this key, or TFWI_NOT_FOUND. */
size_t tfwi_schema_find(const tfw_schema *schema, const uint8_t *key, size_t len);

/* Bytes of one value of a kind; strings have no size of their own: 0. */
TFWI_INLINE size_t tfwi_value_size(int32_t kind) {
    return kind == TFW_INT64 ? sizeof(int64_t) : kind == TFW_FLOAT ? sizeof(float) : 0;
}

#endif /* TFWIRE_SCHEMA_H */
