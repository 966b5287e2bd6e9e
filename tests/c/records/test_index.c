/* SPDX-License-Identifier: Apache-2.0 */
/* Random access: the walk over headers, and records by number. */
#include "records.h"

#include <errno.h>

/* ---- A source that misbehaves --------------------------------------------------------------- */

static long calls_until_failure = -1;
static int failure;
static size_t most_bytes = SIZE_MAX;
static size_t bytes_read;

static ssize_t odd_pread(int fd, void *out, size_t len, off_t offset) {
    if (calls_until_failure >= 0 && calls_until_failure-- == 0) {
        errno = failure;
        return -1;
    }
    ssize_t got = pread(fd, out, len < most_bytes ? len : most_bytes, offset);
    bytes_read += got > 0 ? (size_t)got : 0;
    return got;
}

/* ---- The walk ------------------------------------------------------------------------------- */

typedef struct walked {
    int64_t offsets[LOG_MAX];
    size_t count;
    uint64_t end;
    int status;
    tfw_error error;
} walked;

/* Walks to the end or to damage, so many records and so large a buffer at a time. */
static walked walk_all(int fd, uint64_t end, size_t at_once, size_t buffer_len) {
    walked w = {.status = TFW_OK};
    uint8_t *buffer = malloc(buffer_len);
    while (w.status == TFW_OK) {
        size_t count = 0;
        size_t room = LOG_MAX - w.count < at_once ? LOG_MAX - w.count : at_once;
        w.status = tfw_walk(fd, end, &w.end, buffer, buffer_len, w.offsets + w.count, room,
                            &count, &w.error);
        CHECK(count <= room);
        CHECK(w.status != TFW_OK || count == room);
        w.error.record += (int64_t)w.count;
        w.count += count;
    }
    free(buffer);
    return w;
}

/* The first so many records of a file are found, and then that comes. */
static void check_walk(const file *f, const walked *w, size_t count, int status) {
    CHECK_EQ(status, w->status);
    CHECK_EQ(count, w->count);
    for (size_t i = 0; i < count && i < w->count; i++) {
        CHECK_EQ(file_begin(f, i), w->offsets[i]);
    }
    CHECK_EQ(file_begin(f, count), w->end);
    if (status < 0) {
        CHECK_EQ(count, w->error.record);
        CHECK_EQ(file_begin(f, count), w->error.offset);
        CHECK(w->error.text[0] != '\0');
    }
}

static void every_record_is_found_whatever_the_buffer(void) {
    const size_t largest[] = {0, 40, 700, 9000, 60000};
    const size_t buffers[] = {12, 13, 100, 4096, 70000};
    const size_t at_once[] = {1, 7, 300, LOG_MAX};
    for (size_t l = 0; l < 5; l++) {
        file f = file_random(l, l < 3 ? 600 : 50, largest[l]);
        int fd = file_open(&f);
        for (size_t b = 0; b < 5; b++) {
            for (size_t k = 0; k < 4; k++) {
                walked w = walk_all(fd, f.len, at_once[k], buffers[b]);
                check_walk(&f, &w, f.count, TFW_END);
            }
        }
        close(fd);
        free(f.data);
    }
}

static void long_payloads_are_not_read(void) {
    file f = {0};
    uint8_t *payload = calloc(1, 100000);
    for (size_t i = 0; i < 50; i++) {
        file_append_record(&f, payload, 4096 + i * 1900);
    }
    int fd = file_open(&f);
    bytes_read = 0;
    tfwi_test_pread = odd_pread;
    walked w = walk_all(fd, f.len, LOG_MAX, 1 << 18);
    tfwi_test_pread = pread;
    check_walk(&f, &w, f.count, TFW_END);
    CHECK_EQ(50 * TFW_HEADER_SIZE, bytes_read);
    close(fd);
    free(payload);
    free(f.data);
}

static void an_empty_file_ends_at_once(void) {
    file f = file_random(1, 0, 0);
    int fd = file_open(&f);
    walked w = walk_all(fd, 0, 10, 12);
    check_walk(&f, &w, 0, TFW_END);
    close(fd);
    free(f.data);
}

static void every_cut_is_found_at_its_record(void) {
    file f = file_random(3, 8, 60);
    for (size_t len = 0; len <= f.len; len++) {
        file cut = f;
        cut.len = len;
        int fd = file_open(&cut);
        size_t whole = 0;
        while (whole < f.count && f.ends[whole] <= len) {
            whole++;
        }
        int status = file_begin(&f, whole) == len ? TFW_END : TFW_E_TRUNCATED;
        const size_t buffers[] = {12, 50, 5000};
        for (size_t b = 0; b < 3; b++) {
            walked w = walk_all(fd, len, 3, buffers[b]);
            check_walk(&f, &w, whole, status);
        }
        close(fd);
    }
    free(f.data);
}

