/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the number of threads and the size of ranges, a pipeline delivers what a plain walk over
 * the files finds, up to the same error. */
#include "pipeline.h"

#ifdef TFW_TEST_QUICK
enum { MOST_THREADS = 3 };
#else
enum { MOST_THREADS = 16 };
#endif

static const uint64_t ranges[] = {1, 100, 1000, 20000, 0};
#define ALL ranges, COUNT(ranges), MOST_THREADS

static const wanted parse_3 = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};
static const wanted verify = {.mode = TFW_PIPELINE_VERIFY};
static const wanted tally = {.mode = TFW_PIPELINE_VERIFY, .flags = TFW_PIPELINE_TALLY};
static const wanted spans = {.mode = TFW_PIPELINE_SPANS};
static const wanted some_spans = {.mode = TFW_PIPELINE_SPANS, .selects = true};
static const wanted offsets = {.mode = TFW_PIPELINE_OFFSETS};

static void check_modes(const fileset *set) {
    const uint64_t batches[] = {1, 3, 16, 1000};
    for (size_t i = 0; i < COUNT(batches); i++) {
        wanted w = parse_3;
        w.batch_size = batches[i];
        check_all(set, &w, ALL);
    }
    check_all(set, &verify, ALL);
    check_all(set, &tally, ALL);
    check_all(set, &spans, ALL);
    check_all(set, &some_spans, ALL);
    check_all(set, &offsets, ALL);
}

static void one_file(void) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(1, 300, false));
    check_modes(&set);
    fileset_free(&set);
}

static void totals_of_what_is_parsed(void) {
    fileset set = {0};
    wanted w = parse_3;
    fileset_add(&set, file_of_examples(1, 300, true));
    fileset_add(&set, file_of_examples(2, 30, true));
    w.flags = TFW_PIPELINE_TALLY;
    check_all(&set, &w, ALL);
    w.flags |= TFW_PIPELINE_NO_DATA_CRC | TFW_SEQUENCE;
    check_all(&set, &w, ALL);
    fileset_free(&set);
}

/* Also of rows that were joined; and all of it stays while chunks are kept. */
static void positions_are_known(void) {
    fileset set = {0};
    const uint64_t batches[] = {1, 4, 16, 1000};
    for (size_t i = 0; i < 12; i++) {
        fileset_add(&set, file_of_examples(i, i % 4 == 0 ? 150 : i % 5, false));
    }
    for (size_t i = 0; i < COUNT(batches); i++) {
        wanted w = {.batch_size = batches[i], .flags = TFW_PIPELINE_POSITIONS, .keeps = true};
        check_all(&set, &w, ALL);
    }
    fileset_free(&set);
}

static void no_file_and_empty_files(void) {
    fileset set = {0};
    check_modes(&set);
    for (size_t i = 0; i < 3; i++) {
        fileset_add(&set, file_of_examples(1, 0, false));
    }
    check_modes(&set);
    fileset_free(&set);
}

static void many_files(void) {
    fileset set = {0};
    for (size_t i = 0; i < 40; i++) {
        fileset_add(&set, file_of_examples(i, i % 4 == 0 ? 0 : i % 7 == 0 ? 60 : i % 5, false));
    }
    check_modes(&set);
    fileset_free(&set);
}

static void sequences(void) {
    fileset set = {0};
    wanted w = parse_3;
    w.flags = TFW_SEQUENCE;
    fileset_add(&set, file_of_examples(7, 200, true));
    fileset_add(&set, file_of_examples(8, 5, true));
    fileset_add(&set, file_of_examples(9, 100, true));
    check_all(&set, &w, ALL);
    fileset_free(&set);
}

