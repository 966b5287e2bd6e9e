/* Keys by number: every byte string that has been seen gets the next one. */
#ifndef TFWIRE_KEYS_H
#define TFWIRE_KEYS_H

#include "base/common.h"

typedef struct tfwi_key {
    uint8_t *name;
    size_t len;
    uint64_t hash;
    uint64_t stamp; /* for the owner's use; 0 at first */
} tfwi_key;

typedef struct tfwi_keys {
    tfwi_key *of;
    size_t count;
    size_t capacity;
    uint32_t *table; /* 1 + number, by hash; capacity is a power of two */
    size_t table_capacity;
} tfwi_keys;

/* The number of a key, a new one for a new key (its name is copied). TFW_E_MEMORY, or
 * TFW_E_UNSUPPORTED when keys are made to collide. */
int tfwi_keys_find(tfwi_keys *keys, const uint8_t *name, size_t len, uint32_t *out_number);

/* Forgets all keys and releases their memory. */
void tfwi_keys_clear(tfwi_keys *keys);

#endif /* TFWIRE_KEYS_H */
