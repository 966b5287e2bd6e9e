/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner with every kernel's checksums: all find the same. */
#define _GNU_SOURCE

#include "check.h"
#include "base/cpu.h"
#include "records/scan.h"

/* Calls check with every kernel that this CPU can run in use, and ends with the best. */
static void with_every_kernel(void (*check)(void)) {
    const tfwi_crc32c_kernel *kernel;
    for (size_t i = 0; (kernel = tfwi_crc32c_kernel_at(i)) != NULL; i++) {
        if (tfwi_cpu_has(kernel->features)) {
            CHECK_EQ(TFW_OK, tfw_crc32c_select(kernel->name));
            CHECK(tfwi_scanner_current()->kernel == kernel);
            check();
        }
    }
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
}

/* A header at every place that is searched; nothing past the last place is read. */
static void check_header_search(void) {
    enum { PLACES = 40 };
    const tfwi_scanner *scanner = tfwi_scanner_current();
    uint64_t state = 0x5eed;
    for (size_t at = 0; at < PLACES; at++) {
        guarded g = guarded_new(PLACES + 11, true);
        for (size_t i = 0; i < PLACES + 11; i++) {
            g.data[i] = (uint8_t)(check_random(&state) >> 56);
        }
        uint8_t *header = g.data + at;
        tfwi_store64(header, 1000);
        tfwi_store32(header + 8, tfwi_length_crc(scanner->kernel, header));
        CHECK_EQ(at, scanner->find_header(g.data, PLACES, 1000));
        CHECK_EQ(PLACES, scanner->find_header(g.data, PLACES, 999)); /* too long */
        CHECK_EQ(at, scanner->find_header(g.data, at, UINT64_MAX));  /* after the last place */
        if (at + 1 < PLACES) {
            CHECK_EQ(PLACES - at - 1, scanner->find_header(header + 1, PLACES - at - 1, 1000));
        }
        guarded_free(g);
    }
}

/* Records of every length around the kernels' classes, then the same with a damaged payload. */
static void check_scan(void) {
    for (size_t len = 0; len < 700; len += 1 + len / 50) {
        guarded payload = guarded_new(len, true), file = guarded_new(3 * (len + 16), true);
        tfw_span spans[3] = {{0, len}, {0, len}, {0, len}};
        size_t size = 0, count = 0, consumed = 0;
        tfw_error error;
        memset(payload.data, (int)len, len);
        CHECK_EQ(TFW_OK, tfw_pack(payload.data, len, spans, 3, file.data, 3 * (len + 16), &size,
                                  NULL));
        CHECK_EQ(TFW_OK, tfw_scan(file.data, size, 0, 0, spans, 3, &count, &consumed, NULL));
        CHECK_EQ(3, count);
        CHECK_EQ(size, consumed);
        CHECK_EQ(len, spans[2].length);
        file.data[2 * (len + 16) - 1] ^= 1; /* of the second footer */
        CHECK_EQ(TFW_E_DATA_CRC,
                 tfw_scan(file.data, size, 0, 0, spans, 3, &count, &consumed, &error));
        CHECK_EQ(1, count);
        CHECK_EQ(len + 16, (size_t)error.offset);
        guarded_free(payload);
        guarded_free(file);
    }
}

static void every_scanner_finds_headers(void) { with_every_kernel(check_header_search); }

static void every_scanner_finds_records(void) { with_every_kernel(check_scan); }

int main(void) {
    RUN(every_scanner_finds_headers);
    RUN(every_scanner_finds_records);
    return check_report("test_scan");
}
