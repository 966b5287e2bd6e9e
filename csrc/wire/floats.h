/* SPDX-License-Identifier: Apache-2.0 */
/* Packed floats, read and written: little-endian on the wire, of any alignment. */
#ifndef TFWIRE_FLOATS_H
#define TFWIRE_FLOATS_H

#include "base/common.h"

/* To floats of this machine, bit by bit. */
TFWI_INLINE void tfwi_load_floats(void *out, const uint8_t *block, size_t count) {
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = tfwi_load32(block + 4 * i);
        memcpy((uint8_t *)out + 4 * i, &bits, sizeof bits);
    }
#else
    if (count != 0) {
        memcpy(out, block, 4 * count);
    }
#endif
}

/* The inverse, of one or more floats. */
TFWI_INLINE void tfwi_store_floats(uint8_t *block, const void *values, size_t count) {
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)values + 4 * i, sizeof bits);
        tfwi_store32(block + 4 * i, bits);
    }
#else
    memcpy(block, values, 4 * count);
#endif
}

#endif /* TFWIRE_FLOATS_H */
