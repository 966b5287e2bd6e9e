/* SPDX-License-Identifier: Apache-2.0 */
/* What records add up to: their hash in any order, the CRC of the file that they make. */
#include "check.h"
#include "records/frame.h"

#include <stdlib.h>

static const size_t LENGTHS[] = {0, 1, 4079, 4095, 4096, 4097, 50000, 3, 100000, 0};
enum { COUNT = sizeof LENGTHS / sizeof LENGTHS[0], ROOM = 200000 };

/* A file of random records of those lengths; *out_ends[i] is where record i ends. */
static uint8_t *make_file(size_t *out_len, size_t *out_ends) {
    uint8_t *data = calloc(1, ROOM);
    tfw_span spans[COUNT];
    uint64_t state = 9;
    size_t len = 0;
    for (size_t i = 0; i < COUNT; i++) {
        spans[i] = (tfw_span){len + TFW_HEADER_SIZE, LENGTHS[i]};
        len += LENGTHS[i] + TFWI_FRAME_SIZE;
        out_ends[i] = len;
    }
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(check_random(&state) >> 56);
    }
    CHECK_EQ(TFW_OK, tfw_frame(data, len, spans, COUNT, NULL));
    *out_len = len;
    return data;
}

static tfw_tally tally_of(const uint8_t *data, size_t len, unsigned flags) {
    tfw_tally tally = {0};
    CHECK_EQ(TFW_OK, tfw_tally_block(&tally, data, len, flags, NULL));
    return tally;
}

static void the_checksum_of_a_file_follows_from_its_records(void) {
    size_t len, ends[COUNT];
    uint8_t *data = make_file(&len, ends);
    CHECK_EQ(tfw_crc32c(0, data, len), tally_of(data, len, 0).file_crc);
    for (size_t i = 0; i < COUNT; i++) {
        tfw_tally tally = tally_of(data, ends[i], 0);
        CHECK_EQ(tfw_crc32c(0, data, ends[i]), tally.file_crc);
        CHECK_EQ(i + 1, tally.records);
        CHECK_EQ(TFW_OK, tfw_tally_block(&tally, data + ends[i], len - ends[i], 0, NULL));
        CHECK_EQ(tfw_crc32c(0, data, len), tally.file_crc);
    }
    free(data);
}

static void records_told_by_checksum_and_length_count_the_same(void) {
    size_t len, ends[COUNT];
    uint8_t *data = make_file(&len, ends);
    tfw_tally expected = tally_of(data, len, 0), tally = {0};
    for (size_t i = 0; i < COUNT; i++) {
        const uint8_t *payload = data + ends[i] - TFW_FOOTER_SIZE - LENGTHS[i];
        tfw_tally_record(&tally, tfw_crc32c(0, payload, LENGTHS[i]), LENGTHS[i]);
    }
    CHECK_EQ(0, memcmp(&expected, &tally, sizeof tally));
    free(data);
}

static void the_hash_is_a_sum_of_known_terms(void) {
    const struct {
        uint32_t crc;
        uint64_t length, hash;
    } golden[] = {
        /* From a reference in Python. */
        {0, 0, UINT64_C(0xe220a8397b1dcdaf)},
        {0xe3069283, 9, UINT64_C(0x6b977a09fd0230e7)},
        {1, UINT64_C(0x100000001), UINT64_C(0xc42c5a1aa3820138)},
    };
    tfw_tally tally = {0};
    uint64_t sum = 0, bytes = 0;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        tfw_tally_record(&tally, golden[i].crc, golden[i].length);
        sum += golden[i].hash;
        bytes += golden[i].length;
        CHECK_EQ(sum, tally.hash);
        CHECK_EQ(bytes, tally.payload_bytes);
        CHECK_EQ(i + 1, tally.records);
    }
}

static void unverified_payloads_are_checksummed_as_they_are(void) {
    size_t len, ends[COUNT];
    uint8_t *data = make_file(&len, ends);
    tfw_tally intact = tally_of(data, len, 0);
    data[ends[6] - 100] ^= 1;
    tfw_tally tally = tally_of(data, len, TFW_NO_DATA_CRC);
    CHECK_EQ(tfw_crc32c(0, data, len), tally.file_crc);
    CHECK_EQ(intact.hash, tally.hash); /* what the footers hold */
    free(data);
}

static void a_block_that_does_not_end_with_a_record_adds_nothing(void) {
    size_t len, ends[COUNT];
    uint8_t *data = make_file(&len, ends);
    for (size_t cut = 1; cut <= ends[2]; cut++) {
        bool whole = false;
        for (size_t i = 0; i < COUNT; i++) {
            whole |= ends[i] == cut;
        }
        uint8_t *part = malloc(cut); /* so that the sanitizer sees a read past it */
        memcpy(part, data, cut);
        tfw_tally tally = {.records = 7};
        tfw_error error;
        int status = tfw_tally_block(&tally, part, cut, 0, &error);
        CHECK_EQ(whole ? TFW_OK : TFW_E_ARGUMENT, status);
        CHECK(whole || tally.records == 7);
        free(part);
    }
    tfwi_store64(data, UINT64_MAX - 3); /* a length that would overflow */
    tfw_tally tally = {0};
    CHECK_EQ(TFW_E_ARGUMENT, tfw_tally_block(&tally, data, len, 0, NULL));
    free(data);
}

static void lengths_of_spans_lower_and_raise(void) {
    const tfw_span spans[] = {{0, 9}, {25, 3}, {44, UINT64_MAX}};
    uint64_t shortest = 5, longest = 7;
    tfw_span_lengths(spans, 0, &shortest, &longest);
    CHECK_EQ(5, shortest);
    CHECK_EQ(7, longest);
    tfw_span_lengths(spans, 1, &shortest, &longest);
    CHECK_EQ(5, shortest);
    CHECK_EQ(9, longest);
    tfw_span_lengths(spans, 3, &shortest, &longest);
    CHECK_EQ(3, shortest);
    CHECK(longest == UINT64_MAX);
}

static void hashes_depend_on_every_byte_and_the_seed(void) {
    uint8_t data[300] = {0};
    uint64_t before[150], after[150], other[150];
    tfw_span spans[150];
    for (size_t i = 0; i < 150; i++) {
        spans[i] = (tfw_span){i, i};
    }
    CHECK_EQ(TFW_OK, tfw_hash_spans(7, data, 300, spans, 150, before, NULL));
    CHECK_EQ(TFW_OK, tfw_hash_spans(8, data, 300, spans, 150, other, NULL));
    for (size_t i = 1; i < 150; i++) {
        CHECK(before[i] != before[i - 1]); /* all zeros, but longer */
        CHECK(before[i] != other[i]);
    }
    for (size_t at = 0; at < 300; at++) {
        data[at] ^= 0x10;
        CHECK_EQ(TFW_OK, tfw_hash_spans(7, data, 300, spans, 150, after, NULL));
        for (size_t i = 0; i < 150; i++) {
            CHECK((before[i] == after[i]) == (at < i || at >= 2 * i));
        }
        data[at] ^= 0x10;
    }
}

int main(void) {
    RUN(hashes_depend_on_every_byte_and_the_seed);
    RUN(lengths_of_spans_lower_and_raise);
    RUN(the_checksum_of_a_file_follows_from_its_records);
    RUN(records_told_by_checksum_and_length_count_the_same);
    RUN(the_hash_is_a_sum_of_known_terms);
    RUN(unverified_payloads_are_checksummed_as_they_are);
    RUN(a_block_that_does_not_end_with_a_record_adds_nothing);
    return check_report("tally");
}
