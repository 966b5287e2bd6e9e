/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes above 2^31 and 2^32: memory that is mapped but never written, and files with holes. */
#include "check.h"

#include "records/frame.h"

static const uint64_t SIZES[] = {(UINT64_C(1) << 31) + 5, (UINT64_C(1) << 32) + 9};

enum { NUM_SIZES = sizeof SIZES / sizeof SIZES[0] };

/* Zeros that take no memory until they are written. */
static inline uint8_t *zeros(size_t size) {
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        abort();
    }
    return map;
}

/* The checksum of so many zeros, put together from that of one. */
static uint32_t crc_of_zeros(uint64_t count) {
    uint32_t crc = 0, power = tfw_crc32c(0, "", 1);
    uint64_t size = 1;
    for (; count != 0; count >>= 1, size *= 2) {
        if ((count & 1) != 0) {
            crc = tfw_crc32c_combine(crc, power, size);
        }
        power = tfw_crc32c_combine(power, power, size);
    }
    return crc;
}

static void put_frame(uint8_t *header, uint8_t *footer, uint64_t length) {
    tfwi_store64(header, length);
    tfwi_store32(header + 8, tfw_crc32c_mask(tfw_crc32c(0, header, 8)));
    tfwi_store32(footer, tfw_crc32c_mask(crc_of_zeros(length)));
}

/* A record of zeros in memory: found, verified, added up, and its flipped bit found. */
static inline void a_long_record_in_memory(void) {
    for (size_t i = 0; i < NUM_SIZES; i++) {
        const uint64_t length = SIZES[i];
        const size_t size = (size_t)length + TFWI_FRAME_SIZE;
        uint8_t *data = zeros(size);
        put_frame(data, data + size - TFW_FOOTER_SIZE, length);
        tfw_span span;
        size_t count, consumed;
        CHECK_EQ(TFW_OK, tfw_scan(data, size, 0, 0, &span, 1, &count, &consumed, NULL));
        CHECK(count == 1 && consumed == size && span.length == length);
        tfw_error error;
        CHECK_EQ(TFW_NEED_INPUT,
                 tfw_scan(data, size - 1, 0, 0, &span, 1, &count, &consumed, &error));
        CHECK(error.expected == (int64_t)size && error.found == (int64_t)size - 1);
        tfw_tally block = {0}, spans = {0};
        span = (tfw_span){TFW_HEADER_SIZE, length};
        CHECK_EQ(TFW_OK, tfw_tally_block(&block, data, size, 0, NULL));
        CHECK_EQ(TFW_OK, tfw_tally_spans(&spans, data, size, &span, 1, 0, NULL));
        CHECK(memcmp(&block, &spans, sizeof block) == 0 && block.payload_bytes == length);
        CHECK_EQ(TFW_E_ARGUMENT, tfw_tally_spans(&spans, data, size - 1, &span, 1, 0, NULL));
        CHECK_EQ(TFW_OK, tfw_verify_record(data, data + TFW_HEADER_SIZE, length,
                                           data + size - TFW_FOOTER_SIZE, NULL));
        data[5] ^= 2; /* of the length */
        tfw_flip flip;
        CHECK_EQ(TFW_OK, tfw_correct(data, size, size, 0, &flip, NULL));
        CHECK(flip.byte == 5 && flip.bit == 1);
        munmap(data, size);
    }
}

/* Three records in a file with holes: found by their headers, and none is read for that. */
static void long_records_in_a_file(void) {
    int fd = memfd_create("large", 0);
    int64_t offsets[4] = {0};
    uint8_t header[TFW_HEADER_SIZE], footer[TFW_FOOTER_SIZE], buffer[4096];
    for (size_t i = 0; i < 3; i++) {
        const uint64_t length = i < 2 ? SIZES[i] : 7;
        put_frame(header, footer, length);
        offsets[i + 1] = offsets[i] + (int64_t)length + TFWI_FRAME_SIZE;
        CHECK_EQ(sizeof header, pwrite(fd, header, sizeof header, offsets[i]));
        CHECK_EQ(sizeof footer, pwrite(fd, footer, sizeof footer, offsets[i + 1] - 4));
    }
    uint64_t at = 0;
    int64_t found[4];
    size_t count;
    if (SIZE_MAX < SIZES[1]) { /* no memory holds them */
        CHECK_EQ(TFW_E_TOO_LARGE, tfw_walk(fd, (uint64_t)offsets[3], &at, buffer, sizeof buffer,
                                           found, 4, &count, NULL));
        close(fd);
        return;
    }
    CHECK_EQ(TFW_END, tfw_walk(fd, (uint64_t)offsets[3], &at, buffer, sizeof buffer, found, 4,
                               &count, NULL));
    CHECK(count == 3 && memcmp(found, offsets, 3 * sizeof *found) == 0);
    const tfw_reader_options options = {.size = sizeof options, .fd = fd,
                                        .offset = (uint64_t)offsets[2], .on_corrupt = 0};
    tfw_reader *reader;
    tfw_batch batch = {.size = sizeof batch};
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_OK, tfw_reader_next(reader, 0, &batch, NULL));
    CHECK(batch.count == 1 && batch.offset == (uint64_t)offsets[2]);
    tfw_reader_free(reader);
    close(fd);
}

int main(void) {
#ifndef TFW_TEST_QUICK /* emulated, it takes minutes */
    RUN(a_long_record_in_memory);
#endif
    RUN(long_records_in_a_file);
    return check_report("large");
}
