/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum kernels without Python, beside memcpy: GB/s by size, and record streams in ns per
 * record, where it is the unpredictable lengths that cost.
 *
 *     cc -O3 -pthread -Icsrc benchmarks/core.c $(find csrc -name '*.c') -o build/core && build/core
 *
 * Each figure is the best of several runs in thread CPU time. The buffers up to 1 MiB are warm.
 */
#define _POSIX_C_SOURCE 200809L

#include "base/cpu.h"
#include "crc32c/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 15, STREAM_RECORDS = 4096, LARGEST = 64 << 20 };

static const size_t sizes[] = {8, 16, 64, 256, 1024, 4096, 65536, 1 << 20, LARGEST};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

/* Record lengths: mean +- spread, evenly. */
static const struct {
    unsigned mean, spread;
} streams[] = {{8, 0},    {30, 25},   {90, 0},     {90, 10},   {90, 60},
               {200, 100}, {500, 200}, {1000, 400}, {3000, 1000}};
enum { NUM_STREAMS = sizeof streams / sizeof streams[0] };

static uint8_t *source, *target;
static volatile uint32_t sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One call on size bytes; kernel NULL: memcpy. */
static void work(const tfwi_crc32c_kernel *kernel, size_t size) {
    if (kernel == NULL) {
        memcpy(target, source, size);
        __asm__ volatile("" : : "r"(target) : "memory");
    } else {
        sink ^= kernel->crc(0, source, size);
    }
}

static double seconds_per_call(const tfwi_crc32c_kernel *kernel, size_t size) {
    size_t calls = 1 + (4 << 20) / (size + 256);
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        double begin = now();
        for (size_t i = 0; i < calls; i++) {
            work(kernel, size);
        }
        double taken = (now() - begin) / (double)calls;
        best = taken < best ? taken : best;
    }
    return best;
}

/* Frames records of random lengths in target; returns the bytes they take. */
static size_t write_stream(unsigned mean, unsigned spread) {
    size_t at = 0;
    uint64_t state = 1;
    for (int i = 0; i < STREAM_RECORDS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t length = mean - spread + (state >> 33) % (2 * spread + 1);
        tfw_span span = {.offset = at + TFW_HEADER_SIZE, .length = length};
        memcpy(target + span.offset, source, (size_t)length);
        tfw_frame(target, LARGEST, &span, 1, NULL);
        at += (size_t)length + TFW_HEADER_SIZE + TFW_FOOTER_SIZE;
    }
    return at;
}

static double seconds_per_record(size_t len) {
    static tfw_span spans[STREAM_RECORDS];
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        size_t count, consumed;
        double begin = now();
        int status = tfw_scan(target, len, 0, 0, spans, STREAM_RECORDS, &count, &consumed, NULL);
        double taken = (now() - begin) / STREAM_RECORDS;
        if (status != TFW_OK || count != STREAM_RECORDS) {
            fprintf(stderr, "scan: %s after %zu records\n", tfw_status_name(status), count);
            exit(1);
        }
        best = taken < best ? taken : best;
    }
    return best;
}

static void print_sizes(void) {
    printf("%-22s", "GB/s");
    for (int i = 0; i < NUM_SIZES; i++) {
        size_t size = sizes[i];
        const char *unit = size >= 1 << 20 ? "MiB" : size >= 1024 ? "KiB" : "B";
        printf("%5zu %-3s", size >= 1 << 20 ? size >> 20 : size >= 1024 ? size >> 10 : size, unit);
    }
    printf("\n");
}

static void print_speeds(const char *name, const tfwi_crc32c_kernel *kernel) {
    printf("%-22s", name);
    for (int i = 0; i < NUM_SIZES; i++) {
        printf("%8.2f ", (double)sizes[i] / seconds_per_call(kernel, sizes[i]) * 1e-9);
    }
    printf("\n");
}

static void print_streams(void) {
    printf("\n%-12s", "ns/record");
    for (size_t k = 0; tfwi_crc32c_kernel_at(k) != NULL; k++) {
        printf("%10s", tfwi_crc32c_kernel_at(k)->name);
    }
    printf("\n");
    for (int i = 0; i < NUM_STREAMS; i++) {
        size_t len = write_stream(streams[i].mean, streams[i].spread);
        printf("%4u +- %-4u", streams[i].mean, streams[i].spread);
        for (size_t k = 0; tfwi_crc32c_kernel_at(k) != NULL; k++) {
            if (tfw_crc32c_select(tfwi_crc32c_kernel_at(k)->name) == TFW_OK) {
                printf("%10.1f", seconds_per_record(len) * 1e9);
            } else {
                printf("%10s", "-");
            }
        }
        printf("\n");
    }
}

int main(void) {
    source = malloc(LARGEST);
    target = malloc(LARGEST);
    if (source == NULL || target == NULL) {
        return 1;
    }
    for (size_t i = 0; i < LARGEST; i++) {
        source[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    memset(target, 1, LARGEST);
    print_sizes();
    for (size_t k = 0; tfwi_crc32c_kernel_at(k) != NULL; k++) {
        if (tfwi_cpu_has(tfwi_crc32c_kernel_at(k)->features)) {
            print_speeds(tfwi_crc32c_kernel_at(k)->name, tfwi_crc32c_kernel_at(k));
        }
    }
    print_speeds("memcpy", NULL);
    print_streams();
    free(source);
    free(target);
    return 0;
}
