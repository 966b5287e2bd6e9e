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

/* ---- Records by number ---------------------------------------------------------------------- */

enum { NUMBERS = 200 };

static void offsets_of(const file *f, int64_t *offsets) {
    for (size_t i = 0; i <= f->count; i++) {
        offsets[i] = (int64_t)file_begin(f, i);
    }
}

/* Fetches all numbers, call by call, and compares each payload; the number of calls. */
static size_t fetch_all(const file *f, int fd, const int64_t *numbers, size_t count,
                        size_t capacity) {
    int64_t offsets[LOG_MAX + 1];
    tfw_span spans[NUMBERS];
    size_t first = 0;
    size_t calls = 0;
    offsets_of(f, offsets);
    while (first < count) {
        uint8_t *out = malloc(capacity + 1);
        size_t done = 0;
        tfw_error error;
        int status = tfw_fetch(fd, offsets, numbers + first, count - first, out, capacity, spans,
                               &done, &error);
        CHECK_EQ(done < count - first ? TFW_NEED_SPACE : TFW_OK, status);
        if (status == TFW_NEED_SPACE && done == 0) {
            CHECK((size_t)error.expected > capacity);
            capacity = (size_t)error.expected;
        }
        for (size_t i = 0; i < done; i++) {
            size_t begin = file_begin(f, (size_t)numbers[first + i]);
            CHECK_EQ(f->ends[numbers[first + i]] - begin - TFWI_FRAME_SIZE, spans[i].length);
            CHECK(spans[i].offset + spans[i].length <= capacity);
            CHECK(memcmp(out + spans[i].offset, f->data + begin + TFW_HEADER_SIZE,
                         (size_t)spans[i].length) == 0);
        }
        free(out);
        first += done;
        calls++;
    }
    return calls;
}

static void any_numbers_in_any_room_give_their_records(void) {
    const size_t rooms[] = {0, 16, 100, 3000, 1 << 20};
    uint64_t state = 1;
    for (size_t l = 0; l < 4; l++) {
        file f = file_random(l, 100, l == 0 ? 0 : l == 1 ? 50 : l == 2 ? 900 : 20000);
        int fd = file_open(&f);
        for (size_t order = 0; order < 4; order++) {
            int64_t numbers[NUMBERS];
            for (size_t i = 0; i < NUMBERS; i++) {
                uint64_t random = check_random(&state) % f.count;
                numbers[i] = (int64_t)(order == 0   ? i / 2         /* ascending, twice */
                                       : order == 1 ? 99 - i / 2    /* descending */
                                       : order == 2 ? i / 20 * 9    /* with gaps */
                                                    : random);
            }
            for (size_t r = 0; r < 5; r++) {
                CHECK(fetch_all(&f, fd, numbers, NUMBERS, rooms[r]) >= 1);
            }
            if (order != 1 && order != 3) { /* ascending numbers share their room */
                CHECK_EQ(1, fetch_all(&f, fd, numbers, NUMBERS, 1 << 22));
            }
        }
        close(fd);
        free(f.data);
    }
}

