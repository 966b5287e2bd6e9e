/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of the protobuf wire format, and groups. Nothing here knows what a message means. Fields
 * are written as TFWI_TAG, then a varint or a length and bytes. */
#ifndef TFWIRE_FIELD_H
#define TFWIRE_FIELD_H

#include "wire/varint.h"

enum tfwi_wire_type {
    TFWI_WIRE_VARINT = 0,
    TFWI_WIRE_FIXED64 = 1,
    TFWI_WIRE_LEN = 2,
    TFWI_WIRE_GROUP = 3,
    TFWI_WIRE_END_GROUP = 4,
    TFWI_WIRE_FIXED32 = 5
};

#define TFWI_MAX_TAG 5     /* bytes of a varint that is a tag or a length, as in protobuf */
#define TFWI_MAX_NESTING 100  /* groups within groups, as in protobuf */

/* A field's number and type in one number, as they are written. */
#define TFWI_TAG(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

/* A field as it lies in a message. */
typedef struct tfwi_field {
    uint32_t tag;
    uint64_t value;      /* TFWI_WIRE_VARINT */
    const uint8_t *data; /* TFWI_WIRE_FIXED64, _LEN, _FIXED32; groups: nothing is set */
    size_t len;
} tfwi_field;

/* What follows a tag that is neither one byte nor that of a string of less than 128 bytes. */
const uint8_t *tfwi_read_any_field(const uint8_t *p, const uint8_t *end, tfwi_field *out_field,
                                   tfwi_fault *fault);

/* The next field. REQUIRES: p != end. */
TFWI_INLINE const uint8_t *tfwi_read_field(const uint8_t *p, const uint8_t *end,
                                           tfwi_field *out_field, tfwi_fault *fault) {
    /* Nearly every field: number 1 to 15, a string, shorter than 128 bytes and all there. */
    if (TFWI_LIKELY(end - p >= 2 && (p[0] & 0x87) == TFWI_WIRE_LEN && p[0] > 7 && p[1] < 0x80 &&
                    p[1] <= end - p - 2)) {
        out_field->tag = p[0];
        out_field->data = p + 2;
        out_field->len = p[1];
        return p + 2 + p[1];
    }
    return tfwi_read_any_field(p, end, out_field, fault);
}

/* The next field with the tag; others are skipped. False: there are no more, and *p is end, or the
 * next field is malformed, and *p is NULL. */
TFWI_INLINE bool tfwi_find_field(const uint8_t **p, const uint8_t *end, uint32_t tag,
                                 tfwi_field *out_field, tfwi_fault *fault) {
    while (*p != end) {
        *p = tfwi_read_field(*p, end, out_field, fault);
        if (*p == NULL) {
            return false;
        }
        if (out_field->tag == tag) {
            return true;
        }
    }
    return false;
}

#endif /* TFWIRE_FIELD_H */
