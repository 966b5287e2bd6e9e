/* SPDX-License-Identifier: Apache-2.0 */
/* tfwi_read_records: whatever the buffer, the steps and the reads, the columns are those of
 * tfw_parse, and what stops is found at its record. */
#include "tables.h"

#include "pipeline/read_columns.h"

#include <errno.h>

/* ---- A source that misbehaves --------------------------------------------------------------- */

static size_t most_bytes = SIZE_MAX;
static unsigned interrupted; /* every so many reads */
static unsigned reads;
static long reads_until_failure = -1;

static ssize_t odd_pread(int fd, void *out, size_t len, off_t offset) {
    if (reads_until_failure >= 0 && reads_until_failure-- == 0) {
        errno = EIO;
        return -1;
    }
    if (interrupted != 0 && ++reads % interrupted == 0) {
        errno = EINTR;
        return -1;
    }
    return pread(fd, out, len < most_bytes ? len : most_bytes, offset);
}

/* ---- Stretches ------------------------------------------------------------------------------ */

static tfwi_stretch stretch_of(int fd, size_t capacity) {
    return (tfwi_stretch){.fd = fd, .stop = UINT64_MAX, .buffer = malloc(capacity),
                          .capacity = capacity};
}

typedef struct result {
    size_t done;
    int status;
    tfw_error error;
    tfw_tally tally;
} result;

/* Reads to the end, at_once records a call; where the buffer is too small, with a larger one. */
static result read_stretch(table *t, tfwi_stretch *s, size_t at_once) {
    result r = {.status = TFW_OK};
    while (r.status == TFW_OK || r.status == TFW_NEED_SPACE) {
        const uint64_t before = s->offset;
        tfwi_reading reading = {.s = s, .context = t->context, .lists = t->lists,
                                .flags = t->lists != NULL ? TFW_SEQUENCE : 0, .tally = &r.tally};
        r.error.record = -1;
        r.status = tfwi_read_records(&reading, at_once, &r.error);
        const size_t done = reading.done;
        CHECK(done <= at_once && (r.status != TFW_OK || done == at_once));
        CHECK((done != 0) == (s->offset != before));
        r.done += done;
        if (r.status == TFW_NEED_SPACE) {
            const size_t wanted = (size_t)r.error.expected;
            CHECK(wanted > s->capacity);
            s->buffer = realloc(s->buffer, wanted);
            s->capacity = wanted;
        }
        CHECK_EQ(r.status < 0 ? (long long)done : -1,
                 r.status < 0 ? r.error.record : -1);
    }
    return r;
}

static void check_tally(const tfw_tally *tally, const file *f, size_t count, unsigned flags) {
    tfw_tally expected = {0};
    CHECK_EQ(TFW_OK, tfw_tally_block(&expected, f->data, file_begin(f, count), flags, NULL));
    CHECK(memcmp(&expected, tally, sizeof expected) == 0);
}

static void check_reading(const file *f, int fd, size_t capacity, size_t at_once, bool sequence) {
    table t = table_new(sequence);
    tfwi_stretch s = stretch_of(fd, capacity);
    table_begin(&t);
    result r = read_stretch(&t, &s, at_once);
    CHECK_EQ(TFW_END, r.status);
    CHECK_EQ(f->len, s.offset);
    check_table(&t, f, f->count);
    check_tally(&r.tally, f, f->count, 0);
    table_free(&t);
    free(s.buffer);
}

static void columns_are_those_of_parse_whatever_the_steps(void) {
    const size_t capacities[] = {12, 13, 64, 300, 5000, 1 << 20};
    const size_t at_once[] = {1, 3, RECORDS, RECORDS + 1};
    const size_t pieces[] = {1, 100, SIZE_MAX};
    tfwi_test_pread = odd_pread;
    for (size_t i = 0; i < 6 * 4 * 3 * 2; i++) {
        file f = file_of_examples(i, RECORDS, i % 2 != 0);
        int fd = file_open(&f);
        most_bytes = pieces[i / 2 % 3];
        interrupted = most_bytes != SIZE_MAX ? 3 : 0;
        check_reading(&f, fd, capacities[i / 6 % 6], at_once[i / 36 % 4], i % 2 != 0);
        close(fd);
        free(f.data);
    }
    most_bytes = SIZE_MAX;
    interrupted = 0;
}

