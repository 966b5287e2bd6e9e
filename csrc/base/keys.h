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
    bool no_text;   /* it has surrogates: only bytes, never text, can be this key */
} tfwi_key;

typedef struct tfwi_keys {
    TFWI_ARRAY(tfwi_key);
    uint32_t *table; /* 1 + number, by hash; capacity is a power of two */
    size_t table_capacity;
    tfwi_seed seed; /* of the hash */
} tfwi_keys;

/* Whether text has lone surrogates, which pickle writes and UTF-8 does not have. */
bool tfwi_has_surrogates(const uint8_t *text, size_t len);

/* The number of a key, a new one for a new key (its name is copied). TFW_E_MEMORY, or
 * TFW_E_UNSUPPORTED when keys were made to collide, which takes the seed. */
int tfwi_keys_find(tfwi_keys *keys, const uint8_t *name, size_t len, uint32_t *out_number);

/* Forgets all keys, but not the seed, and releases their memory. */
void tfwi_keys_clear(tfwi_keys *keys);

#endif /* TFWIRE_KEYS_H */
