/* SPDX-License-Identifier: Apache-2.0 */
/* What may be pushed and what may not, when a seek goes on and where in it, very long records, and
 * pushes without memory. */
#include "pipeline.h"

static const wanted keeping = {.batch_size = 7, .flags = TFW_PIPELINE_KEEP_REST};

static int push_one(tfw_pipeline *p, const file *f, uint64_t record, uint64_t number, uint64_t at) {
    const uint64_t begin = file_begin(f, (size_t)record);
    const tfw_span span = {begin + TFW_HEADER_SIZE, f->ends[record] - begin - 16};
    const tfw_batch batch = {.size = sizeof batch, .data = f->data, .data_len = f->len,
                             .spans = &span, .count = 1, .offset = at, .first_record = number};
    return tfw_pipeline_push(p, &batch, 0, NULL);
}

/* All rows that come before the end, and what was kept. */
static uint64_t take_rows(tfw_pipeline *p) {
    uint64_t rows = 0;
    tfw_chunk *chunk;
    for (size_t ends = 0; ends < 2;) {
        const int status = tfw_pipeline_next(p, -1, &chunk, NULL);
        CHECK(status == TFW_OK || status == TFW_END);
        if (status == TFW_OK) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk_get(chunk, &info);
            rows += info.records;
            tfw_chunk_release(chunk);
        }
        ends += status != TFW_OK;
    }
    return rows;
}

/* Two records that are said to have one number. */
static int push_twice(tfw_pipeline *p, const file *f) {
    const uint64_t numbers[] = {5, 5};
    const tfw_span spans[] = {{TFW_HEADER_SIZE, f->ends[0] - 16},
                              {f->ends[0] + TFW_HEADER_SIZE, f->ends[1] - f->ends[0] - 16}};
    const tfw_batch batch = {.size = sizeof batch, .data = f->data, .data_len = f->len,
                             .spans = spans, .count = 2, .numbers = numbers};
    return tfw_pipeline_push(p, &batch, 0, NULL);
}

static void pushing_only_goes_on(void) {
    fileset set = {0}, none = {0};
    table t = table_new(false);
    fileset_add(&set, file_of_examples(1, 30, false));
    const file *f = &set.files[0];
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(&none, &keeping, &t, threads, 500);
        CHECK_EQ(TFW_E_ARGUMENT, push_twice(p, f));
        CHECK_EQ(TFW_OK, push_one(p, f, 3, 3, 0));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 3, 3, 0));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 4, 2, 0));
        CHECK_EQ(TFW_OK, push_one(p, f, 2, 4, f->len));
        CHECK_EQ(2, take_rows(p));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 9, 9, 0));
        CHECK_EQ(TFW_OK, push_one(p, f, 9, 9, f->len));
        CHECK_EQ(TFW_OK, tfw_pipeline_add(p, (const char *const *)set.paths, 1, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 10, 10, f->len));
        CHECK_EQ(31, take_rows(p));
        tfw_pipeline_cancel(p);
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 11, 40, 2 * f->len));
        tfw_pipeline_free(p);
    }
    const wanted verify = {.mode = TFW_PIPELINE_VERIFY};
    tfw_pipeline *p = pipeline_of(&none, &verify, &t, 1, 0);
    CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 0, 0, 0));
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

/* A record that does not fit is followed by others, of its file and of the next one, with gaps. Who
 * seeks goes on with the first of them that does not begin before that place, if there is any. */
