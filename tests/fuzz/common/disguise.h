/* SPDX-License-Identifier: Apache-2.0 */
/* Another encoding of the same message: whatever protobuf allows a writer to do that writers do
 * not do. A parser must not tell the two apart, and no fast path recognises the second, so this
 * compares fast paths with the complete parser. */
#ifndef TFWIRE_TESTS_FUZZ_DISGUISE_H
#define TFWIRE_TESTS_FUZZ_DISGUISE_H

#include "fuzz.h"

#include "wire/field.h"

/* What to do; bits. */
enum disguise {
    DISGUISE_TAGS = 1,    /* five bytes long */
    DISGUISE_LENGTHS = 2, /* five bytes long */
    DISGUISE_UNKNOWN = 4, /* a field that nobody knows before every field */
    DISGUISE_UNPACKED = 8 /* every number a field of its own */
};

/* Messages by what they hold. */
enum level {
    LEVEL_OPAQUE, /* strings, and what is unknown */
    LEVEL_EXAMPLE,
    LEVEL_SEQUENCE,
    LEVEL_FEATURES,
    LEVEL_FEATURE_ENTRY,
    LEVEL_LISTS,
    LEVEL_LIST_ENTRY,
    LEVEL_LIST,
    LEVEL_FEATURE,
    LEVEL_STRINGS,
    LEVEL_FLOATS,
    LEVEL_INTS,
    LEVEL_COUNT
};

static inline enum level level_inside(enum level level, uint32_t number) {
    static const uint8_t inside[LEVEL_COUNT][4] = {
        [LEVEL_EXAMPLE] = {[1] = LEVEL_FEATURES},
        [LEVEL_SEQUENCE] = {[1] = LEVEL_FEATURES, [2] = LEVEL_LISTS},
        [LEVEL_FEATURES] = {[1] = LEVEL_FEATURE_ENTRY},
        [LEVEL_FEATURE_ENTRY] = {[2] = LEVEL_FEATURE},
        [LEVEL_LISTS] = {[1] = LEVEL_LIST_ENTRY},
        [LEVEL_LIST_ENTRY] = {[2] = LEVEL_LIST},
        [LEVEL_LIST] = {[1] = LEVEL_FEATURE},
        [LEVEL_FEATURE] = {[1] = LEVEL_STRINGS, [2] = LEVEL_FLOATS, [3] = LEVEL_INTS},
    };
    return number < 4 ? (enum level)inside[level][number] : LEVEL_OPAQUE;
}

/* The most that a disguise makes of len bytes: a field of two bytes becomes one of ten after one
 * of four, and a packed value of one byte two. */
static inline size_t disguise_bound(size_t len) { return 16 * len + 16; }

static inline uint8_t *put_bytes(uint8_t *out, const uint8_t *bytes, size_t len) {
    memcpy(out, bytes, len);
    return out + len;
}

/* A varint of five bytes where wide, else as short as can be. */
static inline uint8_t *put_wide(uint8_t *out, uint32_t value, bool wide) {
    for (int i = 0; wide ? i < 4 : value >= 0x80; i++, value >>= 7) {
        *out++ = (uint8_t)(value | 0x80);
    }
    *out++ = (uint8_t)value;
    return out;
}

/* Every number of a packed block as a field; NULL where the block is not well-formed. */
static inline uint8_t *put_unpacked(uint8_t *out, enum level level, const uint8_t *p,
                                    const uint8_t *end) {
    tfwi_fault fault;
    if (level == LEVEL_FLOATS && (end - p) % 4 != 0) {
        return NULL;
    }
    while (p != end) {
        uint64_t value;
        const uint8_t *next =
            level == LEVEL_FLOATS ? p + 4 : tfwi_read_varint(p, end, &value, &fault);
        if (next == NULL) {
            return NULL;
        }
        *out++ = level == LEVEL_FLOATS ? TFWI_TAG(1, TFWI_WIRE_FIXED32)
                                       : TFWI_TAG(1, TFWI_WIRE_VARINT);
        out = put_bytes(out, p, (size_t)(next - p));
        p = next;
    }
    return out;
}

/* A varint, a fixed32, a string or a group of field 15. */
static inline uint8_t *put_unknown(uint8_t *out, size_t i) {
    static const uint8_t fields[4][5] = {
        {0x78, 0x01, 0x78, 0x01}, {0x7a, 0x02, 0x0a, 0x00}, {0x7b, 0x78, 0x07, 0x7c},
        {0x7a, 0x00, 0x78, 0x05}};
    return put_bytes(out, fields[i % 4], 4);
}

static inline uint8_t *disguise(uint8_t *out, enum level level, unsigned how, const uint8_t *p,
                                const uint8_t *end);

/* A field that holds a string or a message. */
static inline uint8_t *put_disguised(uint8_t *out, enum level level, unsigned how,
                                     const tfwi_field *field) {
    enum level inner = level_inside(level, field->tag >> 3);
    uint8_t *begin = put_wide(out, field->tag, (how & DISGUISE_TAGS) != 0);
    uint8_t *content = begin + 5;
    uint8_t *stop = disguise(content, inner, how, field->data, field->data + field->len);
    size_t len = (size_t)(stop - content);
    begin = put_wide(begin, (uint32_t)len, (how & DISGUISE_LENGTHS) != 0);
    memmove(begin, content, len);
    return begin + len;
}

/* Writes the message anew; what is malformed is copied. */
static inline uint8_t *disguise(uint8_t *out, enum level level, unsigned how, const uint8_t *p,
                                const uint8_t *end) {
    bool numbers = level == LEVEL_FLOATS || level == LEVEL_INTS;
    while (p != end && level != LEVEL_OPAQUE) {
        tfwi_fault fault;
        tfwi_field field;
        const uint8_t *next = tfwi_read_field(p, end, &field, &fault);
        if (next == NULL) {
            break;
        }
        if ((how & DISGUISE_UNKNOWN) != 0) {
            out = put_unknown(out, (size_t)(end - p));
        }
        uint8_t *unpacked = NULL;
        if ((how & DISGUISE_UNPACKED) != 0 && numbers && field.tag == TFWI_TAG(1, TFWI_WIRE_LEN)) {
            unpacked = put_unpacked(out, level, field.data, field.data + field.len);
        }
        if (unpacked != NULL) {
            out = unpacked;
        } else if ((field.tag & 7) == TFWI_WIRE_LEN) {
            out = put_disguised(out, level, how, &field);
        } else {
            out = put_bytes(out, p, (size_t)(next - p));
        }
        p = next;
    }
    return put_bytes(out, p, (size_t)(end - p));
}

#endif /* TFWIRE_TESTS_FUZZ_DISGUISE_H */
