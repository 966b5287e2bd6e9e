/* SPDX-License-Identifier: Apache-2.0 */
/* The buffered reader on sound files, with sources and memory that misbehave. */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static void feeding_in_any_pieces_gives_the_same_records(void) {
    const size_t pieces[] = {1, 2, 3, 7, 4096, 1 << 20, 0, 0, 0};
    const uint64_t buffers[] = {0, 1, 64, 1000, 5000};
    const size_t largest[] = {0, 40, 90, 9000};
    for (size_t l = 0; l < 4; l++) {
        file f = file_random(l, 60, largest[l]);
        tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
        outcome expected = model(&f, &options);
        CHECK_EQ(60, expected.count);
        for (size_t p = 0; p < 9; p++) {
            for (size_t b = 0; b < 5; b++) {
                feeding how = {.piece = pieces[p], .seed = p + 1, .max_records = (p + b) % 4};
                options.buffer_size = buffers[b];
                outcome found = read_all(&f, &options, &how);
                CHECK_OUTCOME(&expected, &found);
            }
        }
        free(f.data);
    }
}

static void files_are_read_like_fed_bytes(void) {
    const uint64_t buffers[] = {0, 1, 100, 5000, 1 << 20};
    for (size_t l = 0; l < 40; l++) {
        file f = file_random(l, l, l % 3 == 0 ? 30000 : 100);
        int fd = file_open(&f);
        tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
        outcome expected = model(&f, &options);
        feeding how = {.max_records = l % 5};
        options.fd = fd;
        options.buffer_size = buffers[l % 5];
        outcome found = read_all(&f, &options, &how);
        CHECK_OUTCOME(&expected, &found);
        if (l > 3) { /* from the third record on: offsets are the file's, numbers begin at 0 */
            options.offset = f.ends[2];
            expected = model(&f, &options);
            found = read_all(&f, &options, &how);
            CHECK_EQ(l - 3, found.count);
            CHECK_OUTCOME(&expected, &found);
        }
        close(fd);
        free(f.data);
    }
}

static void small_batches_come_from_one_scan(void) {
    file f = file_random(1, 50, 30);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    options.buffer_size = 1 << 16;
    options.fd = file_open(&f);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_OK, tfw_reader_next(reader, 1, &batch, NULL));
    const uint8_t *data = batch.data;
    const tfw_span *spans = batch.spans;
    for (size_t i = 1; i < 50; i++) {
        CHECK_EQ(TFW_OK, tfw_reader_next(reader, 1, &batch, NULL));
        CHECK_EQ(i, batch.first_record);
        CHECK(batch.data == data && batch.spans == spans + i);
    }
    CHECK_EQ(TFW_END, tfw_reader_next(reader, 1, &batch, NULL));
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

/* Room may be asked for while records of the last scan are still to be delivered. */
static void reserving_early_keeps_what_is_not_delivered(void) {
    file f = file_random(3, 40, 30);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader = NULL;
    outcome o = {0};
    feeding how = {.piece = 3000, .max_records = 1};
    tfw_batch batch = {.size = sizeof batch};
    size_t fed = 0;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    while (fed < f.len) {
        CHECK_EQ(TFW_OK, feed(reader, &f, &fed, &how, NULL));
        if (tfw_reader_next(reader, 1, &batch, NULL) == TFW_OK) {
            take(&o, &f, &batch, &how);
        }
    }
    while (tfw_reader_next(reader, 1, &batch, NULL) == TFW_OK) {
        take(&o, &f, &batch, &how);
    }
    CHECK_EQ(40, o.count);
    for (size_t i = 0; i < 40; i++) {
        CHECK_EQ(file_begin(&f, i) + 12, o.records[i].offset);
    }
    tfw_reader_free(reader);
    free(f.data);
}

static void empty_input_ends_at_once(void) {
    file f = {.data = malloc(1)};
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    feeding how = {.piece = 1};
    outcome found = read_all(&f, &options, &how);
    CHECK_EQ(TFW_END, found.status);
    options.fd = file_open(&f);
    found = read_all(&f, &options, &how);
    CHECK_EQ(TFW_END, found.status);
    options.offset = 1000; /* past the end */
    found = read_all(&f, &options, &how);
    CHECK_EQ(TFW_END, found.status);
    close(options.fd);
    free(f.data);
    tfw_reader_free(NULL);
}