static void a_seek_finds_what_was_pushed(void) {
    const struct {
        tfw_place place;
        uint64_t rows;
    } seeks[] = {{{0, 1, 100}, 4}, {{0, 5, 500}, 4}, {{0, 6, 600}, 3}, {{0, 7, 700}, 2},
                 {{0, 8, 800}, 0}, {{1, 0, 0}, 0}};
    fileset set = {0}, none = {0};
    table t = table_new(false);
    file wrong = file_with_misfits(1, 1, 1);
    fileset_add(&set, file_of_examples(1, 30, false));
    const file *f = &set.files[0];
    const uint64_t first[] = {5, 6, 0, 1};
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        for (size_t i = 0; i < COUNT(seeks); i++) {
            tfw_pipeline *p = pipeline_of(&none, &keeping, &t, threads, 500);
            file all = {0};
            tfw_span spans[3] = {{TFW_HEADER_SIZE, wrong.len - 16}};
            const uint64_t numbers[] = {0, 5, 6};
            tfw_chunk *chunk;
            file_append(&all, wrong.data, wrong.len);
            for (size_t k = 1; k < 3; k++) {
                const size_t begin = file_begin(f, (size_t)first[k]);
                spans[k] = (tfw_span){all.len + TFW_HEADER_SIZE, f->ends[first[k]] - begin - 16};
                file_append(&all, f->data + begin, f->ends[first[k]] - begin);
            }
            const tfw_batch batch = {.size = sizeof batch, .data = all.data, .data_len = all.len,
                                     .spans = spans, .count = 3, .numbers = numbers};
            CHECK_EQ(TFW_OK, tfw_pipeline_push(p, &batch, 0, NULL));
            if (threads > 1) {
                const tfw_batch more = {.size = sizeof more, .data = all.data, .data_len = all.len,
                                        .spans = spans + 1, .count = 2};
                CHECK_EQ(TFW_OK, tfw_pipeline_push(p, &more, 1, NULL));
            }
            CHECK_EQ(TFW_E_KIND, tfw_pipeline_next(p, -1, &chunk, NULL));
            CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &seeks[i].place, NULL));
            const uint64_t most = seeks[i].rows, here = most < 2 ? 0 : most - 2;
            CHECK_EQ(threads > 1 ? most : here, take_rows(p));
            tfw_pipeline_free(p);
            free(all.data);
        }
    }
    free(wrong.data);
    table_free(&t);
    fileset_free(&set);
}

/* What is pushed before the pipeline says so, or in another way than it can be, is refused. */
static void pushing_begins_where_reading_stopped(void) {
    fileset set = {0};
    table t = table_new(false);
    fileset_add(&set, file_of_examples(1, 30, false));
    fileset_add(&set, file_of_examples(2, 30, false));
    const file *f = &set.files[0];
    set.files[0].data[set.files[0].ends[9] + 2] ^= 1;
    fileset_write(&set, 0);
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(&set, &keeping, &t, threads, 500);
        tfw_chunk *chunk;
        tfw_place place, next;
        int status;
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 0, 0, 0));
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 20, 20, 0));
        do {
            tfw_chunk_release(chunk);
            status = tfw_pipeline_next(p, -1, &chunk, NULL);
        } while (status == TFW_OK);
        CHECK_EQ(TFW_E_LENGTH_CRC, status);
        tfw_pipeline_stopped(p, &place, &next);
        CHECK_EQ(10, place.record);
        const tfw_place past = {0, UINT64_MAX, f->len}, far = {0, 11, UINT64_MAX};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &past, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &far, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 9, 9, 0));
        CHECK_EQ(TFW_OK, push_one(p, f, 11, 11, 0));
        tfw_pipeline_cancel(p);
        CHECK_EQ(TFW_E_ARGUMENT, push_one(p, f, 12, 12, 0));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &next, NULL));
        tfw_pipeline_free(p);
    }
    table_free(&t);
    fileset_free(&set);
}

/* What was read before the damage is to be taken first. A batch that the damage before it had
 * interrupted is a chunk of its own. */