static void every_flipped_bit_is_found_at_its_record(void) {
    file f = file_random(11, 4, 30);
    int64_t offsets[LOG_MAX + 1];
    const int64_t numbers[] = {0, 1, 2, 3};
    offsets_of(&f, offsets);
    for (size_t bit = 0; bit < 8 * f.len; bit++) {
        uint8_t out[1024];
        tfw_span spans[4];
        size_t done = 0;
        tfw_error error;
        f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int fd = file_open(&f);
        size_t record = 0;
        while (f.ends[record] <= bit / 8) {
            record++;
        }
        bool in_header = bit / 8 - file_begin(&f, record) < TFW_HEADER_SIZE;
        int status = tfw_fetch(fd, offsets, numbers, 4, out, sizeof out, spans, &done, &error);
        CHECK_EQ(in_header ? TFW_E_LENGTH_CRC : TFW_E_DATA_CRC, status);
        CHECK_EQ(record, done);
        CHECK_EQ(record, error.record);
        CHECK_EQ(offsets[record], error.offset);
        CHECK(strstr(error.text, "checksum") != NULL);
        close(fd);
        f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(f.data);
}

/* Fetches one record that the offsets place at [begin, end). */
static int fetch_at(int fd, int64_t begin, int64_t end, tfw_error *error) {
    const int64_t offsets[] = {begin, end};
    const int64_t number = 0;
    uint8_t out[4096];
    tfw_span span;
    size_t done = 0;
    int status = tfw_fetch(fd, offsets, &number, 1, out, sizeof out, &span, &done, error);
    CHECK_EQ(status == TFW_OK, done);
    return status;
}

/* Its length agrees with offsets that leave no bytes for a frame: 0 - 16. Whatever follows it must
 * not make it part of what is read. */
static void a_record_of_no_bytes_in_front_of_others_is_refused(void) {
    file f = {0};
    file_append_header(&f, UINT64_MAX - TFWI_FRAME_SIZE + 1);
    file_append(&f, "0123456789", 10);
    int fd = file_open(&f);
    const int64_t offsets[] = {0, 0, 16};
    const int64_t numbers[] = {0, 1};
    uint8_t out[64];
    tfw_span spans[2];
    size_t done = 0;
    CHECK_EQ(TFW_E_ARGUMENT,
             tfw_fetch(fd, offsets, numbers, 2, out, sizeof out, spans, &done, NULL));
    CHECK_EQ(0, done);
    close(fd);
    free(f.data);
}

static void only_the_right_offsets_give_a_record(void) {
    file f = file_random(12, 5, 50);
    int fd = file_open(&f);
    for (size_t begin = 0; begin < f.len; begin++) {
        for (size_t end = begin; end < f.len + 20; end++) {
            bool right = false;
            bool header = false;
            tfw_error error;
            for (size_t i = 0; i < f.count; i++) {
                header = header || file_begin(&f, i) == begin;
                right = right || (file_begin(&f, i) == begin && f.ends[i] == end);
            }
            int expected = end - begin < TFWI_FRAME_SIZE ? TFW_E_ARGUMENT
                           : right                       ? TFW_OK
                           : end > f.len                 ? TFW_E_TRUNCATED
                           : header                      ? TFW_E_INDEX
                                                         : TFW_E_LENGTH_CRC;
            CHECK_EQ(expected, fetch_at(fd, (int64_t)begin, (int64_t)end, &error));
        }
    }
    close(fd);
    free(f.data);
}

static void offsets_of_no_file_are_refused(void) {
    const int64_t pairs[][2] = {
        {-1, 100},         {INT64_MIN, INT64_MAX}, {INT64_MIN, INT64_MIN}, {100, 50},
        {INT64_MAX, 0},    {0, INT64_MIN},         {5, 20},
        {INT64_MAX - 100, INT64_MAX},
    };
    file f = file_random(13, 5, 50);
    int fd = file_open(&f);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int64_t offsets[] = {0, (int64_t)f.ends[0], pairs[i][0], pairs[i][1]};
        const int64_t numbers[] = {0, 2};
        uint8_t out[4096];
        tfw_span spans[2];
        size_t done = 0;
        CHECK_EQ(TFW_E_ARGUMENT, tfw_fetch(fd, offsets, numbers, 2, out, sizeof out, spans, &done,
                                           NULL));
        CHECK_EQ(1, done);
    }
    tfw_error error;
    CHECK_EQ(TFW_NEED_SPACE, fetch_at(fd, 0, INT64_MAX / 2, &error));
    CHECK_EQ(INT64_MAX / 2, error.expected);
    CHECK_EQ(TFW_NEED_SPACE, fetch_at(fd, 0, INT64_MAX / 2, NULL));
    close(fd);
    free(f.data);
}

static void bad_reads_of_records_are_patient_or_reported(void) {
    file f = file_random(14, 20, 500);
    int fd = file_open(&f);
    int64_t numbers[20];
    for (int64_t i = 0; i < 20; i++) {
        numbers[i] = i;
    }
    tfwi_test_pread = odd_pread;
    for (most_bytes = 1; most_bytes < 300; most_bytes += most_bytes / 2 + 1) {
        CHECK_EQ(1, fetch_all(&f, fd, numbers, 20, 1 << 16));
    }
    failure = EINTR;
    calls_until_failure = 2;
    CHECK_EQ(1, fetch_all(&f, fd, numbers, 20, 1 << 16));
    failure = EIO;
    calls_until_failure = 1;
    tfw_error error;
    CHECK_EQ(TFW_E_IO, fetch_at(fd, 0, 2000, &error));
    CHECK_EQ(EIO, error.os_errno);
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
    RUN(any_numbers_in_any_room_give_their_records);
    RUN(every_flipped_bit_is_found_at_its_record);
    RUN(a_record_of_no_bytes_in_front_of_others_is_refused);
    RUN(only_the_right_offsets_give_a_record);
    RUN(offsets_of_no_file_are_refused);
    RUN(bad_reads_of_records_are_patient_or_reported);
    RUN(a_record_in_pieces_is_verified);
    return check_report("index");
}
