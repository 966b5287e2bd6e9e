/* Reading varints that are long, and many of them. */
#include "wire/varint.h"

const uint8_t *tfwi_read_long_varint(const uint8_t *p, const uint8_t *end, size_t max_len,
                                     uint64_t *out_value, tfwi_fault *fault) {
    size_t present = (size_t)(end - p);
    size_t limit = present < max_len ? present : max_len;
    uint64_t value = 0;
    for (size_t i = 0; i < limit; i++) {
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *out_value = value;
            return p + i + 1;
        }
    }
    return tfwi_malformed(fault, p,
                          limit == max_len ? "a varint is too long" : "ends inside a varint");
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
