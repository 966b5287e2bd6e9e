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

/* Whether eight bytes in a row of a window do not end a varint. */
TARGET TFWI_INLINE bool has_wide(uint64_t ends) {
    uint64_t two = ~ends & ~ends >> 1, four = two & two >> 2;
    return (four & four >> 4) != 0;
}

/* Values of at most eight bytes. */
TARGET TFWI_INLINE int64_t *read_narrow(uint64_t ends, const uint8_t *window, const uint8_t **p,
                                        int64_t *out, const int64_t *full) {
    const uint8_t *at = *p;
    for (; ends != 0 && out != full; ends &= ends - 1) {
        const uint8_t *next = window + lowest_bit(ends) + 1;
        *out++ = (int64_t)gather(tfwi_load64(at), low_bits[next - at]);
        at = next;
    }
    *p = at;
    return out;
}

/* Values of any length; NULL when one has more than ten bytes. */
TARGET TFWI_INLINE int64_t *read_wide(uint64_t ends, const uint8_t *window, const uint8_t **p,
                                      int64_t *out, const int64_t *full) {
    const uint8_t *at = *p;
    for (; ends != 0 && out != full; ends &= ends - 1) {
        const uint8_t *next = window + lowest_bit(ends) + 1;
        size_t len = (size_t)(next - at);
        if (len > 10) {
            return NULL;
        }
        uint64_t low = gather(tfwi_load64(at), low_bits[len]);
        uint64_t high = gather(tfwi_load64(at + 8), high_bits[len]);
        *out++ = (int64_t)(low | high << 56);
        at = next;
    }
    *p = at;
    return out;
}

/* A tfwi_varint_reader. */
TARGET static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count) {
    int64_t *const first = out;
    const int64_t *const full = out + room;
    while (p != end && out != full) {
        const uint8_t *window = p;
        if (limit - p < WINDOW + WINDOW_SLACK) {
            return NULL;
        }
        uint64_t ends = window_ends(p);
        if (end - p < WINDOW) {
            ends &= (UINT64_C(1) << (end - p)) - 1;
        }
        out = has_wide(ends) ? read_wide(ends, window, &p, out, full)
                             : read_narrow(ends, window, &p, out, full);
        if (out == NULL || p == window) {
            return NULL; /* too long, or cut off */
        }
    }
    *out_count = (size_t)(out - first);
    return p;
}

#endif /* TFWIRE_VARINT_WINDOW_H */
