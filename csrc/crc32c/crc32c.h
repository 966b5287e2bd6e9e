/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C kernels, for their own files and for loops that look one up once. */
#ifndef TFWIRE_CRC32C_H
#define TFWIRE_CRC32C_H

#include "base/common.h"

/* The order of x modulo P: its powers repeat after that many. */
#define TFWI_ORDER_OF_X UINT32_C(0x7fffffff)

/* One way to compute the checksum. All give the same results for all arguments and read exactly
 * the bytes they are given. */
typedef struct tfwi_crc32c_kernel {
    const char *name;
    unsigned features; /* the TFWI_CPU_ bits that it needs */

    /* As tfw_crc32c, but data must not be NULL, even if len is 0. */
    uint32_t (*crc)(uint32_t crc, const void *data, size_t len);

    /* The checksum of exactly 8 bytes, from crc 0: the length in a record's header. */
    uint32_t (*crc8)(const void *data);

    /* The product of two polynomials modulo P. */
    uint32_t (*multiply)(uint32_t a, uint32_t b);
} tfwi_crc32c_kernel;

/* The kernel in use; never NULL. Load it once per batch. */
const tfwi_crc32c_kernel *tfwi_crc32c_current(void);

/* Kernel i of this build, best first, or NULL past the last; the best that this CPU should run. */
const tfwi_crc32c_kernel *tfwi_crc32c_kernel_at(size_t i);
const tfwi_crc32c_kernel *tfwi_crc32c_kernel_best(void);

/* As tfw_crc32c_mask and its inverse, inline. */
TFWI_INLINE uint32_t tfwi_crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

TFWI_INLINE uint32_t tfwi_crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - UINT32_C(0xa282ead8);
    return (rotated >> 17) | (rotated << 15);
}

extern const tfwi_crc32c_kernel tfwi_crc32c_portable;
#ifdef TFWI_X86
extern const tfwi_crc32c_kernel tfwi_crc32c_avx512; /* AVX-512 with VPCLMULQDQ */
extern const tfwi_crc32c_kernel tfwi_crc32c_avx2;   /* AVX2 with VPCLMULQDQ */
extern const tfwi_crc32c_kernel tfwi_crc32c_sse42;  /* SSE4.2 with PCLMULQDQ */
#endif
#ifdef TFWI_ARM64
extern const tfwi_crc32c_kernel tfwi_crc32c_armv8; /* CRC32 with PMULL */
#endif

#endif /* TFWIRE_CRC32C_H */
