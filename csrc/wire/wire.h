/* The protobuf wire format: varints, fields, groups. Nothing here knows what a message means.
 *
 * Readers take the bytes [p, end), return where they stopped, and return NULL when the bytes are
 * not well-formed, with the place and the reason in the fault.
 */
#ifndef TFWIRE_WIRE_H
#define TFWIRE_WIRE_H

#include "wire/varint.h"

/* Why a walk over a message was given up. */
typedef struct tfwi_fault {
    int status;
    const uint8_t *at; /* TFW_E_WIRE: the byte at which the bad part begins */
    const char *text;
} tfwi_fault;

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

/* Notes a malformed message; returns NULL, for readers to return. */
const uint8_t *tfwi_malformed(tfwi_fault *fault, const uint8_t *at, const char *text);

/* Notes that memory is short; returns false. */
bool tfwi_out_of_memory(tfwi_fault *fault);

/* A varint of any length up to max_len bytes; bits above the 64th are dropped. */
const uint8_t *tfwi_read_long_varint(const uint8_t *p, const uint8_t *end, size_t max_len,
                                     uint64_t *out_value, tfwi_fault *fault);

/* What follows a tag that is neither one byte nor that of a string of less than 128 bytes. */
const uint8_t *tfwi_read_any_field(const uint8_t *p, const uint8_t *end, tfwi_field *out_field,
                                   tfwi_fault *fault);

TFWI_INLINE const uint8_t *tfwi_read_varint(const uint8_t *p, const uint8_t *end,
                                            uint64_t *out_value, tfwi_fault *fault) {
    if (TFWI_LIKELY(p != end && *p < 0x80)) {
        *out_value = *p;
        return p + 1;
    }
    return tfwi_read_long_varint(p, end, TFWI_MAX_VARINT, out_value, fault);
}

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

/* Little-endian floats to floats of this machine, bit by bit; out may have any alignment. */
TFWI_INLINE void tfwi_copy_floats(void *out, const uint8_t *block, size_t count) {
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = tfwi_load32(block + 4 * i);
        memcpy((uint8_t *)out + 4 * i, &bits, sizeof bits);
    }
#else
    if (count != 0) {
        memcpy(out, block, 4 * count);
    }
#endif
}

/* The inverse: count, one or more, floats of this machine at any address. */
TFWI_INLINE void tfwi_store_floats(uint8_t *block, const void *values, size_t count) {
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)values + 4 * i, sizeof bits);
        tfwi_store32(block + 4 * i, bits);
    }
#else
    memcpy(block, values, 4 * count);
#endif
}

/* Values for which memory is reserved at a time: a packed block of n bytes holds between n / 10 and
 * n values. */
#define TFWI_VARINTS_AT_ONCE 512

/* Reads varints of [p, end) into out, up to end and at most room of them; returns where it stopped,
 * and how many it wrote. */
const uint8_t *tfwi_read_varints(const uint8_t *p, const uint8_t *end, int64_t *out, size_t room,
                                 size_t *out_count, tfwi_fault *fault);

/* The same, faster: reads beyond end, but not beyond limit. Returns NULL when it cannot, without
 * a fault: tfwi_read_varints then finds the reason, or succeeds. */
typedef const uint8_t *tfwi_varint_reader(const uint8_t *p, const uint8_t *end,
                                          const uint8_t *limit, int64_t *out, size_t room,
                                          size_t *out_count);

/* How packed blocks are read. */
typedef struct tfwi_blocks {
    tfwi_varint_reader *varints; /* may be NULL */
    const uint8_t *limit;        /* the end of the memory that may be read */
} tfwi_blocks;

TFWI_INLINE const uint8_t *tfwi_read_block(const tfwi_blocks *blocks, const uint8_t *p,
                                           const uint8_t *end, int64_t *out, size_t room,
                                           size_t *out_count, tfwi_fault *fault) {
    if (blocks->varints != NULL) {
        const uint8_t *next = blocks->varints(p, end, blocks->limit, out, room, out_count);
        if (TFWI_LIKELY(next != NULL)) {
            return next;
        }
    }
    return tfwi_read_varints(p, end, out, room, out_count, fault);
}

#endif /* TFWIRE_WIRE_H */
