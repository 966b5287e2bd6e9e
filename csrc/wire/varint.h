/* SPDX-License-Identifier: Apache-2.0 */
/* Varints, read and written: one at a time, and many as in packed lists. */
#ifndef TFWIRE_VARINT_H
#define TFWIRE_VARINT_H

#include "wire/fault.h"

#define TFWI_MAX_VARINT 10 /* bytes of a varint */

/* ---- Reading --------------------------------------------------------------------------------- */

/* A varint of any length up to max_len bytes; bits above the 64th are dropped. */
TFWI_INLINE const uint8_t *tfwi_read_bounded_varint(const uint8_t *p, const uint8_t *end,
                                                    size_t max_len, uint64_t *out_value,
                                                    tfwi_fault *fault) {
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
    return tfwi_note_malformed(fault, p,
                          limit == max_len ? "a varint is too long" : "ends inside a varint");
}

/* A varint of up to TFWI_MAX_VARINT bytes: tfwi_read_varint inlines only those of one. */
const uint8_t *tfwi_read_long_varint(const uint8_t *p, const uint8_t *end, uint64_t *out_value,
                                     tfwi_fault *fault);

TFWI_INLINE const uint8_t *tfwi_read_varint(const uint8_t *p, const uint8_t *end,
                                            uint64_t *out_value, tfwi_fault *fault) {
    if (TFWI_LIKELY(p != end && *p < 0x80)) {
        *out_value = *p;
        return p + 1;
    }
    return tfwi_read_long_varint(p, end, out_value, fault);
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

/* ---- Writing --------------------------------------------------------------------------------- */

TFWI_INLINE size_t tfwi_varint_size(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    return (bits * 9 + 64) >> 6; /* ceil(bits / 7) for 1..64 bits */
#else
    size_t size = 1;
    while (v >>= 7) {
        size++;
    }
    return size;
#endif
}

/* Writes exactly the varint. */
TFWI_INLINE uint8_t *tfwi_put_length(uint8_t *p, uint64_t v) {
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* The low 56 bits, seven to a byte, by halves: no loop, no branch that could be mispredicted. */
TFWI_INLINE uint64_t tfwi_spread_sevens(uint64_t v) {
    v = (v & UINT64_C(0x000000000fffffff)) | (v & UINT64_C(0x00fffffff0000000)) << 4;
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x0fffc0000fffc000)) << 2;
    return (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x3f803f803f803f80)) << 1;
}

/* Writes the varint of the given size, of which the low 56 bits are spread; touches
 * TFWI_MAX_VARINT bytes. */
TFWI_INLINE uint8_t *tfwi_put_spread(uint8_t *p, uint64_t v, size_t size, uint64_t spread) {
    const uint64_t followed = UINT64_C(0x8080808080808080);
    uint64_t more = size > 8 ? followed : followed >> 8 >> (64 - 8 * size);
    tfwi_store64(p, spread | more);
    p[8] = (uint8_t)(v >> 56); /* bit 7 says that there is a tenth byte */
    p[9] = (uint8_t)(v >> 63);
    return p + size;
}

TFWI_INLINE uint8_t *tfwi_put_varint(uint8_t *p, uint64_t v, size_t size) {
    return tfwi_put_spread(p, v, size, tfwi_spread_sevens(v));
}

#endif /* TFWIRE_VARINT_H */
