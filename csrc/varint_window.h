/* Template: blocks of varints by windows of 64 bytes. A kernel's file includes it once, after it
 * has defined
 *
 *     TARGET                  the function attribute that allows its instructions
 *     window_ends(p)          bit i: byte i of the 64 at p ends a varint
 *     gather(word, mask)      the bits of word that mask selects, side by side
 *
 * A branch per value that asks for its length would be mispredicted again and again. So the ends
 * of a window are found at once, and each value is put together from ten bytes by masks, whatever
 * its length.
 */
#ifndef TFWIRE_VARINT_WINDOW_H
#define TFWIRE_VARINT_WINDOW_H

#include "common.h"

#define WINDOW 64

/* Readable bytes behind a window: those of a varint that begins in its last byte, as two words. */
#define WINDOW_SLACK 16

/* The bits that a varint of n bytes has: among its first eight bytes, and in the two behind. */
static const uint64_t low_bits[11] = {
    0,
    UINT64_C(0x7f),
    UINT64_C(0x7f7f),
    UINT64_C(0x7f7f7f),
    UINT64_C(0x7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f7f7f7f),
    UINT64_C(0x7f7f7f7f7f7f7f7f),
};
static const uint64_t high_bits[11] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0x17f};

/* The varint of len bytes at p, of which 16 can be read. */
TARGET TFWI_INLINE int64_t window_value(const uint8_t *p, size_t len) {
    uint64_t low = gather(tfwi_load64(p), low_bits[len]);
    uint64_t high = gather(tfwi_load64(p + 8), high_bits[len]);
    return (int64_t)(low | high << 56);
}

/* As tfwi_read_varints, but NULL without a note at what is malformed, and at what ends so near to
 * limit that a window cannot be read. */
TARGET static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count) {
    int64_t *const first = out;
    const int64_t *const full = out + room;
    while (p != end && out != full) {
        if (limit - p < WINDOW + WINDOW_SLACK) {
            return NULL;
        }
        uint64_t ends = window_ends(p);
        size_t left = (size_t)(end - p);
        if (left < WINDOW) {
            ends &= (UINT64_C(1) << left) - 1;
        }
        const uint8_t *window = p;
        for (; ends != 0 && out != full; ends &= ends - 1) {
            const uint8_t *next = window + lowest_bit(ends) + 1;
            size_t len = (size_t)(next - p);
            if (len > 10) {
                return NULL;
            }
            *out++ = window_value(p, len);
            p = next;
        }
        if (p == window) {
            return NULL; /* no varint ends here */
        }
    }
    *out_count = (size_t)(out - first);
    return p;
}

#endif /* TFWIRE_VARINT_WINDOW_H */
