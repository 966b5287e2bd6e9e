/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, as Python and Arrow have it. */
#ifndef TFWIRE_UTF8_H
#define TFWIRE_UTF8_H

#include "base/common.h"

TFWI_INLINE bool tfwi_utf8_continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/* The bytes of a character, by its first one. */
TFWI_INLINE size_t tfwi_utf8_size(uint8_t first) {
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

/* The bytes of the character at p, of which len can be read, one or more; 0: not a valid one. By
 * table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
TFWI_INLINE size_t tfwi_utf8_check(const uint8_t *p, size_t len) {
    const uint8_t first = p[0];
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4 || len < 2 || !tfwi_utf8_continues(p[1])) {
        return 0;
    }
    if (first < 0xe0) {
        return 2;
    }
    if (len < 3 || !tfwi_utf8_continues(p[2]) || (first == 0xe0 && p[1] < 0xa0) ||
        (first == 0xed && p[1] > 0x9f)) {
        return 0;
    }
    if (first < 0xf0) {
        return 3;
    }
    bool good = len >= 4 && tfwi_utf8_continues(p[3]) && !(first == 0xf0 && p[1] < 0x90) &&
                !(first == 0xf4 && p[1] > 0x8f);
    return good ? 4 : 0;
}

/* Whether all of a text is valid. */
TFWI_INLINE bool tfwi_is_utf8(const uint8_t *p, size_t len) {
    size_t i = 0;
    while (i < len) {
        if (len - i >= 8 && (tfwi_load64(p + i) & UINT64_C(0x8080808080808080)) == 0) {
            i += 8;
            continue;
        }
        size_t size = tfwi_utf8_check(p + i, len - i);
        if (size == 0) {
            return false;
        }
        i += size;
    }
    return true;
}

#endif /* TFWIRE_UTF8_H */