/* Records of more than a piece, and so many short ones that their spans take several scans. */
static void pieces_end_anywhere(void) {
    const size_t sizes[] = {0, 16, (1 << 18) - 100, 1 << 18, (1 << 18) + 100, 700000};
    for (size_t i = 0; i < 6; i++) {
        file f = {0};
        uint8_t *text = calloc(sizes[i] + 1, 1);
        for (size_t k = 0; k < 12; k++) {
            blob message = EXAMPLE(entry("n", INTS((int64_t)k)),
                                   entry("s", field(1, field(1, raw(text, sizes[i])))));
            file_append_record(&f, message.data, message.len);
            blobs_free();
        }
        int fd = file_open(&f);
        check_reading(&f, fd, 1 << 20, RECORDS, false);
        check_reading(&f, fd, 64, 5, false);
        close(fd);
        free(f.data);
        free(text);
    }
}

static void many_short_records_take_several_scans(void) {
    enum { MANY = LOG_MAX };
    static int64_t numbers[MANY];
    file f = {0};
    for (size_t i = 0; i < MANY; i++) {
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)), entry("s", STRING("")));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    int fd = file_open(&f);
    table t = table_new(false);
    tfwi_stretch s = stretch_of(fd, 1 << 16);
    void *memory[3] = {numbers, NULL, NULL};
    const size_t sizes[3] = {0};
    CHECK_EQ(TFW_OK, tfw_columns_begin(t.context, memory, sizes, MANY, NULL));
    tfwi_reading reading = {.s = &s, .context = t.context};
    CHECK_EQ(TFW_OK, tfwi_read_records(&reading, MANY, NULL));
    CHECK_EQ(MANY, reading.done);
    CHECK_EQ(MANY - 1, numbers[MANY - 1]);
    table_free(&t);
    free(s.buffer);
    close(fd);
    free(f.data);
}

/* ---- What stops ----------------------------------------------------------------------------- */

/* The records before it are in the columns, and the stretch is where it begins. */
static void check_stop(const file *f, size_t whole, int status, unsigned flags) {
    const size_t capacities[] = {5000, 1 << 16};
    int fd = file_open(f);
    for (size_t i = 0; i < 2; i++) {
        table t = table_new(false);
        tfwi_stretch s = stretch_of(fd, capacities[i]);
        s.flags = flags;
        s.max_record_size = LONGEST + 100;
        table_begin(&t);
        result r = read_stretch(&t, &s, i == 0 ? 3 : RECORDS);
        CHECK_EQ(status, r.status);
        CHECK_EQ(whole, r.done);
        CHECK_EQ(file_begin(f, whole), s.offset);
        if (status < 0 && status > TFW_E_WIRE) {
            CHECK_EQ(s.offset, r.error.offset);
            CHECK(r.error.text[0] != '\0');
        }
        check_tally(&r.tally, f, whole, flags);
        check_table(&t, f, whole);
        table_free(&t);
        free(s.buffer);
    }
    close(fd);
}

static void a_cut_is_found_wherever_it_is(void) {
    file f = file_of_examples(3, 8, false);
    const size_t len = f.len;
    for (f.len = 0; f.len <= len; f.len++) {
        size_t whole = 0;
        while (whole < f.count && f.ends[whole] <= f.len) {
            whole++;
        }
        check_stop(&f, whole, file_begin(&f, whole) == f.len ? TFW_END : TFW_E_TRUNCATED, 0);
    }
    free(f.data);
}

