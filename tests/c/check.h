/* SPDX-License-Identifier: Apache-2.0 */
/* A small test harness: checks that report and count, guard pages, failing allocations. */
#ifndef TFWIRE_TESTS_CHECK_H
#define TFWIRE_TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS under -std=c11 */
#endif

#include "base/common.h"
#include "tfwire_python.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#undef far /* names of memory, long ago */
#undef near
#elif defined(__wasi__)
#include <fcntl.h>
#else
#include <sys/mman.h>
#endif

static int check_failures;
static long long check_count; /* fuzzing makes thousands of millions */

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        check_count++;                                                                        \
        if (!(condition)) {                                                                   \
            check_failures++;                                                                 \
            fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__,          \
                    #condition);                                                              \
        }                                                                                     \
    } while (0)

#define CHECK_EQ(expected, actual)                                                            \
    do {                                                                                      \
        long long check_e = (long long)(expected), check_a = (long long)(actual);             \
        check_count++;                                                                        \
        if (check_e != check_a) {                                                             \
            check_failures++;                                                                 \
            fprintf(stderr, "%s:%d: %s: %s: expected %lld, found %lld\n", __FILE__, __LINE__, \
                    __func__, #actual, check_e, check_a);                                     \
        }                                                                                     \
    } while (0)

#define RUN(test)                                      \
    do {                                               \
        int check_before = check_failures;             \
        test();                                        \
        if (check_failures != check_before) {          \
            fprintf(stderr, "FAILED %s\n", #test);     \
        }                                              \
    } while (0)

/* Ends main: prints one line, returns the exit status. */
static inline int check_report(const char *name) {
    printf("%s: %lld checks, %d failed\n", name, check_count, check_failures);
    return check_failures != 0;
}

/* len bytes whose last byte is followed by an unreadable page, and whose page is preceded by
 * another; at_end false: whose first byte follows an unreadable page. */
typedef struct guarded {
    uint8_t *data;
    void *map;
    size_t map_len;
} guarded;

#ifdef _WIN32
static inline size_t page_size(void) { return 4096; }

/* Pages, of which the first and the last cannot be accessed; NULL: out of memory. */
static inline void *guarded_pages(size_t len, size_t page) {
    DWORD old;
    char *map = VirtualAlloc(NULL, len, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    bool done = map != NULL && VirtualProtect(map, page, PAGE_NOACCESS, &old) &&
                VirtualProtect(map + len - page, page, PAGE_NOACCESS, &old);
    return done ? map : NULL;
}

static inline void guarded_free(guarded g) { VirtualFree(g.map, 0, MEM_RELEASE); }
#elif defined(__wasi__)
static inline size_t page_size(void) { return 4096; }

/* WebAssembly can access all of its memory. */
static inline void *guarded_pages(size_t len, size_t page) {
    (void)page;
    return calloc(len, 1);
}

static inline void guarded_free(guarded g) { free(g.map); }
#else
static inline size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Pages, of which the first and the last cannot be accessed; NULL: out of memory. */
static inline void *guarded_pages(size_t len, size_t page) {
    char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool done = map != MAP_FAILED && mprotect(map, page, PROT_NONE) == 0 &&
                mprotect(map + len - page, page, PROT_NONE) == 0;
    return done ? map : NULL;
}

static inline void guarded_free(guarded g) { munmap(g.map, g.map_len); }
#endif

static inline guarded guarded_new(size_t len, bool at_end) {
    size_t page = page_size();
    size_t inner = (len / page + 1) * page;
    guarded g = {.map_len = inner + 2 * page};
    g.map = guarded_pages(g.map_len, page);
    if (g.map == NULL) {
        abort();
    }
    uint8_t *first = (uint8_t *)g.map + page;
    g.data = at_end ? first + inner - len : first;
    return g;
}

/* A file without a name, open for reading and writing. */
#ifdef __wasi__
static inline int unnamed_file(void) {
    const int fd = open("/tmp/unnamed", O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || unlink("/tmp/unnamed") != 0) {
        abort();
    }
    return fd;
}
#else
static inline int unnamed_file(void) {
    FILE *stream = tmpfile();
    if (stream == NULL) {
        abort();
    }
    int fd = dup(fileno(stream));
    fclose(stream);
    return fd;
}
#endif

#define SEED UINT64_C(0x6c62272e07bb0142) /* of hashes: no result depends on it */

/* A small, seeded generator (xorshift64*); state must not be 0. */
static inline uint64_t check_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

#ifdef TFW_TEST_FAULTS
extern size_t tfwi_test_largest_request; /* memory.c: since a test has set it to 0 */
extern long tfwi_test_fail_allocation; /* memory.c: the n-th request from now fails; -1: none */
extern unsigned tfwi_test_cpu;         /* cpu.c: the features that this CPU may have */

/* TFWIRE_TEST_CPU, the sum of TFWI_CPU_ bits: kernels that need others are not there. */
__attribute__((constructor)) static inline void check_limit_cpu(void) {
    const char *features = getenv("TFWIRE_TEST_CPU");
    if (features != NULL) {
        tfwi_test_cpu = (unsigned)strtoul(features, NULL, 0);
    }
}
#endif

#endif /* TFWIRE_TESTS_CHECK_H */
