/* SPDX-License-Identifier: Apache-2.0 */
/* Template: blocks of varints by windows of 64 bytes. A branch per value that depends on its length
 * would be mispredicted often. So the ends of varints in a window are found at once, and values of
 * any length are put together by masks. A kernel's file includes it once, after it has defined
 *
 *     TARGET                       the function attribute that allows its instructions
 *     window_ends(p)               bit i: byte i of the 64 at p ends a varint
 *     read_window(window, ends, out, count, wide)
 *                                  the first count values of a window; returns their end. None has
 *                                  more than ten bytes or, if wide is false, eight. 16 bytes past
 *                                  the window can be read
 */
#ifndef TFWIRE_MATCH_WINDOW_H
#define TFWIRE_MATCH_WINDOW_H

#include "parse/match.h"

/* Readable bytes past a window: those of a varint that begins in its last byte, as two words. */
#define WINDOW_SLACK 16

/* Bytes that are a value each. */
TARGET TFWI_INLINE const uint8_t *widen(const uint8_t *restrict p, int64_t *restrict out,
                                        size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = p[i];
    }
    return p + count;
}

/* A tfwi_varint_reader. */
TARGET static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count) {
    uint8_t tail[TFWI_WINDOW + WINDOW_SLACK] = {0};
    size_t done = 0;
    for (size_t count; p != end && done < room; done += count) {
        const uint8_t *window = p, *next;
        size_t len = (size_t)(end - p) < TFWI_WINDOW ? (size_t)(end - p) : TFWI_WINDOW;
        if (limit - p < TFWI_WINDOW + WINDOW_SLACK) {
            window = memcpy(tail, p, len);
        }
        uint64_t beyond = ~(~UINT64_C(0) >> (TFWI_WINDOW - len));
        uint64_t ends = window_ends(window) | beyond;
        size_t left = room - done;
        count = (size_t)__builtin_popcountll(ends) - (TFWI_WINDOW - len);
        count = count < left ? count : left;
        if (ends == ~UINT64_C(0)) {
            next = widen(window, out + done, count);
        } else if (TFWI_LIKELY(!tfwi_has_eight(ends))) {
            next = read_window(window, ends, out + done, count, false);
        } else {
            if (tfwi_has_ten(ends)) {
                return NULL; /* too long */
            }
            next = read_window(window, ends, out + done, count, true);
        }
        if (count == 0) {
            return NULL; /* cut off */
        }
        p += next - window;
    }
    *out_count = done;
    return p;
}

#endif /* TFWIRE_MATCH_WINDOW_H */
