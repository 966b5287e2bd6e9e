/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the fields that are rare, and groups. */
#include "wire/field.h"

/* A varint that is a tag or a length. */
static const uint8_t *read_short_varint(const uint8_t *p, const uint8_t *end, uint64_t *out_value,
                                        tfwi_fault *fault) {
    return tfwi_read_bounded_varint(p, end, TFWI_MAX_TAG, out_value, fault);
}

static const uint8_t *read_tag(const uint8_t *p, const uint8_t *end, tfwi_field *out_field,
                               tfwi_fault *fault) {
    uint64_t tag = 0;
    const uint8_t *next = read_short_varint(p, end, &tag, fault);
    if (next == NULL) {
        return NULL;
    }
    if (tag > UINT32_MAX || tag < 8) {
        return tfwi_note_malformed(fault, p, "not a field number");
    }
    out_field->tag = (uint32_t)tag;
    return next;
}

/* len bytes at p; at is where the field states its length. */
static const uint8_t *take_bytes(const uint8_t *p, const uint8_t *end, uint64_t len,
                                 tfwi_field *field, const uint8_t *at, tfwi_fault *fault) {
    if (len > (uint64_t)(end - p)) {
        return tfwi_note_malformed(fault, at, "a field exceeds its message");
    }
    field->data = p;
    field->len = (size_t)len;
    return p + len;
}

/* The payload of a field that is not a group. */
static const uint8_t *read_payload(const uint8_t *p, const uint8_t *end, tfwi_field *field,
                                   tfwi_fault *fault) {
    const uint8_t *at = p;
    uint64_t len = 0;
    switch (field->tag & 7) {
    case TFWI_WIRE_VARINT: return tfwi_read_varint(p, end, &field->value, fault);
    case TFWI_WIRE_FIXED64: return take_bytes(p, end, 8, field, at, fault);
    case TFWI_WIRE_FIXED32: return take_bytes(p, end, 4, field, at, fault);
    case TFWI_WIRE_LEN:
        p = read_short_varint(p, end, &len, fault);
        return p == NULL ? NULL : take_bytes(p, end, len, field, at, fault);
    case TFWI_WIRE_END_GROUP:
        return tfwi_note_malformed(fault, p, "a group ends without a beginning");
    default: return tfwi_note_malformed(fault, p, "not a wire type");
    }
}

/* Skips a group; returns its end. The open groups are a list, not calls: nesting costs no stack. */
static const uint8_t *skip_group(const uint8_t *p, const uint8_t *end, uint32_t first,
                                 tfwi_fault *fault) {
    uint32_t open[TFWI_MAX_NESTING];
    size_t depth = 0;
    open[depth++] = first;
    while (depth > 0) {
        const uint8_t *at = p;
        tfwi_field field;
        p = p == end ? tfwi_note_malformed(fault, at, "ends inside a group")
                     : read_tag(p, end, &field, fault);
        if (p == NULL) {
            return NULL;
        }
        uint32_t number = field.tag >> 3, type = field.tag & 7;
        if (type == TFWI_WIRE_GROUP) {
            if (depth == TFWI_MAX_NESTING) {
                return tfwi_note_malformed(fault, at, "groups nest too deep");
            }
            open[depth++] = number;
        } else if (type == TFWI_WIRE_END_GROUP) {
            if (open[--depth] != number) {
                return tfwi_note_malformed(fault, at, "a group ends as another");
            }
        } else if ((p = read_payload(p, end, &field, fault)) == NULL) {
            return NULL;
        }
    }
    return p;
}

const uint8_t *tfwi_read_any_field(const uint8_t *p, const uint8_t *end, tfwi_field *out_field,
                                   tfwi_fault *fault) {
    p = read_tag(p, end, out_field, fault);
    if (p == NULL) {
        return NULL;
    }
    if ((out_field->tag & 7) == TFWI_WIRE_GROUP) {
        return skip_group(p, end, out_field->tag >> 3, fault);
    }
    return read_payload(p, end, out_field, fault);
}
