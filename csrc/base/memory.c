/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator and the growable array. */
#define _DEFAULT_SOURCE

#include "base/memory.h"

#include <stdlib.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef TFW_TEST_FAULTS
/* Test builds count requests down: the one that finds zero fails, and all after it succeed. They
 * note the largest, too. Several threads may ask at once. */
__attribute__((visibility("default"))) long tfwi_test_fail_allocation = -1;
size_t tfwi_test_largest_request = 0;

static bool request_fails(size_t size) {
    if (size > __atomic_load_n(&tfwi_test_largest_request, __ATOMIC_RELAXED)) {
        __atomic_store_n(&tfwi_test_largest_request, size, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&tfwi_test_fail_allocation, __ATOMIC_RELAXED) >= 0 &&
           __atomic_fetch_sub(&tfwi_test_fail_allocation, 1, __ATOMIC_RELAXED) == 0;
}
#else
static bool request_fails(size_t size) {
    (void)size;
    return false;
}
#endif

void *tfwi_realloc(void *memory, size_t size) {
    return request_fails(size) ? NULL : realloc(memory, size != 0 ? size : 1);
}

void *tfwi_calloc(size_t count, size_t size) {
    return request_fails(count * size) ? NULL
                                       : calloc(count != 0 ? count : 1, size != 0 ? size : 1);
}

void tfw_free(void *memory) { free(memory); }

#define LARGE_ARRAY ((size_t)1 << 22)
#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Asks for huge pages, where the system has them: fresh memory costs a fault per page, which for
 * 4 KiB takes several times as long as filling it. */
static void prefer_huge_pages(void *memory, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    uintptr_t begin = ((uintptr_t)memory + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(HUGE_PAGE - 1);
    if (size >= LARGE_ARRAY && begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a failure does no harm */
    }
#else
    (void)memory;
    (void)size;
#endif
}

bool tfwi_grow(void *array, uint64_t total, size_t size) {
    TFWI_ARRAY(void) grown;
    memcpy(&grown, array, sizeof grown);
    uint64_t wanted = grown.of == NULL ? grown.hint : 2 * (uint64_t)grown.capacity;
    wanted = wanted < total ? total : wanted;
    if (wanted > SIZE_MAX / size) {
        return false;
    }
    grown.of = tfwi_realloc(grown.of, (size_t)wanted * size);
    if (grown.of == NULL) {
        return false;
    }
    prefer_huge_pages(grown.of, (size_t)wanted * size);
    grown.capacity = (size_t)wanted;
    memcpy(array, &grown, sizeof grown);
    return true;
}
