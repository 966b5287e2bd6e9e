/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator, which all code uses, and the growable array. */
#ifndef TFWIRE_MEMORY_H
#define TFWIRE_MEMORY_H

#include "base/common.h"

/* NULL: out of memory. A test build makes the n-th request fail. */
void *tfwi_realloc(void *memory, size_t size); /* memory NULL: allocate; size 0 is taken as 1 */
void *tfwi_calloc(size_t count, size_t size);

/* A growable array; its owner passes the elements to tfw_free. */
#define TFWI_ARRAY(type)                                                    \
    struct {                                                                \
        type *of;                                                           \
        size_t count;    /* 0 where the owner knows it from elsewhere */    \
        size_t capacity; /* in elements */                                  \
        size_t hint;     /* the first capacity, unless more is asked for */ \
    }

typedef TFWI_ARRAY(uint8_t) tfwi_bytes;
typedef TFWI_ARRAY(int64_t) tfwi_int64s;

/* Makes room for a total number of elements, or for that many more; false: out of memory. */
#define TFWI_RESERVE(array, total)               \
    (TFWI_LIKELY((total) <= (array).capacity) || \
     tfwi_grow(&(array), (total), sizeof *(array).of))
#define TFWI_RESERVE_MORE(array, more)                          \
    (TFWI_LIKELY((more) <= (array).capacity - (array).count) || \
     tfwi_grow(&(array), (uint64_t)(array).count + (more), sizeof *(array).of))

/* array: to a TFWI_ARRAY with elements of that size. The capacity doubles at least. */
bool tfwi_grow(void *array, uint64_t total, size_t size);

#endif /* TFWIRE_MEMORY_H */
