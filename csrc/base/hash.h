/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of keys. The writer of a file chooses its keys, so the hash depends on a secret seed:
 * without knowing it, nobody can choose keys that collide. */
#ifndef TFWIRE_HASH_H
#define TFWIRE_HASH_H

#include "base/common.h"

/* The product of two words, its halves folded into one: every bit depends on all bits of both. */
TFWI_INLINE uint64_t tfwi_fold(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t half = UINT32_MAX, low = (a & half) * (b & half);
    const uint64_t mid = (a >> 32) * (b & half) + (low >> 32);
    const uint64_t other = (a & half) * (b >> 32) + (mid & half);
    const uint64_t high = (a >> 32) * (b >> 32) + (mid >> 32) + (other >> 32);
    return (other << 32 | (low & half)) ^ high;
#endif
}

/* The constants of the hash for a seed. */
typedef struct tfwi_seed {
    uint64_t a;
    uint64_t b;
} tfwi_seed;

TFWI_INLINE tfwi_seed tfwi_seed_of(uint64_t seed) {
    const uint64_t a = seed ^ UINT64_C(0x9e3779b97f4a7c15);
    return (tfwi_seed){a, tfwi_fold(a, UINT64_C(0xbf58476d1ce4e5b9))};
}

/* Products of similar keys may lie close together: this spreads them. */
TFWI_INLINE uint64_t tfwi_spread(uint64_t hash) {
    hash *= UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 32;
}

/* A hash of all bytes of a key. */
TFWI_INLINE uint64_t tfwi_hash(const tfwi_seed *seed, const uint8_t *key, size_t len) {
    uint64_t hash = seed->b + len;
    for (; len > 16; key += 16, len -= 16) {
        hash = tfwi_fold(tfwi_load64(key) ^ seed->a, tfwi_load64(key + 8) ^ hash);
    }
    if (len >= 8) { /* the two may overlap */
        hash = tfwi_fold(tfwi_load64(key) ^ seed->a, tfwi_load64(key + len - 8) ^ hash);
        return tfwi_spread(hash);
    }
    uint64_t tail = 0;
    if (len >= 4) {
        tail = (uint64_t)tfwi_load32(key) << 32 | tfwi_load32(key + len - 4);
    } else if (len > 0) {
        tail = (uint64_t)key[0] << 16 | (uint64_t)key[len / 2] << 8 | key[len - 1];
    }
    return tfwi_spread(tfwi_fold(tail ^ seed->a, hash));
}

#endif /* TFWIRE_HASH_H */
