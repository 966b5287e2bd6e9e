/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers on the wire: the loops in which encoding spends its time, for each kind of CPU. */
#ifndef TFWIRE_NUMBERS_H
#define TFWIRE_NUMBERS_H

#include "encode/prefix.h"

/* A feature that is one number. */
typedef struct tfwi_scalar {
    const void *values; /* int64_t or float, one per record */
    const uint64_t *template; /* of a prefix, with room for the longest varint */
    const uint64_t *to_add;
    uint32_t template_size;
    int32_t kind;
} tfwi_scalar;

/* How numbers are written on some CPU. All give the same bytes and touch at most TFWI_SLACK bytes
 * past them. */
typedef struct tfwi_writer {
    const char *name;
    unsigned features; /* the TFWI_CPU_ bits that it needs */
    /* Writes the map entries of one record; returns their end. */
    uint8_t *(*scalars)(const tfwi_scalar *const *scalars, size_t count, uint64_t record,
                        uint8_t *p);
    /* Writes int64s, of any alignment, as varints; returns their end. */
    uint8_t *(*int64s)(const void *values, size_t count, uint8_t *p);
} tfwi_writer;

/* Writer i of this build, best first, or NULL. */
const tfwi_writer *tfwi_writer_at(size_t i);

/* The best one that this CPU should run. */
const tfwi_writer *tfwi_writer_best(void);

#ifdef TFWI_X86
extern const tfwi_writer tfwi_writer_avx2;
#endif
#ifdef TFWI_ARM64
extern const tfwi_writer tfwi_writer_neon;
#endif

/* A list of one or more int64s: the prefix and, packed, the values. */
TFWI_INLINE void tfwi_put_int64s(const tfwi_writer *writer, tfwi_prefix *f, const void *values,
                                 size_t count, tfwi_output *out) {
    uint8_t *end = writer->int64s(values, count, out->at + f->guess);
    out->at = tfwi_prefix_place(f, TFWI_PACKED_LENGTHS(f), out->at, end);
}

/* The scalar that a prefix and its column make; false: it has no template, or not always. */
TFWI_INLINE bool tfwi_scalar_init(tfwi_scalar *s, const tfwi_prefix *f, int32_t kind,
                                  const void *values) {
    *s = (tfwi_scalar){values, f->template, f->to_add, (uint32_t)f->template_size, kind};
    return f->template_limit > TFWI_MAX_VARINT;
}

/* The most bytes that it takes. */
TFWI_INLINE size_t tfwi_scalar_bound(const tfwi_scalar *s) {
    return s->template_size + TFWI_MAX_VARINT;
}

#endif /* TFWIRE_NUMBERS_H */
