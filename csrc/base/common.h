/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by every source file: portability, little-endian loads, checked sizes, errors. */
#ifndef TFWIRE_COMMON_H
#define TFWIRE_COMMON_H

#include "tfwire.h"

#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define TFWI_LIKELY(x) __builtin_expect(!!(x), 1)
#define TFWI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TFWI_NOINLINE __attribute__((noinline))
#define TFWI_INLINE static inline __attribute__((always_inline))
#define TFWI_PREFETCH(address) __builtin_prefetch((const void *)(address))
#else
#define TFWI_LIKELY(x) (x)
#define TFWI_UNLIKELY(x) (x)
#ifdef _MSC_VER
#define TFWI_NOINLINE __declspec(noinline)
#define TFWI_INLINE static __forceinline
#else
#define TFWI_NOINLINE
#define TFWI_INLINE static inline
#endif
#define TFWI_PREFETCH(address) ((void)(address))
#endif

/* Not with MSVC's headers: what clang has of intrinsics there depends on the flags of the file. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(_MSC_VER)
#define TFWI_X86 1
/* What is asked for of the compiler: to clang the CRC-32C instruction is a feature of its own. */
#if defined(__clang__) && __clang_major__ >= 14
#define TFWI_SSE42 "crc32,sse4.2"
#else
#define TFWI_SSE42 "sse4.2"
#endif
#endif
#if defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__)) && \
    !defined(__ARM_BIG_ENDIAN)
#define TFWI_ARM64 1
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TFWI_BIG_ENDIAN 1
#endif

/* ---- Little-endian loads and stores, any alignment ------------------------------------------ */

TFWI_INLINE uint32_t tfwi_swap32(uint32_t v) {
    return (v >> 24) | ((v >> 8) & 0xff00u) | ((v << 8) & 0xff0000u) | (v << 24);
}

TFWI_INLINE uint64_t tfwi_swap64(uint64_t v) {
    return ((uint64_t)tfwi_swap32((uint32_t)v) << 32) | tfwi_swap32((uint32_t)(v >> 32));
}

TFWI_INLINE uint32_t tfwi_load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
#ifdef TFWI_BIG_ENDIAN
    v = tfwi_swap32(v);
#endif
    return v;
}

TFWI_INLINE uint64_t tfwi_load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
#ifdef TFWI_BIG_ENDIAN
    v = tfwi_swap64(v);
#endif
    return v;
}

TFWI_INLINE void tfwi_store32(void *p, uint32_t v) {
#ifdef TFWI_BIG_ENDIAN
    v = tfwi_swap32(v);
#endif
    memcpy(p, &v, sizeof v);
}

TFWI_INLINE void tfwi_store64(void *p, uint64_t v) {
#ifdef TFWI_BIG_ENDIAN
    v = tfwi_swap64(v);
#endif
    memcpy(p, &v, sizeof v);
}

/* ---- Checked sizes: true on overflow -------------------------------------------------------- */

TFWI_INLINE bool tfwi_add_overflows(size_t a, size_t b, size_t *out) {
    *out = a + b;
    return *out < a;
}

TFWI_INLINE bool tfwi_mul_overflows(size_t a, size_t b, size_t *out) {
    *out = a * b;
    return a != 0 && *out / a != b;
}

/* A size of memory; the largest for numbers that are larger. */
TFWI_INLINE size_t tfwi_as_size(uint64_t value) {
    return value < SIZE_MAX ? (size_t)value : SIZE_MAX;
}

/* A number for a field of an error, which is signed. */
TFWI_INLINE int64_t tfwi_saturated(uint64_t value) {
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* The core reports failure in two ways: by a status, or, within a message, by false (readers: NULL)
 * with the reason in a fault (wire/fault.h). A false or NULL without one means out of memory, as
 * with the allocator. Three answers look alike and are no failure:
 *
 *   - NULL or false of a kernel (parse/match.h, tfwi_varint_reader): not of the usual shape; the
 *     complete parser reads it again, and finds the fault if there is one
 *   - false of a search (tfwi_find_field, tfwi_next_piece): there are no more; after a fault
 *     tfwi_find_field also sets *p to NULL
 *   - -1 of base/system.h: as of the system's functions, with the reason in errno; callers report
 *     TFW_E_IO */

/* Resets every field, sets status and text; error may be NULL. Returns status. */
int tfwi_fail(tfw_error *error, int status, const char *text);

/* Sets a field of an error, which may be NULL. */
#define TFWI_SET(error, field, value) \
    ((error) != NULL ? (void)((error)->field = (value)) : (void)0)

/* TFW_OK, or TFW_E_ARGUMENT for flags that are not among those known. */
TFWI_INLINE int tfwi_check_flags(unsigned flags, unsigned known, tfw_error *error) {
    return (flags & ~known) == 0 ? TFW_OK : tfwi_fail(error, TFW_E_ARGUMENT, "unknown flags");
}

#endif /* TFWIRE_COMMON_H */