static void a_flipped_bit_is_found_wherever_it_is(void) {
    file f = file_of_examples(4, 6, false);
    for (size_t at = 0; at < f.len; at++) {
        size_t record = 0;
        while (f.ends[record] <= at) {
            record++;
        }
        f.data[at] ^= 4;
        int status = model_check(&f, file_begin(&f, record), LONGEST + 100, 0);
        CHECK(status < 0);
        check_stop(&f, record, status, 0);
        f.data[at] ^= 4;
    }
    free(f.data);
}

static void a_record_that_does_not_fit_stays_at_the_beginning(void) {
    for (size_t bad = 0; bad < 6; bad++) {
        file f = {0};
        uint64_t state = 5;
        for (size_t i = 0; i < 6; i++) {
            blob message = i == bad ? EXAMPLE(entry("n", FLOATS(1))) : example_of(&state, i);
            file_append_record(&f, message.data, message.len);
            blobs_free();
        }
        check_stop(&f, bad, TFW_E_KIND, 0);
        check_stop(&f, bad, TFW_E_KIND, TFW_NO_DATA_CRC);
        free(f.data);
    }
}

static void a_limit_is_kept(void) {
    file f = file_of_examples(1, 5, false);
    file_append_header(&f, LONGEST + 101);
    check_stop(&f, 5, TFW_E_TOO_LARGE, 0);
    free(f.data);
}

static void failures_leave_the_records_before_them(void) {
    file f = file_of_examples(9, RECORDS, false);
    int fd = file_open(&f);
    tfwi_test_pread = odd_pread;
    for (int memory = 0; memory < 2; memory++) {
        for (long i = 0; i < 12; i++) {
            table t = table_new(false);
            tfwi_stretch s = stretch_of(fd, 4096);
            table_begin(&t);
            *(memory != 0 ? &tfwi_test_fail_allocation : &reads_until_failure) = i;
            result r = read_stretch(&t, &s, RECORDS + 1);
            const bool failed = (memory != 0 ? tfwi_test_fail_allocation : reads_until_failure) < 0;
            /* Where a kernel found no memory, the complete parser may. */
            CHECK(r.status == TFW_END ? !failed || memory != 0
                                      : r.status == (memory != 0 ? TFW_E_MEMORY : TFW_E_IO));
            CHECK_EQ(file_begin(&f, r.done), s.offset);
            tfwi_test_fail_allocation = reads_until_failure = -1;
            result rest = read_stretch(&t, &s, RECORDS + 1); /* and it goes on */
            CHECK_EQ(RECORDS, r.done + rest.done);
            check_table(&t, &f, RECORDS);
            table_free(&t);
            free(s.buffer);
        }
    }
    close(fd);
    free(f.data);
}

static void nothing_is_read_after_the_stop(void) {
    file f = file_of_examples(6, 9, false);
    int fd = file_open(&f);
    for (size_t stop = 0; stop <= 9; stop++) {
        for (size_t beyond = 0; beyond < 20; beyond += 19) {
            table t = table_new(false);
            tfwi_stretch s = stretch_of(fd, 1 << 16);
            s.stop = file_begin(&f, stop) + beyond;
            table_begin(&t);
            result r = read_stretch(&t, &s, RECORDS);
            CHECK_EQ(stop, r.done);
            CHECK_EQ(beyond == 0 || stop == 9 ? TFW_END : TFW_E_TRUNCATED, r.status);
            check_table(&t, &f, stop);
            table_free(&t);
            free(s.buffer);
        }
    }
    close(fd);
    free(f.data);
}

int main(void) {
    RUN(columns_are_those_of_parse_whatever_the_steps);
    RUN(pieces_end_anywhere);
    RUN(many_short_records_take_several_scans);
    RUN(a_cut_is_found_wherever_it_is);
    RUN(a_flipped_bit_is_found_wherever_it_is);
    RUN(a_record_that_does_not_fit_stays_at_the_beginning);
    RUN(a_limit_is_kept);
    RUN(failures_leave_the_records_before_them);
    RUN(nothing_is_read_after_the_stop);
    return check_report("read_columns");
}
