/* SPDX-License-Identifier: Apache-2.0 */
/* Template: numbers on the wire. A writer's file includes it once, after it has defined
 *
 *     TARGET                      the function attribute that allows its instructions
 *     put_varint(p, v, size)      as tfwi_put_varint
 *     put_template(p, s, len)     the prefix of a scalar of len bytes; touches less than a block
 *                                 past it
 */
#ifndef TFWIRE_NUMBERS_TEMPLATE_H
#define TFWIRE_NUMBERS_TEMPLATE_H

#include "encode/numbers.h"

/* How far ahead each column is prefetched, in bytes: dozens of columns, read in turn, are more than
 * a CPU prefetches by itself. */
#define AHEAD 256

TARGET TFWI_INLINE uint8_t *put_float(const tfwi_scalar *s, uint64_t record, uint8_t *p) {
    const float *value = (const float *)s->values + record;
    uint32_t bits;
    TFWI_PREFETCH((uintptr_t)value + AHEAD);
    memcpy(&bits, value, sizeof bits);
    put_template(p, s, sizeof bits);
    tfwi_store32(p + s->template_size, bits);
    return p + s->template_size + sizeof bits;
}

TARGET TFWI_INLINE uint8_t *put_int64(const tfwi_scalar *s, uint64_t record, uint8_t *p) {
    const int64_t *value = (const int64_t *)s->values + record;
    TFWI_PREFETCH((uintptr_t)value + AHEAD);
    uint64_t v = (uint64_t)*value;
    size_t size = tfwi_varint_size(v);
    put_template(p, s, size);
    return put_varint(p + s->template_size, v, size);
}

TARGET static uint8_t *put_scalars(const tfwi_scalar *const *scalars, size_t count,
                                   uint64_t record, uint8_t *p) {
    for (size_t i = 0; i < count; i++) {
        const tfwi_scalar *s = scalars[i];
        p = s->kind == TFW_FLOAT ? put_float(s, record, p) : put_int64(s, record, p);
    }
    return p;
}

TARGET static uint8_t *put_int64s(const void *values, size_t count, uint8_t *p) {
    for (size_t i = 0; i < count; i++) {
        uint64_t v;
        memcpy(&v, (const uint8_t *)values + 8 * i, sizeof v);
        p = put_varint(p, v, tfwi_varint_size(v));
    }
    return p;
}

#endif /* TFWIRE_NUMBERS_TEMPLATE_H */