/* Records longer than ranges, and long enough to walk over their headers. */
static void long_records(void) {
    fileset set = {0};
    static uint8_t text[400000];
    for (size_t i = 0; i < 3; i++) {
        file f = {0};
        uint64_t state = i + 1;
        for (size_t k = 0; k < 60; k++) {
            const size_t len = k % 9 == 0 ? 300000 : check_random(&state) % 40000;
            memset(text, (int)k, sizeof text);
            blob message = EXAMPLE(entry("n", INTS((int64_t)k)),
                                   entry("s", field(1, field(1, raw(text, len)))));
            file_append_record(&f, message.data, message.len);
            blobs_free();
        }
        fileset_add(&set, f);
    }
    const uint64_t some[] = {5000, 100000, 0};
    wanted w = parse_3;
    check_all(&set, &w, some, 3, MOST_THREADS);
    w.batch_size = 16;
    check_all(&set, &w, some, 3, 3);
    check_all(&set, &verify, some, 3, 3);
    check_all(&set, &spans, some, 3, 3);
    check_all(&set, &some_spans, some, 3, 3);
    check_all(&set, &offsets, some, 3, 3);
    const size_t damaged[] = {2, 13, 5000}; /* header, payload, and an end within a payload */
    file *f = &set.files[1];
    for (size_t i = 0; i < COUNT(damaged); i++) {
        const size_t at = file_begin(f, 31) + damaged[i], len = f->len;
        f->data[at] ^= 1;
        f->len = i == 2 ? at : len;
        fileset_write(&set, 1);
        check_all(&set, &w, some, 3, 3);
        check_all(&set, &offsets, some, 3, 3);
        f->data[at] ^= 1;
        f->len = len;
    }
    fileset_free(&set);
}

/* Guesses go wrong: records in payloads, and headers that verify and lie. */
static file nested_file(uint64_t seed) {
    file f = {0};
    uint64_t state = seed;
    for (size_t i = 0; i < 40; i++) {
        file inner = {0};
        for (size_t k = 0; k < 8; k++) {
            blob message = example_of(&state, k);
            file_append_record(&inner, message.data, message.len);
            if (i % 4 == 0) {
                file_append_header(&inner, UINT64_C(1) << (check_random(&state) % 63));
                file_append_header(&inner, check_random(&state) % 3000);
            }
            blobs_free();
        }
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)),
                               entry("s", field(1, field(1, raw(inner.data, inner.len)))),
                               entry("v", INTS(5)));
        file_append_record(&f, message.data, message.len);
        blobs_free();
        free(inner.data);
    }
    return f;
}

static void records_in_payloads(void) {
    fileset set = {0};
    for (size_t i = 0; i < 4; i++) {
        fileset_add(&set, nested_file(i + 1));
        fileset_add(&set, file_of_examples(i, 50, false));
    }
    check_modes(&set);
    fileset_free(&set);
}

/* ---- Damage --------------------------------------------------------------------------------- */

static const uint64_t small[] = {64, 1000};

/* In or beside the frame of a record: of the first, the fifth and so on, which are longer than
 * ranges, and of those after them. */
static bool is_at_an_edge(const file *f, size_t at) {
    size_t record = 0;
    while (f->ends[record] <= at) {
        record++;
    }
    const size_t after = at - file_begin(f, record), before = f->ends[record] - at;
    return record % 5 < 2 && (after <= TFW_HEADER_SIZE || before <= TFW_FOOTER_SIZE + 1);
}

/* The file is cut, or a bit of it flipped, wherever that is. */
static void check_damaged(const wanted *w, size_t most_threads) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(1, 5, false));
    fileset_add(&set, file_of_examples(3, 12, false));
    fileset_add(&set, file_of_examples(5, 9, false));
    file *f = &set.files[1];
    const size_t len = f->len;
    for (size_t at = 0; at < len; at++) {
        if (!is_at_an_edge(f, at)) {
            continue;
        }
        f->data[at] ^= 4;
        fileset_write(&set, 1);
        check_all(&set, w, small, 2, most_threads);
        f->data[at] ^= 4;
        if (!w->skips) {
            f->len = at;
            fileset_write(&set, 1);
            check_all(&set, w, small, 1, most_threads);
            f->len = len;
        }
    }
    fileset_free(&set);
}

static void damage_is_found_where_it_is(void) {
    check_damaged(&parse_3, 3);
    check_damaged(&verify, 2);
    check_damaged(&spans, 2);
    check_damaged(&some_spans, 2);
    check_damaged(&offsets, 2);
    wanted w = parse_3;
    w.flags = TFW_PIPELINE_NO_DATA_CRC;
    check_damaged(&w, 2);
    w = verify;
    w.flags = TFW_PIPELINE_KEEP_REST; /* nothing that could be kept */
    check_damaged(&w, 2);
}