static void options_that_make_no_sense_are_refused(void) {
    const tfw_reader_options good = options_for(TFW_CORRUPT_RAISE);
    tfw_reader_options bad[8];
    for (size_t i = 0; i < 8; i++) {
        bad[i] = good;
    }
    bad[0].size = 0;
    bad[1].fd = -2;
    bad[2].flags = 8;
    bad[3].on_corrupt = 4;
    bad[4].reserved = 1;
    bad[5].offset = UINT64_MAX;
    bad[6].buffer_size = UINT64_MAX;
    bad[7].size = sizeof good + 1;
    for (size_t i = 0; i < 8; i++) {
        tfw_reader *reader = (tfw_reader *)&bad;
        tfw_error error;
        CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_create(&bad[i], &reader, &error));
        CHECK(reader == NULL && error.text[0] != 0);
    }
}

static void misuse_of_the_fed_source_is_refused(void) {
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader = NULL;
    uint8_t *room = NULL;
    size_t len = 99;
    tfw_batch batch = {.size = sizeof batch};
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_NEED_INPUT, tfw_reader_next(reader, 0, &batch, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, 1, NULL));
    CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, len + 1, NULL));
    CHECK_EQ(TFW_OK, tfw_reader_commit(reader, 0, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, 0, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_reserve(reader, &room, &len, NULL));
    CHECK(room == NULL && len == 0);
    CHECK_EQ(TFW_END, tfw_reader_next(reader, 0, &batch, NULL));
    tfw_reader_free(reader);
    options.fd = 0;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_reserve(reader, &room, &len, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, 0, NULL));
    tfw_reader_free(reader);
}

static void feed_all(tfw_reader *reader, const uint8_t *bytes, size_t len) {
    uint8_t *room;
    size_t size;
    CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &size, NULL));
    CHECK(size >= len);
    memcpy(room, bytes, len);
    CHECK_EQ(TFW_OK, tfw_reader_commit(reader, len, NULL));
}

/* What was cut at an end stays cut. */
static void input_that_goes_on_after_an_end_begins_anew(void) {
    file f = file_random(3, 3, 40);
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    tfw_reader *reader;
    tfw_batch batch = {.size = sizeof batch};
    tfw_region region;
    size_t cut = f.ends[1] + 5, again = file_begin(&f, 1), count = 0;
    options.buffer_size = 4096;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    feed_all(reader, f.data, cut);
    feed_all(reader, f.data, 0);
    while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
        count += (size_t)batch.count;
    }
    CHECK_EQ(2, count);
    CHECK_EQ(TFW_END, tfw_reader_next(reader, 0, &batch, NULL));
    feed_all(reader, f.data + again, f.len - again);
    CHECK_EQ(TFW_OK, tfw_reader_next(reader, 0, &batch, NULL));
    CHECK_EQ(2, batch.count);
    CHECK_EQ(3, batch.first_record); /* the one that was cut counts */
    CHECK_EQ(cut, batch.offset);
    CHECK_EQ(1, tfw_reader_skipped(reader, 0, &region, 1));
    CHECK(region.begin == f.ends[1] && region.end == cut && region.reason == TFW_E_TRUNCATED);
    feed_all(reader, f.data, 0);
    CHECK_EQ(TFW_END, tfw_reader_next(reader, 0, &batch, NULL));
    tfw_reader_free(reader);
    free(f.data);
}

/* ---- A source that misbehaves --------------------------------------------------------------- */

static long calls_until_failure; /* the call that finds 0 fails */
static size_t most_bytes;        /* of a read that works */
static int failure;              /* errno, or 0: the file ends */

static ssize_t bad_pread(int fd, void *out, size_t len, off_t offset) {
    if (calls_until_failure-- == 0) {
        errno = failure;
        return failure != 0 ? -1 : 0;
    }
    return pread(fd, out, len < most_bytes ? len : most_bytes, offset);
}

static outcome read_badly(const file *f, const tfw_reader_options *options, feeding *how,
                          long calls, size_t bytes, int code) {
    calls_until_failure = calls;
    most_bytes = bytes;
    failure = code;
    tfwi_test_pread = bad_pread;
    outcome o = read_all(f, options, how);
    tfwi_test_pread = pread;
    return o;
}

