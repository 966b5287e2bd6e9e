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

/* What one user of a schema leaves to the next: a struct of its own, which begins with this. */
typedef struct tfwi_kept {
    void (*end)(struct tfwi_kept *kept);
} tfwi_kept;

enum { TFWI_PLACES = 2 };

struct tfw_schema {
    atomic_size_t shares; /* its creator's, and those of pipelines: freed with the last one */
    _Atomic(tfwi_kept *) kept[TFWI_PLACES];
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

/* One share more, and back; NULL is allowed. Nothing that is read changes. */
void tfwi_schema_share(const tfw_schema *schema);
void tfwi_schema_unshare(const tfw_schema *schema);

/* What was left in a place, which is the caller's then; NULL: nothing, or there is no schema. */
tfwi_kept *tfwi_schema_take(const tfw_schema *schema, size_t place);

/* Leaves something instead of what is there, which ends. Where there is no schema, or
 * tfw_schema_free was called, it ends itself: so it may have a share. */
void tfwi_schema_keep(const tfw_schema *schema, size_t place, tfwi_kept *kept);

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
