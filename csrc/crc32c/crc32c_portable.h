/* CRC-32C on any CPU: 16 bytes at a time by table ("slicing"). Inline, for the kernel and for the
 * record scanner. */
#ifndef TFWIRE_CRC32C_PORTABLE_H
#define TFWIRE_CRC32C_PORTABLE_H

#include "crc32c/crc32c.h"
#include "crc32c/crc32c_tables.h"

#define TARGET

/* What four bytes do to the register when k more follow them. */
TFWI_INLINE uint32_t slice4(uint32_t bytes, size_t k) {
    return slices[k + 3][bytes & 0xff] ^ slices[k + 2][(bytes >> 8) & 0xff] ^
           slices[k + 1][(bytes >> 16) & 0xff] ^ slices[k][bytes >> 24];
}

/* What eight bytes do when k more follow them. */
TFWI_INLINE uint32_t slice8(uint32_t state, uint64_t bytes, size_t k) {
    return slice4(state ^ (uint32_t)bytes, k + 4) ^ slice4((uint32_t)(bytes >> 32), k);
}

TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) { return slice8(state, word, 0); }

TFWI_INLINE uint32_t crc_bytes(uint32_t state, const uint8_t *p, size_t len) {
    for (; len >= 16; p += 16, len -= 16) {
        state = slice8(state, tfwi_load64(p), 8) ^ slice8(0, tfwi_load64(p + 8), 0);
    }
    if (len >= 8) {
        state = crc_word(state, tfwi_load64(p));
        p += 8;
        len -= 8;
    }
    for (; len > 0; p++, len--) {
        state = (state >> 8) ^ slices[0][(state ^ *p) & 0xff];
    }
    return state;
}

#endif /* TFWIRE_CRC32C_PORTABLE_H */