static void no_seek_before_what_was_read_is_taken(void) {
    enum { DAMAGED = 10, DAMAGED_TOO = 19 };
    const wanted w = {.batch_size = 3, .flags = TFW_PIPELINE_KEEP_REST};
    fileset set = {0};
    table t = table_new(false);
    tfw_chunk *chunk;
    fileset_add(&set, file_of_examples(1, 30, false));
    file *f = &set.files[0];
    f->data[file_begin(f, DAMAGED)] ^= 1;
    f->data[file_begin(f, DAMAGED_TOO)] ^= 1;
    fileset_write(&set, 0);
    tfw_pipeline *p = pipeline_of(&set, &w, &t, 1, 0);
    const tfw_place after = {0, DAMAGED + 1, f->ends[DAMAGED]};
    const tfw_place after_both = {0, DAMAGED_TOO + 1, f->ends[DAMAGED_TOO]};
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_chunk_release(chunk);
    CHECK_EQ(TFW_E_LENGTH_CRC, tfw_pipeline_next(p, -1, &chunk, NULL));
    CHECK_EQ(TFW_OK, tfw_pipeline_seek(p, &after, NULL));
    for (uint64_t rows = 3; rows < 7; rows += 3) {
        tfw_chunk_info info = {.size = sizeof info};
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        tfw_chunk_get(chunk, &info);
        CHECK_EQ(rows, info.records);
        tfw_chunk_release(chunk);
        CHECK_EQ(rows == 3 ? TFW_E_ARGUMENT : TFW_OK, tfw_pipeline_seek(p, &after_both, NULL));
    }
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

/* Ranges of what is pushed end when they are full, and threads start then: those of short records,
 * of such that fill one each, and of such whose memory is not kept. */
static void long_records_are_pushed(void) {
    static const size_t sizes[] = {1000, 300000, 6000000};
    fileset none = {0};
    table t = table_new(false);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        file f = {0};
        uint8_t *text = calloc(sizes[i], 1);
        for (int64_t k = 0; k < 8; k++) {
            const blob message =
                EXAMPLE(entry("n", INTS(k)), entry("s", field(1, field(1, raw(text, sizes[i])))));
            file_append_record(&f, message.data, message.len);
            blobs_free();
        }
        for (uint32_t threads = 1; threads < 4; threads++) {
            const wanted w = {.batch_size = 1};
            tfw_pipeline *p = pipeline_of(&none, &w, &t, threads, 0);
            uint64_t pushed = 0, rows = 0;
            tfw_chunk *chunk = NULL;
            while (rows < 8) {
                int status = pushed < 8 ? push_one(p, &f, pushed, pushed, 0) : TFW_NEED_SPACE;
                pushed += status == TFW_OK;
                if (status == TFW_NEED_SPACE) {
                    tfw_column c;
                    CHECK_EQ(TFW_OK, status = tfw_pipeline_next(p, -1, &chunk, NULL));
                    CHECK_EQ(TFW_OK, tfw_chunk_column(chunk, false, 0, &c, NULL));
                    CHECK_EQ((int64_t)rows, *(const int64_t *)c.values);
                    rows += c.cell_count;
                    tfw_chunk_release(chunk);
                }
                CHECK_EQ(TFW_OK, status);
                if (status != TFW_OK) {
                    break;
                }
            }
            CHECK_EQ(TFW_END, tfw_pipeline_next(p, -1, &chunk, NULL));
            tfw_pipeline_free(p);
        }
        free(text);
        free(f.data);
    }
    table_free(&t);
}

/* Numbers say what is left out, and so do offsets: either is a gap. */
static void gaps_between_numbers_and_between_offsets(void) {
    fileset none = {0};
    table t = table_new(false);
    const file good = file_of_examples(1, 3, false), wrong = file_with_misfits(3, 1, 1);
    for (uint32_t threads = 1; threads < 4; threads++) {
        for (uint64_t number = 1; number < 4; number++) { /* of the record that does not fit */
            for (size_t between = 0; between < 20; between += 19) { /* bytes that are left out */
                file f = {0};
                file_append(&f, good.data, good.ends[0]);
                file_append(&f, good.data, between);
                const size_t begin = f.len;
                file_append(&f, wrong.data, wrong.len);
                const tfw_span spans[] = {{TFW_HEADER_SIZE, good.ends[0] - 16},
                                          {begin + TFW_HEADER_SIZE, wrong.len - 16}};
                const uint64_t numbers[] = {0, number};
                const tfw_batch batch = {.size = sizeof batch, .data = f.data, .data_len = f.len,
                                         .spans = spans, .count = 2, .numbers = numbers};
                tfw_pipeline *p = pipeline_of(&none, &keeping, &t, threads, 500);
                tfw_place at, next;
                tfw_chunk *chunk;
                CHECK_EQ(TFW_OK, tfw_pipeline_push(p, &batch, 0, NULL));
                CHECK_EQ(TFW_E_KIND, tfw_pipeline_next(p, -1, &chunk, NULL));
                tfw_pipeline_stopped(p, &at, &next);
                CHECK(at.record == number && at.offset == begin);
                CHECK(next.record == number + 1 && next.offset == f.len);
                tfw_pipeline_free(p);
                free(f.data);
            }
        }
    }
    free(good.data);
    free(wrong.data);
    table_free(&t);
}

/* Of records whose payloads nobody has verified, the checksums in the file count for the hash, and
 * their bytes for that of the file. */