static void short_interrupted_and_failing_reads_lose_nothing(void) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        file f = file_random(seed, 12, seed % 2 ? 60 : 700);
        file_append(&f, "stray", seed == 3 ? 5 : 0);
        tfw_reader_options options = options_for(seed == 3 ? TFW_CORRUPT_TAIL : TFW_CORRUPT_RAISE);
        outcome expected = model(&f, &options);
        options.fd = file_open(&f);
        for (size_t bytes = 1; bytes < 100; bytes += bytes / 3 + 1) {
            feeding how = {0};
            outcome found = read_badly(&f, &options, &how, -1, bytes, 0);
            CHECK_OUTCOME(&expected, &found);
        }
        bool failed = true;
        for (long n = 0; failed; n++) {
            feeding how = {.retry = true};
            outcome found = read_badly(&f, &options, &how, n, 100, EINTR);
            CHECK_OUTCOME(&expected, &found);
            CHECK_EQ(0, how.failures);
            found = read_badly(&f, &options, &how, n, 100, EIO);
            failed = calls_until_failure < 0;
            CHECK_OUTCOME(&expected, &found);
            CHECK_EQ(failed, how.failures);
        }
        close(options.fd);
        free(f.data);
    }
}

/* A file that is cut while it is read: whole records, then an end or a truncated record. */
static void a_file_cut_under_the_reader_is_an_end_or_an_error(void) {
    file f = file_random(5, 12, 200);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    options.fd = file_open(&f);
    for (long n = 0; n < 20; n++) {
        feeding how = {0};
        file cut = f;
        cut.len = (size_t)n * 50 < f.len ? (size_t)n * 50 : f.len;
        outcome expected = model(&cut, &options);
        outcome found = read_badly(&f, &options, &how, n, 50, 0);
        CHECK_OUTCOME(&expected, &found);
    }
    close(options.fd);
    free(f.data);
}

#if !defined(_WIN32) && !defined(__wasi__) /* they have no such paths */
static void reading_errors_carry_errno_and_offset(void) {
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error;
    options.fd = open("/", O_RDONLY);
    options.offset = 7;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, &error));
    CHECK_EQ(TFW_E_IO, tfw_reader_next(reader, 0, &batch, &error));
    CHECK_EQ(EISDIR, error.os_errno);
    CHECK_EQ(7, error.offset);
    CHECK_EQ(TFW_E_IO, tfw_reader_next(reader, 0, &batch, NULL));
    tfw_reader_free(reader);
    close(options.fd);
}

static void offsets_past_every_file_are_an_end(void) {
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    options.fd = open("/dev/zero", O_RDONLY);
    options.offset = INT64_MAX;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_END, tfw_reader_next(reader, 0, &batch, NULL));
    tfw_reader_free(reader);
    close(options.fd);
}
#endif

