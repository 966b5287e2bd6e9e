/* SPDX-License-Identifier: Apache-2.0 */
/* Reading varints that are long, and many of them. */
#include "wire/varint.h"

const uint8_t *tfwi_read_long_varint(const uint8_t *p, const uint8_t *end, uint64_t *out_value,
                                     tfwi_fault *fault) {
    return tfwi_read_bounded_varint(p, end, TFWI_MAX_VARINT, out_value, fault);
}

const uint8_t *tfwi_read_varints(const uint8_t *p, const uint8_t *end, int64_t *out, size_t room,
                                 size_t *out_count, tfwi_fault *fault) {
    size_t count = 0;
    while (p != end && count < room) {
        uint64_t value;
        p = tfwi_read_varint(p, end, &value, fault);
        if (p == NULL) {
            return NULL;
        }
        out[count++] = (int64_t)value;
    }
    *out_count = count;
    return p;
}
