/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by number: a hash table with open addressing. */
#include "base/keys.h"

#define MAX_PROBES 64 /* only keys that were chosen to collide need more */

/* Doubles the table. */
static int rehash(tfwi_keys *keys) {
    size_t capacity = keys->table_capacity != 0 ? 2 * keys->table_capacity : 64;
    uint32_t *table = tfwi_calloc(capacity, sizeof *table);
    if (table == NULL) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < keys->count; i++) {
        size_t slot = (size_t)keys->of[i].hash & (capacity - 1);
        while (table[slot] != 0) {
            slot = (slot + 1) & (capacity - 1);
        }
        table[slot] = (uint32_t)i + 1;
    }
    tfw_free(keys->table);
    keys->table = table;
    keys->table_capacity = capacity;
    return TFW_OK;
}

static int add(tfwi_keys *keys, const uint8_t *name, size_t len, uint64_t hash) {
    if (keys->count >= INT32_MAX) {
        return TFW_E_UNSUPPORTED;
    }
    if (!TFWI_RESERVE_MORE(*keys, 1)) {
        return TFW_E_MEMORY;
    }
    uint8_t *copy = tfwi_realloc(NULL, len);
    if (copy == NULL) {
        return TFW_E_MEMORY;
    }
    if (len != 0) {
        memcpy(copy, name, len);
    }
    keys->of[keys->count++] = (tfwi_key){.name = copy, .len = len, .hash = hash};
    return TFW_OK;
}

int tfwi_keys_find(tfwi_keys *keys, const uint8_t *name, size_t len, uint32_t *out_number) {
    if (2 * keys->count >= keys->table_capacity && rehash(keys) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    uint64_t hash = tfwi_hash(&keys->seed, name, len);
    size_t mask = keys->table_capacity - 1;
    for (size_t i = 0; i < MAX_PROBES; i++) {
        uint32_t *slot = &keys->table[(size_t)(hash + i) & mask];
        if (*slot == 0) {
            int status = add(keys, name, len, hash);
            *slot = status == TFW_OK ? (uint32_t)keys->count : 0;
            *out_number = *slot - 1;
            return status;
        }
        const tfwi_key *key = &keys->of[*slot - 1];
        if (key->hash == hash && tfwi_is_named(key, name, len)) {
            *out_number = *slot - 1;
            return TFW_OK;
        }
    }
    return TFW_E_UNSUPPORTED;
}

void tfwi_keys_clear(tfwi_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        tfw_free(keys->of[i].name);
    }
    tfw_free(keys->of);
    tfw_free(keys->table);
    *keys = (tfwi_keys){.seed = keys->seed};
}
