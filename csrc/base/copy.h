/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of short byte strings of unpredictable lengths.
 *
 * memcpy branches on the length, and a mispredicted branch costs more than the copy itself. Where
 * both sides have room after the string, a fixed number of bytes is copied instead, and the next
 * string overwrites the excess.
 */
#ifndef TFWIRE_COPY_H
#define TFWIRE_COPY_H

#include "base/common.h"

enum { TFWI_COPY_SLACK = 256 /* bytes that tfwi_copy may touch after a string, on both sides */ };

/* Copies len bytes. roomy: from + TFWI_COPY_SLACK may be read, out + TFWI_COPY_SLACK written. */
TFWI_INLINE void tfwi_copy(uint8_t *out, const uint8_t *from, size_t len, bool roomy) {
    if (TFWI_UNLIKELY(!roomy || len > TFWI_COPY_SLACK)) {
        if (len != 0) { /* from may be NULL */
            memcpy(out, from, len);
        }
    } else if (len <= TFWI_COPY_SLACK / 2) {
        memcpy(out, from, TFWI_COPY_SLACK / 2);
    } else {
        memcpy(out, from, TFWI_COPY_SLACK);
    }
}

#endif /* TFWIRE_COPY_H */
