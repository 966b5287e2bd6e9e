/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf messages made by hand, for tests: blobs that are joined and wrapped. All memory belongs
 * to one arena, which blobs_free empties. */
#ifndef TFWIRE_TESTS_PROTO_H
#define TFWIRE_TESTS_PROTO_H

#include "check.h"

typedef struct blob {
    const uint8_t *data;
    size_t len;
} blob;

static void *blob_blocks[1 << 16];
static size_t blob_block_count;

static inline uint8_t *blob_alloc(size_t len) {
    if (blob_block_count == sizeof blob_blocks / sizeof blob_blocks[0]) {
        abort();
    }
    void *block = malloc(len != 0 ? len : 1);
    if (block == NULL) {
        abort();
    }
    blob_blocks[blob_block_count++] = block;
    return block;
}

static inline void blobs_free(void) {
    while (blob_block_count > 0) {
        free(blob_blocks[--blob_block_count]);
    }
}

static inline blob raw(const void *data, size_t len) {
    uint8_t *copy = blob_alloc(len);
    if (len != 0) {
        memcpy(copy, data, len);
    }
    return (blob){copy, len};
}

/* The bytes of a string literal. */
#define RAW(literal) raw(literal, sizeof(literal) - 1)
#define NOTHING RAW("")

static inline blob join(const blob *parts, size_t count) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    uint8_t *out = blob_alloc(len);
    blob whole = {out, len};
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len != 0) {
            memcpy(out, parts[i].data, parts[i].len);
        }
        out += parts[i].len;
    }
    return whole;
}

#define JOIN(...) \
    join((const blob[]){__VA_ARGS__}, sizeof((const blob[]){__VA_ARGS__}) / sizeof(blob))

static inline blob repeat(blob part, size_t times) {
    uint8_t *out = blob_alloc(part.len * times);
    for (size_t i = 0; i < times; i++) {
        memcpy(out + i * part.len, part.data, part.len);
    }
    return (blob){out, part.len * times};
}

/* Writes a varint of at most 10 bytes; their number. */
static inline size_t put_varint(uint8_t *out, uint64_t value) {
    size_t len = 0;
    for (; value > 0x7f; value >>= 7) {
        out[len++] = (uint8_t)(value | 0x80);
    }
    out[len++] = (uint8_t)value;
    return len;
}

static inline blob varint(uint64_t value) {
    uint8_t out[10];
    return raw(out, put_varint(out, value));
}

/* A varint of exactly len bytes, at most 16. */
static inline blob long_varint(uint64_t value, size_t len) {
    uint8_t out[16];
    for (size_t i = 0; i < 16; i++) {
        out[i] = (uint8_t)(0x80 | ((i < 9 ? value >> (7 * i) : value >> 63) & 0x7f));
    }
    out[len - 1] &= 0x7f;
    return raw(out, len);
}

static inline blob tag(uint32_t number, uint32_t type) { return varint(number << 3 | type); }

/* A field that holds a message or a string. */
static inline blob field(uint32_t number, blob payload) {
    uint8_t head[20];
    size_t len = put_varint(head, number << 3 | 2);
    len += put_varint(head + len, payload.len);
    return join((const blob[]){{head, len}, payload}, 2);
}

static inline blob fixed32(uint32_t bits) {
    uint8_t out[4];
    tfwi_store32(out, bits);
    return raw(out, 4);
}

static inline blob float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return fixed32(bits);
}

/* ---- Lists: numbers packed ------------------------------------------------------------------ */

static inline blob packed_int64s(const int64_t *values, size_t count) {
    uint8_t *out = blob_alloc(10 * count);
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += put_varint(out + len, (uint64_t)values[i]);
    }
    return raw(out, len);
}

static inline blob packed_floats(const float *values, size_t count) {
    uint8_t *out = blob_alloc(4 * count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        tfwi_store32(out + 4 * i, bits);
    }
    return (blob){out, 4 * count};
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Features of one kind; each holds the values given. */
#define INTS(...)                                                        \
    field(3, field(1, packed_int64s((const int64_t[]){__VA_ARGS__},      \
                                    COUNT(((const int64_t[]){__VA_ARGS__})))))
#define FLOATS(...)                                                      \
    field(2, field(1, packed_floats((const float[]){__VA_ARGS__},        \
                                    COUNT(((const float[]){__VA_ARGS__})))))
#define STRING(literal) field(1, field(1, RAW(literal)))
#define NO_INTS field(3, NOTHING)
#define NO_FLOATS field(2, NOTHING)
#define NO_STRINGS field(1, NOTHING)

/* A map entry: field 1 of Features or of FeatureLists. */
static inline blob entry(const char *key, blob value) {
    return field(1, JOIN(field(1, raw(key, strlen(key))), field(2, value)));
}

#define EXAMPLE(...) field(1, JOIN(__VA_ARGS__))

#endif /* TFWIRE_TESTS_PROTO_H */
