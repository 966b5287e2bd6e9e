/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for keys: each new byte string gets the next number. */
#ifndef TFWIRE_KEYS_H
#define TFWIRE_KEYS_H

#include "base/hash.h"
#include "base/memory.h"

typedef struct tfwi_key {
    uint8_t *name;
    size_t len;
    uint64_t hash;
    uint64_t stamp; /* for the owner's use; 0 at first */
} tfwi_key;

typedef struct tfwi_keys {
    TFWI_ARRAY(tfwi_key);
    uint32_t *table; /* 1 + number, by hash; capacity is a power of two */
    size_t table_capacity;
    tfwi_seed seed; /* of the hash */
} tfwi_keys;

/* Whether a key has this name. Most names are short: a call of memcmp
 * would take longer than comparing them. */
TFWI_INLINE bool tfwi_is_named(const tfwi_key *key, const uint8_t *name, size_t len) {
    const uint8_t *known = key->name;
    if (key->len != len) {
        return false;
    }
    if (len > 16) {
        return memcmp(known, name, len) == 0;
    }
    if (len >= 8) {
        return ((tfwi_load64(known) ^ tfwi_load64(name)) |
                (tfwi_load64(known + len - 8) ^ tfwi_load64(name + len - 8))) == 0;
    }
    if (len >= 4) {
        return ((tfwi_load32(known) ^ tfwi_load32(name)) |
                (tfwi_load32(known + len - 4) ^ tfwi_load32(name + len - 4))) == 0;
    }
    return len == 0 || ((known[0] ^ name[0]) | (known[len / 2] ^ name[len / 2]) |
                        (known[len - 1] ^ name[len - 1])) == 0;
}

/* The number of a key, a new one for a new key (its name is copied). TFW_E_MEMORY, or
 * TFW_E_UNSUPPORTED when keys were made to collide, which takes the seed. */
int tfwi_keys_find(tfwi_keys *keys, const uint8_t *name, size_t len, uint32_t *out_number);

/* Forgets all keys, but not the seed, and releases their memory. */
void tfwi_keys_clear(tfwi_keys *keys);

#endif /* TFWIRE_KEYS_H */