static void a_file_cut_under_the_walk_is_an_error(void) {
    file f = file_random(4, 8, 60);
    for (size_t len = 0; len < f.len; len++) {
        file cut = f;
        cut.len = len;
        int fd = file_open(&cut);
        walked w = walk_all(fd, f.len, 3, 50);
        bool has_headers = len >= file_begin(&f, f.count - 1) + TFW_HEADER_SIZE;
        CHECK_EQ(has_headers ? TFW_END : TFW_E_TRUNCATED, w.status);
        if (len < TFW_HEADER_SIZE) { /* said of what is there: nothing after it is looked at */
            CHECK_EQ(TFW_HEADER_SIZE, w.error.expected);
            CHECK_EQ(len, w.error.found);
        }
        close(fd);
    }
    free(f.data);
}

static void every_flipped_bit_of_a_header_is_found(void) {
    file f = file_random(5, 5, 40);
    for (size_t bit = 0; bit < 8 * f.len; bit++) {
        f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int fd = file_open(&f);
        size_t record = 0;
        while (f.ends[record] <= bit / 8) {
            record++;
        }
        bool in_header = bit / 8 - file_begin(&f, record) < TFW_HEADER_SIZE;
        walked w = walk_all(fd, f.len, LOG_MAX, 64);
        if (in_header) {
            check_walk(&f, &w, record, TFW_E_LENGTH_CRC);
        } else { /* payloads are not looked at */
            check_walk(&f, &w, f.count, TFW_END);
        }
        close(fd);
        f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(f.data);
}

static void absurd_lengths_are_errors(void) {
    const uint64_t lengths[] = {100, 1u << 31, UINT64_C(1) << 40, INT64_MAX - 15, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        file f = file_random(6, 3, 50);
        file_append_header(&f, lengths[i]);
        int fd = file_open(&f);
        int status = lengths[i] > tfwi_length_limit(0) ? TFW_E_TOO_LARGE : TFW_E_TRUNCATED;
        for (size_t buffer_len = 12; buffer_len < 10000; buffer_len *= 3) {
            walked w = walk_all(fd, f.len, LOG_MAX, buffer_len);
            check_walk(&f, &w, 3, status);
        }
        close(fd);
        free(f.data);
    }
}

static void arguments_that_make_no_sense_are_refused(void) {
    uint8_t buffer[12];
    int64_t offsets[2];
    size_t count = 9;
    uint64_t offset = 5;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_walk(0, 4, &offset, buffer, 12, offsets, 2, &count, NULL));
    CHECK_EQ(0, count);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_walk(0, 9, &offset, buffer, 11, offsets, 2, &count, NULL));
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_walk(0, UINT64_MAX, &offset, buffer, 12, offsets, 2, &count, NULL));
}

static void bad_reads_lose_nothing(void) {
    file f = file_random(7, 30, 300);
    int fd = file_open(&f);
    tfwi_test_pread = odd_pread;
    for (most_bytes = 1; most_bytes < 200; most_bytes += most_bytes / 2 + 1) {
        walked w = walk_all(fd, f.len, 11, 500);
        check_walk(&f, &w, f.count, TFW_END);
    }
    failure = EINTR;
    calls_until_failure = 1;
    walked w = walk_all(fd, f.len, 11, 500);
    check_walk(&f, &w, f.count, TFW_END);
    failure = EIO;
    for (long n = 0; n < 5; n++) {
        calls_until_failure = n;
        w = walk_all(fd, f.len, LOG_MAX, 100);
        CHECK_EQ(TFW_E_IO, w.status);
        CHECK_EQ(EIO, w.error.os_errno);
        calls_until_failure = 0;
        uint8_t buffer[100];
        size_t count;
        CHECK_EQ(TFW_E_IO, tfw_walk(fd, f.len, &w.end, buffer, 100, w.offsets, 1, &count, NULL));
    }
    most_bytes = SIZE_MAX;
    tfwi_test_pread = pread;
    close(fd);
    free(f.data);
}

static void a_record_in_pieces_is_verified(void) {
    file f = {0};
    file_append_record(&f, "payload", 7);
    uint8_t *payload = f.data + 12;
    tfw_error error;
    CHECK_EQ(TFW_OK, tfw_verify_record(f.data, payload, 7, payload + 7, NULL));
    CHECK_EQ(TFW_E_INDEX, tfw_verify_record(f.data, payload, 6, payload + 6, &error));
    CHECK(strcmp(error.text, "record of 7 bytes where the index says 6") == 0);
    CHECK_EQ(TFW_E_DATA_CRC, tfw_verify_record(f.data, payload, 7, payload, NULL));
    f.data[9] ^= 1;
    CHECK_EQ(TFW_E_LENGTH_CRC, tfw_verify_record(f.data, payload, 7, payload + 7, &error));
    CHECK_EQ(-1, error.record);
    free(f.data);
}

int main(void) {
    RUN(every_record_is_found_whatever_the_buffer);
    RUN(long_payloads_are_not_read);
    RUN(an_empty_file_ends_at_once);
    RUN(every_cut_is_found_at_its_record);
    RUN(a_file_cut_under_the_walk_is_an_error);
    RUN(every_flipped_bit_of_a_header_is_found);
    RUN(absurd_lengths_are_errors);
    RUN(arguments_that_make_no_sense_are_refused);
    RUN(bad_reads_lose_nothing);
    RUN(a_record_in_pieces_is_verified);
    return check_report("index");
}