/* The reader may have looked beyond the records that it gave: at damage that it meets again. */
static void seeking_back_notes_no_region_twice(void) {
    file f = file_random(3, 20, 50);
    for (size_t i = 4; i < 20; i += 5) {
        f.data[f.ends[i] - 1] ^= 1; /* records 4, 9, 14, 19 */
    }
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    options.fd = file_open(&f);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_region regions[8];
    uint64_t bytes;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    for (size_t back = 0; back < 20; back++) {
        while (tfw_reader_next(reader, 1, &batch, NULL) == TFW_OK) {
        }
        CHECK_EQ(4, tfw_reader_skipped(reader, 0, regions, 8));
        CHECK_EQ(4, tfw_reader_skipped_total(reader, &bytes));
        uint64_t sum = 0;
        for (size_t i = 0; i < 4; i++) {
            CHECK_EQ(f.ends[5 * i + 4], regions[i].end);
            sum += regions[i].end - regions[i].begin;
        }
        CHECK_EQ(sum, bytes);
        CHECK_EQ(TFW_OK, tfw_reader_seek(reader, back == 0 ? 0 : f.ends[back - 1], back, NULL));
    }
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

static void seeking_goes_on_at_any_record_and_forgets_the_rest(void) {
    file f = file_random(11, 40, 500);
    file_append(&f, "a rest that is no record", 24);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    options.fd = file_open(&f);
    options.buffer_size = 700;
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    for (size_t i = 39; i-- > 0;) { /* backwards, from anywhere in a window, and after an error */
        CHECK_EQ(TFW_OK, tfw_reader_seek(reader, f.ends[i], i + 1, &error));
        uint64_t next = i + 1;
        int status;
        while ((status = tfw_reader_next(reader, i % 3, &batch, &error)) == TFW_OK) {
            CHECK_EQ(next, batch.first_record);
            CHECK_EQ(f.ends[next - 1] + TFW_HEADER_SIZE, batch.offset + batch.spans[0].offset);
            next += batch.count;
        }
        CHECK_EQ(TFW_E_LENGTH_CRC, status);
        CHECK_EQ(40, next);
        CHECK_EQ(f.ends[39], error.offset);
        CHECK_EQ(40, error.record);
    }
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_seek(reader, UINT64_MAX, 0, &error));
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

/* What was fed before is forgotten: also a room that was reserved, an end, and damage. */
static void a_fed_reader_goes_on_at_any_record(void) {
    file f = file_random(12, 30, 400);
    file_append(&f, "a rest that is no record", 24);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    options.buffer_size = 300;
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error;
    uint8_t *room;
    size_t len;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    for (size_t i = 29; i-- > 0;) {
        size_t fed = (size_t)f.ends[i];
        CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, &error));
        CHECK_EQ(TFW_OK, tfw_reader_seek(reader, f.ends[i], i + 1, &error));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, 1, &error));
        uint64_t next = i + 1;
        int status;
        while ((status = tfw_reader_next(reader, i % 3, &batch, &error)) == TFW_OK ||
               status == TFW_NEED_INPUT) {
            if (status == TFW_NEED_INPUT) {
                CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, &error));
                len = len < f.len - fed ? len : f.len - fed;
                memcpy(room, f.data + fed, len);
                fed += len;
                CHECK_EQ(TFW_OK, tfw_reader_commit(reader, len, &error));
                continue;
            }
            CHECK_EQ(next, batch.first_record);
            CHECK_EQ(f.ends[next - 1] + TFW_HEADER_SIZE, batch.offset + batch.spans[0].offset);
            next += batch.count;
        }
        CHECK_EQ(TFW_E_LENGTH_CRC, status);
        CHECK_EQ(f.ends[29], error.offset);
        CHECK_EQ(30, error.record);
        CHECK_EQ(TFW_OK, tfw_reader_seek(reader, 0, 0, &error));
    }
    tfw_reader_free(reader);
    free(f.data);
}

static void every_failing_allocation_is_reported_and_survived(void) {
    file f = file_random(9, 12, 300), more = file_random(10, 6, 900);
    file_append(&f, "damage in the middle of the file", 32);
    file_append_header(&f, 600); /* a candidate that will not verify */
    file_append_record(&f, "good", 4);
    file_append_header(&f, 2000); /* of a record that never came */
    file_append(&f, more.data, more.len);
    for (uint32_t policy = 0; policy < 4; policy++) {
        tfw_reader_options options = options_for(policy);
        outcome expected = model(&f, &options);
        for (int with_file = 0; with_file < 2; with_file++) {
            options.fd = with_file ? file_open(&f) : -1;
            bool failed = true;
            for (long n = 0; failed; n++) {
                feeding how = {.piece = 50, .retry = true};
                tfwi_test_fail_allocation = n;
                outcome found = read_all(&f, &options, &how);
                failed = tfwi_test_fail_allocation < 0;
                tfwi_test_fail_allocation = -1;
                CHECK_OUTCOME(&expected, &found);
                CHECK_EQ(failed, how.failures);
            }
            if (with_file) {
                close(options.fd);
            }
        }
    }
    free(more.data);
    free(f.data);
}

int main(void) {
    RUN(feeding_in_any_pieces_gives_the_same_records);
    RUN(files_are_read_like_fed_bytes);
    RUN(small_batches_come_from_one_scan);
    RUN(reserving_early_keeps_what_is_not_delivered);
    RUN(empty_input_ends_at_once);
    RUN(options_that_make_no_sense_are_refused);
    RUN(misuse_of_the_fed_source_is_refused);
    RUN(input_that_goes_on_after_an_end_begins_anew);
    RUN(short_interrupted_and_failing_reads_lose_nothing);
    RUN(a_file_cut_under_the_reader_is_an_end_or_an_error);
#if !defined(_WIN32) && !defined(__wasi__)
    RUN(reading_errors_carry_errno_and_offset);
    RUN(offsets_past_every_file_are_an_end);
#endif
    RUN(seeking_back_notes_no_region_twice);
    RUN(seeking_goes_on_at_any_record_and_forgets_the_rest);
    RUN(a_fed_reader_goes_on_at_any_record);
    RUN(every_failing_allocation_is_reported_and_survived);
    return check_report("reader");
}
