/* The hash by which keys are found. */
#ifndef TFWIRE_HASH_H
#define TFWIRE_HASH_H

#include "base/common.h"

/* A product carries differences upwards only; the shift brings them down again. */
TFWI_INLINE uint64_t tfwi_mix(uint64_t v) {
    v *= UINT64_C(0x9e3779b97f4a7c15);
    return v ^ (v >> 32);
}

/* A hash of all bytes of a key. */
TFWI_INLINE uint64_t tfwi_hash(const uint8_t *key, size_t len) {
    uint64_t hash = len;
    for (; len >= 8; key += 8, len -= 8) {
        hash = tfwi_mix(hash ^ tfwi_load64(key));
    }
    uint64_t tail = 0;
    if (len >= 4) {
        tail = (uint64_t)tfwi_load32(key) << 32 | tfwi_load32(key + len - 4);
    } else if (len > 0) {
        tail = (uint64_t)key[0] << 16 | (uint64_t)key[len / 2] << 8 | key[len - 1];
    }
    return tfwi_mix(tfwi_mix(hash ^ tail));
}

#endif /* TFWIRE_HASH_H */
