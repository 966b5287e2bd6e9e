/* SPDX-License-Identifier: Apache-2.0 */
/* The reader on hostile files: the work that they make is in proportion to their size. */
#include "records.h"

#include <sys/stat.h>

extern uint64_t tfwi_test_hashed;

static feeding in_pieces(size_t piece) { return (feeding){.piece = piece, .seed = 1}; }

static size_t bytes_read;

static ssize_t counting_pread(int fd, void *out, size_t len, off_t offset) {
    ssize_t got = pread(fd, out, len, offset);
    bytes_read += got > 0 ? (size_t)got : 0;
    return got;
}

static void hostile_lengths_are_refused_before_anything_is_read_for_them(void) {
    const uint64_t lengths[] = {UINT64_C(1) << 31, UINT64_C(1) << 40, INT64_MAX - 16,
                                INT64_MAX,         UINT64_C(1) << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (uint64_t limit = 0; limit <= 1 << 30; limit += 1 << 30) {
            file f = file_random(18, 2, 50);
            uint8_t rest[5000] = {0};
            file_append_header(&f, lengths[i]);
            file_append(&f, rest, sizeof rest);
            tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
            options.max_record_size = limit;
            feeding how = {0};
            outcome expected = model(&f, &options);
            outcome found = read_all(&f, &options, &how); /* fed: room grows with what arrived */
            CHECK_OUTCOME(&expected, &found);
            CHECK_EQ(2, found.count);
            CHECK_EQ(lengths[i] > tfwi_length_limit(limit) ? TFW_E_TOO_LARGE : TFW_E_TRUNCATED,
                     found.status);
            options.fd = file_open(&f);
            bytes_read = 0;
            tfwi_test_pread = counting_pread;
            found = read_all(&f, &options, &how);
            tfwi_test_pread = pread;
            CHECK_OUTCOME(&expected, &found);
            CHECK(bytes_read < 400);
            close(options.fd);
            free(f.data);
        }
    }
}

/* Headers that verify, one after the other, each promising all that follows: with a checksum
 * over each promise this would take hours. */
static void many_plausible_headers_are_searched_in_linear_time(void) {
    const size_t len = 1 << 20;
    file f = {0};
    f.data = malloc(len + 64);
    while (f.len + 12 < len) {
        uint8_t *header = f.data + f.len;
        tfwi_store64(header, len - f.len - 16);
        tfwi_store32(header + 8, tfwi_length_crc(tfwi_crc32c_current(), header));
        f.len += 12;
    }
    memset(f.data + f.len, 0, len - f.len);
    f.len = len;
    file_append_record(&f, "good", 4);
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    options.buffer_size = 0;
    for (int with_file = 0; with_file < 2; with_file++) {
        feeding how = in_pieces(5000);
        options.fd = with_file ? file_open(&f) : -1;
        outcome found = read_all(&f, &options, &how);
        CHECK_EQ(1, found.count);
        CHECK_EQ(len + 12, found.records[0].offset);
        CHECK_EQ(1, found.region_count);
        CHECK_EQ(len, found.regions[0].end);
    }
    close(options.fd);
    free(f.data);
}

/* Reads a file of that size that consists of headers which verify and promise so many bytes, or
 * half of what follows, but never just up to another header; the bytes checksummed for it. */
static uint64_t hashed_among_headers(size_t len, uint64_t promised) {
    file f = {.data = malloc(len), .len = len};
    for (size_t at = 0; at + 12 <= len; at += 12) {
        uint64_t rest = len - at - 12;
        tfwi_store64(f.data + at, promised < rest ? promised : rest / 2);
        tfwi_store32(f.data + at + 8, tfwi_length_crc(tfwi_crc32c_current(), f.data + at));
    }
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    options.buffer_size = 0;
    options.fd = file_open(&f);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    tfwi_test_hashed = 0;
    while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
    }
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
    return tfwi_test_hashed;
}

/* By what is counted, not by the clock: each byte is checksummed some ten times at most, and ten
 * times as much input takes ten times as much work. */
static void the_worst_input_is_checksummed_some_ten_times(void) {
    const uint64_t promised[] = {17, 101, 501, 5001, 200001, UINT64_MAX};
    const size_t len = 240000;
    for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++) {
        uint64_t once = hashed_among_headers(len, promised[i]);
        uint64_t often = hashed_among_headers(10 * len, promised[i]);
        CHECK(once > len && once <= 12 * len);
        CHECK(often <= 12 * once);
    }
}

/* The same between records that are good, so that the search ends and begins anew each time; and
 * what seems to be one flipped bit away from a record does not swallow them. */
static void good_records_between_plausible_headers_do_not_multiply_the_work(void) {
    const size_t len = 8 << 20;
    for (int kind = 0; kind < 4; kind++) {
        const bool searched = kind % 2 == 1;
        file f = {0};
        size_t good = 0;
        f.data = malloc(len + 64);
        while (f.len + 64 < len) {
            uint8_t *at = f.data + f.len;
            memcpy(at, "damage", 6); /* searched through, or else the header is met by the scan */
            at += searched ? 6 : 0;
            tfwi_store64(at, len - (size_t)(at - f.data) - 46); /* not just to the end */
            tfwi_store32(at + 8, tfwi_length_crc(tfwi_crc32c_current(), at));
            at += 12;
            tfwi_store64(at, 0); /* an empty record */
            tfwi_store32(at + 8, UINT32_C(0x07980329));
            tfwi_store32(at + 12, UINT32_C(0xa282ead8));
            f.len = (size_t)(at + 16 - f.data);
            good++;
        }
        memset(f.data + f.len, 0x55, len - f.len);
        f.len = len;
        tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
        feeding how = {0};
        options.buffer_size = 0;
        options.flags = kind / 2 == 1 ? TFW_CORRECT : 0;
        options.fd = file_open(&f);
        outcome *found = malloc(sizeof *found);
        *found = read_all(&f, &options, &how);
        CHECK_EQ(good, found->count);
        CHECK_EQ(good + 1, found->skipped_regions);
        CHECK_EQ(len - 16 * good, found->skipped_bytes);
        CHECK_EQ(TFW_MOST_REGIONS, found->region_count);
        close(options.fd);
        free(found);
        free(f.data);
    }
}

/* A candidate that runs over many windows is waited for, and its neighbours are still found. */
static void candidates_longer_than_the_window_are_decided(void) {
    file good = file_random(19, 3, 20000), f = {0};
    file_append(&f, "damage", 6);
    file_append_header(&f, 30000); /* not a record: its payload will not verify */
    file_append(&f, good.data, good.len);
    for (size_t piece = 50; piece < 100000; piece *= 9) {
        tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
        feeding how = in_pieces(piece);
        outcome expected = model(&f, &options);
        outcome found = read_all(&f, &options, &how);
        CHECK_EQ(3, expected.count);
        CHECK_OUTCOME(&expected, &found);
    }
    free(good.data);
    free(f.data);
}

int main(void) {
    RUN(hostile_lengths_are_refused_before_anything_is_read_for_them);
    RUN(many_plausible_headers_are_searched_in_linear_time);
    RUN(the_worst_input_is_checksummed_some_ten_times);
    RUN(good_records_between_plausible_headers_do_not_multiply_the_work);
    RUN(candidates_longer_than_the_window_are_decided);
    return check_report("resync_hostile");
}