static void damage_is_passed(void) {
    wanted w = parse_3;
    w.skips = true;
    w.flags = TFW_PIPELINE_KEEP_REST;
    check_damaged(&w, 3);
    w.flags = 0;
    check_damaged(&w, 2);
    w = offsets;
    w.skips = true;
    check_damaged(&w, 2);
}

/* Records that do not fit, one in so many; batches go on after them. */
static void misfits_are_passed(void) {
    for (size_t each = 1; each < 30; each += 4) {
        fileset set = {0};
        uint64_t state = 5;
        for (size_t k = 0; k < 5; k++) {
            file f = {0};
            for (size_t i = 0; i < 100; i++) {
                blob message = i % each == 0 ? EXAMPLE(entry("n", FLOATS(1)))
                                             : example_of(&state, i);
                file_append_record(&f, message.data, message.len);
                blobs_free();
            }
            fileset_add(&set, f);
        }
        wanted w = {.batch_size = 7, .skips = true, .flags = TFW_PIPELINE_KEEP_REST};
        check_all(&set, &w, ALL);
        w.keeps = true;
        w.flags |= TFW_PIPELINE_POSITIONS;
        check_all(&set, &w, small, 2, 3);
        w.flags = TFW_PIPELINE_TALLY;
        check_all(&set, &w, small, 2, 3);
        w.skips = false;
        check_all(&set, &w, small, 2, 3);
        fileset_free(&set);
    }
}

static void a_limit_is_kept(void) {
    fileset set = {0};
    wanted w = parse_3;
    w.max_record_size = LONGEST - 500;
    fileset_add(&set, file_of_examples(4, 200, false));
    check_all(&set, &w, ALL);
    file_append_header(&set.files[0], UINT64_C(1) << 40);
    fileset_write(&set, 0);
    w.max_record_size = 0;
    check_all(&set, &w, ALL);
    check_all(&set, &spans, ALL);
    check_all(&set, &offsets, ALL);
    fileset_free(&set);
}

static void reading_starts_anywhere(void) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(4, 30, false));
    fileset_add(&set, file_of_examples(5, 30, false));
    for (size_t i = 0; i < 60; i += 7) {
        wanted w = parse_3;
        const size_t record = i % 30;
        w.start = (tfw_place){i / 30, record, file_begin(&set.files[i / 30], record)};
        check_all(&set, &w, small, 2, 3);
    }
    fileset_free(&set);
}

/* After damage the number of the next record is what it is said to be, also where ranges were read
 * with the numbers that walking over the headers had found. */
static void numbers_go_on_as_they_are_said(void) {
    enum { RECORDS = 60, FAULT = 20, MORE = 7 };
    static const uint8_t zeros[16000];
    fileset set = {0};
    table t = table_new(false);
    file f = {0};
    for (size_t i = 0; i < RECORDS; i++) {
        file_append_record(&f, zeros, 10000 + 100 * i);
    }
    f.data[file_begin(&f, FAULT) + TFW_HEADER_SIZE] ^= 1;
    fileset_add(&set, f);
    for (size_t to = FAULT + 1; to < RECORDS; to++) {
        tfw_pipeline *p = pipeline_of(&set, &spans, &t, 3, 50000);
        const tfw_place place = {0, to + MORE, file_begin(&f, to)};
        tfw_chunk *chunk;
        tfw_chunk_info info = {.size = sizeof info};
        uint64_t records = 0;
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &place, NULL));
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            tfw_chunk_get(chunk, &info);
            CHECK_EQ(file_begin(&f, (size_t)info.begin.record - MORE), info.begin.offset);
            records += info.records;
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(RECORDS - to, records);
        tfw_pipeline_free(p);
    }
    table_free(&t);
    fileset_free(&set);
}

/* Errors of files: after all records before them. */
static void check_missing(const fileset *set, int expected) {
    table t = table_new(false);
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(set, &parse_3, &t, threads, 100);
        tfw_chunk *chunk;
        tfw_error error;
        tfw_place place, next;
        uint64_t records = 0;
        int status;
        while ((status = tfw_pipeline_next(p, -1, &chunk, &error)) == TFW_OK) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk_get(chunk, &info);
            records += info.records;
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(expected, status);
        CHECK_EQ(20, records);
        tfw_pipeline_stopped(p, &place, &next);
        CHECK(place.file == 1 && place.record == 0 && place.offset == 0);
        CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &(tfw_place){.file = 2}, NULL));
        while ((status = tfw_pipeline_next(p, -1, &chunk, &error)) == TFW_OK) {
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(TFW_END, status);
        tfw_pipeline_free(p);
    }
    table_free(&t);
}