static void unverified_records_add_up(void) {
    const wanted w = {.batch_size = 1,
                      .flags = TFW_PIPELINE_TALLY | TFW_PIPELINE_NO_DATA_CRC};
    enum { LEN = 5000 };
    static const uint8_t text[LEN];
    fileset none = {0};
    table t = table_new(false);
    file f = {0};
    for (int64_t k = 0; k < 3; k++) {
        const blob message =
            EXAMPLE(entry("n", INTS(k)), entry("s", field(1, field(1, raw(text, LEN)))));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    f.data[f.ends[1] - 1] ^= 1; /* of the footer */
    f.data[f.ends[1] - 1000] ^= 1;
    tfw_tally expected = {0}, verified = {0}, found;
    CHECK_EQ(TFW_OK, tfw_tally_block(&expected, f.data, f.len, TFW_NO_DATA_CRC, NULL));
    CHECK_EQ(TFW_OK, tfw_tally_block(&verified, f.data, f.len, 0, NULL));
    CHECK(memcmp(&expected, &verified, sizeof expected) != 0);
    for (uint32_t threads = 1; threads < 4; threads++) {
        tfw_pipeline *p = pipeline_of(&none, &w, &t, threads, 0);
        for (uint64_t k = 0; k < 3; k++) {
            CHECK_EQ(TFW_OK, push_one(p, &f, k, k, 0));
            CHECK_EQ(k + 1, k + take_rows(p));
        }
        tfw_pipeline_tally(p, &found);
        CHECK(memcmp(&expected, &found, sizeof found) == 0);
        tfw_pipeline_free(p);
    }
    free(f.data);
    table_free(&t);
}

/* The messages that do not fit, and the records after them, which are kept for a seek. */
static void misfits_without_memory(void) {
    fileset none = {0};
    table t = table_new(false);
    file f = file_with_misfits(3, 12, 5);
    uint64_t kept = 0, lost = 0;
    for (uint32_t threads = 1; threads < 3; threads++) {
        for (long i = 0; i < 60; i++) {
            tfw_pipeline *p = pipeline_of(&none, &keeping, &t, threads, 500);
            tfw_span spans[12];
            tfw_chunk *chunk;
            const uint8_t *data;
            uint64_t len;
            int status;
            for (size_t k = 0; k < 12; k++) {
                const size_t begin = file_begin(&f, k);
                spans[k] = (tfw_span){begin + TFW_HEADER_SIZE, f.ends[k] - begin - 16};
            }
            const tfw_batch batch = {.size = sizeof batch, .data = f.data, .data_len = f.len,
                                     .spans = spans, .count = 12};
            tfwi_test_fail_allocation = i;
            status = tfw_pipeline_push(p, &batch, 0, NULL);
            status = status == TFW_OK ? tfw_pipeline_next(p, -1, &chunk, NULL) : status;
            CHECK(status == TFW_E_KIND || status == TFW_E_MEMORY);
            tfw_pipeline_misfit(p, &data, &len);
            CHECK(status == TFW_E_KIND || data == NULL);
            CHECK(data == NULL || (len == spans[0].length &&
                                   memcmp(data, f.data + TFW_HEADER_SIZE, (size_t)len) == 0));
            kept += data != NULL;
            lost += status == TFW_E_KIND && data == NULL;
            tfw_pipeline_free(p);
            tfwi_test_fail_allocation = -1;
        }
    }
    CHECK(kept != 0 && lost != 0);
    free(f.data);
    table_free(&t);
}

/* Whichever request for memory fails, what was taken is right. */
static void without_memory(void) {
    fileset set = {0}, none = {0};
    table t = table_new(false);
    fileset_add(&set, file_of_examples(1, 30, false));
    const file *f = &set.files[0];
    for (uint32_t threads = 1; threads < 3; threads++) {
        for (long i = 0; i < 120; i++) {
            tfw_pipeline *p = pipeline_of(&none, &keeping, &t, threads, 500);
            tfw_chunk *chunk = NULL;
            uint64_t pushed = 0, rows = 0;
            int status = TFW_OK;
            tfwi_test_fail_allocation = i;
            while (status >= 0 && (pushed < 30 || status != TFW_END)) {
                status = pushed < 30 ? push_one(p, f, pushed, pushed, 0) : TFW_NEED_SPACE;
                pushed += status == TFW_OK;
                status = status == TFW_NEED_SPACE ? tfw_pipeline_next(p, -1, &chunk, NULL) : status;
                if (status == TFW_OK && chunk != NULL) {
                    tfw_chunk_info info = {.size = sizeof info};
                    tfw_chunk_get(chunk, &info);
                    rows += info.records;
                    tfw_chunk_release(chunk);
                }
                chunk = NULL;
            }
            CHECK(status == TFW_E_MEMORY || (status == TFW_END && rows == 28));
            CHECK(rows % 7 == 0);
            tfw_pipeline_free(p);
            tfwi_test_fail_allocation = -1;
        }
    }
    table_free(&t);
    fileset_free(&set);
}

int main(void) {
    RUN(pushing_only_goes_on);
    RUN(a_seek_finds_what_was_pushed);
    RUN(pushing_begins_where_reading_stopped);
    RUN(no_seek_before_what_was_read_is_taken);
    RUN(long_records_are_pushed);
    RUN(gaps_between_numbers_and_between_offsets);
    RUN(unverified_records_add_up);
    RUN(misfits_without_memory);
    RUN(without_memory);
    return check_report("the edges of what is pushed");
}