static void a_file_that_is_missing(void) {
    fileset set = {0};
    for (size_t i = 0; i < 3; i++) {
        fileset_add(&set, file_of_examples(i, 20, false));
    }
    unlink(set.paths[1]);
    check_missing(&set, TFW_E_IO);
    fileset_write(&set, 1);
    char *const path = set.paths[1];
    set.paths[1] = NULL;
    check_missing(&set, TFW_E_UNSUPPORTED);
    set.paths[1] = path;
    fileset_free(&set);
}

/* Batches go on in files that come later, before the end or after it. */
static void files_are_added(void) {
    fileset set = {0};
    for (size_t i = 0; i < 9; i++) {
        fileset_add(&set, file_of_examples(i, i == 4 ? 0 : 5 * i, false));
    }
    for (size_t first = 0; first < 9; first += 2) {
        const wanted w = {
            .batch_size = 4, .flags = TFW_PIPELINE_KEEP_REST, .added_from = first + 1};
        check_all(&set, &w, small, 2, 3);
    }
    fileset_free(&set);
}

/* What is kept comes after the end, not instead of it, also the second time. */
static void every_end_is_told(void) {
    fileset set = two_files(5);
    table t = table_new(false);
    const wanted w = {.batch_size = 4, .flags = TFW_PIPELINE_KEEP_REST, .added_from = 1};
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, 100);
        tfw_chunk *chunk;
        tfw_chunk_info info = {.size = sizeof info};
        uint64_t rows = 0;
        for (uint64_t end = 1; end < 3; end++) {
            while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
                tfw_chunk_get(chunk, &info);
                rows += info.records;
                tfw_chunk_release(chunk);
            }
            CHECK_EQ(4 * end, rows);
            if (end == 1) {
                CHECK_EQ(TFW_OK, tfw_pipeline_add(p, (const char *const *)set.paths + 1, 1, NULL));
            }
        }
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        tfw_chunk_release(chunk);
        tfw_pipeline_free(p);
    }
    table_free(&t);
    fileset_free(&set);
}

static void absence_is_noted(void) {
    fileset set = {0};
    wanted w = parse_3;
    w.flags = TFW_PIPELINE_NOTE_ABSENT;
    fileset_add(&set, file_of_examples(1, 300, true));
    fileset_add(&set, file_of_examples(2, 70, false));
    check_all(&set, &w, ALL);
    w.flags |= TFW_SEQUENCE;
    check_all(&set, &w, small, 2, 3);
    fileset_free(&set);
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static void seek_only_leads_on_from_an_error(void) {
    fileset set = two_files(400);
    table t = table_new(false);
    tfw_chunk *chunk;
    set.files[0].data[set.files[0].ends[100] + 2] ^= 1;
    fileset_write(&set, 0);
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, threads, 2000);
        const tfw_place later = {1, 3, set.files[1].ends[2]}, earlier = {0, 3, 5};
        int status;
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &later, NULL));
        while ((status = tfw_pipeline_next(p, -1, &chunk, NULL)) == TFW_OK) {
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(TFW_E_LENGTH_CRC, status);
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &earlier, NULL));
        CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &later, NULL));
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        CHECK(same_place(&later, &info.begin));
        tfw_chunk_release(chunk);
        tfw_pipeline_free(p);
    }
    table_free(&t);
    fileset_free(&set);
}

int main(void) {
    RUN(one_file);
    RUN(totals_of_what_is_parsed);
    RUN(positions_are_known);
    RUN(no_file_and_empty_files);
    RUN(many_files);
    RUN(sequences);
    RUN(long_records);
    RUN(records_in_payloads);
    RUN(damage_is_found_where_it_is);
    RUN(damage_is_passed);
    RUN(misfits_are_passed);
    RUN(a_limit_is_kept);
    RUN(reading_starts_anywhere);
    RUN(numbers_go_on_as_they_are_said);
    RUN(a_file_that_is_missing);
    RUN(files_are_added);
    RUN(every_end_is_told);
    RUN(absence_is_noted);
    RUN(seek_only_leads_on_from_an_error);
    return check_report("pipeline");
}
