/* SPDX-License-Identifier: Apache-2.0 */
/* Status names, versions, and error objects: what writes them, and what does not. */
#include "arguments.h"
#include "records.h"
#include "tfwire_pipeline.h"

static void test_every_status_has_its_name(void) {
    static const struct {
        int status;
        const char *name;
    } names[] = {
        {TFW_OK, "TFW_OK"},
        {TFW_END, "TFW_END"},
        {TFW_NEED_INPUT, "TFW_NEED_INPUT"},
        {TFW_NEED_SPACE, "TFW_NEED_SPACE"},
        {TFW_E_ARGUMENT, "TFW_E_ARGUMENT"},
        {TFW_E_MEMORY, "TFW_E_MEMORY"},
        {TFW_E_IO, "TFW_E_IO"},
        {TFW_E_UNSUPPORTED, "TFW_E_UNSUPPORTED"},
        {TFW_E_TRUNCATED, "TFW_E_TRUNCATED"},
        {TFW_E_LENGTH_CRC, "TFW_E_LENGTH_CRC"},
        {TFW_E_DATA_CRC, "TFW_E_DATA_CRC"},
        {TFW_E_TOO_LARGE, "TFW_E_TOO_LARGE"},
        {TFW_E_INDEX, "TFW_E_INDEX"},
        {TFW_E_WIRE, "TFW_E_WIRE"},
        {TFW_E_MISSING, "TFW_E_MISSING"},
        {TFW_E_KIND, "TFW_E_KIND"},
        {TFW_E_COUNT, "TFW_E_COUNT"},
        {TFW_E_SCHEMA, "TFW_E_SCHEMA"},
        {12345, "TFW_E_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(strcmp(names[i].name, tfw_status_name(names[i].status)) == 0);
    }
}

static void test_the_library_is_the_one_of_its_header(void) {
    CHECK(strcmp(TFW_VERSION_STRING, tfw_version()) == 0);
}

static void test_the_version_as_a_number_and_as_a_text(void) {
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", TFW_VERSION_MAJOR, TFW_VERSION_MINOR,
             TFW_VERSION_PATCH);
    CHECK(strcmp(TFW_VERSION_STRING, text) == 0);
#if TFW_VERSION < TFW_MAKE_VERSION(0, 1, 0) || TFW_VERSION >= TFW_MAKE_VERSION(1000, 0, 0)
    CHECK(false);
#endif
    CHECK(TFW_MAKE_VERSION(0, 9, 12) < TFW_MAKE_VERSION(0, 10, 0));
}

static void test_a_failure_resets_every_field(void) {
    tfw_error error;
    memset(&error, 7, sizeof error);
    CHECK_EQ(TFW_E_KIND, tfwi_fail(&error, TFW_E_KIND, "why"));
    CHECK_EQ(TFW_E_KIND, error.status);
    CHECK(error.os_errno == -1 && error.record == -1 && error.offset == -1);
    CHECK(error.feature == -1 && error.list == -1 && error.row == -1);
    CHECK(error.expected == -1 && error.found == -1);
    CHECK(strcmp("why", error.text) == 0);
    CHECK_EQ(TFW_E_WIRE, tfwi_fail(NULL, TFW_E_WIRE, "nobody asks"));
}

static void test_a_long_text_is_cut(void) {
    tfw_error error;
    char text[3 * TFW_ERROR_TEXT_SIZE];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    tfwi_fail(&error, TFW_E_WIRE, text);
    CHECK_EQ(TFW_ERROR_TEXT_SIZE - 1, strlen(error.text));
}

/* ---- Convention 3 of the header ------------------------------------------------------------- */

static uint8_t buffer[4096];
static tfw_span found[8];
static int64_t offsets[8];
static size_t count, size;
static file records; /* three, and what a case appends */

static int scan(tfw_error *error) {
    return tfw_scan(records.data, records.len, 0, 0, found, 8, &count, &size, error);
}

static int correct_first(tfw_error *error) {
    tfw_flip flip;
    return tfw_correct(records.data, records.ends[0], records.len, 0, &flip, error);
}

static int correct_last(tfw_error *error) {
    const size_t begin = records.ends[2];
    tfw_flip flip;
    return tfw_correct(records.data + begin, records.len - begin, records.len - begin, 0, &flip,
                       error);
}

/* Reads to the end or to an error, both of which stay. */
static int read_all_records(tfw_error *error) {
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader;
    tfw_batch batch = {.size = sizeof batch};
    int status;
    options.fd = file_open(&records);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, error));
    do {
        status = tfw_reader_next(reader, 0, &batch, error);
    } while (status == TFW_OK);
    CHECK_EQ(status, tfw_reader_next(reader, 0, &batch, error));
    tfw_reader_free(reader);
    close(options.fd);
    return status;
}

static int feed_nothing(tfw_error *error) {
    const tfw_reader_options options = {.size = sizeof options, .fd = -1};
    tfw_reader *reader;
    tfw_batch batch = {.size = sizeof batch};
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, error));
    int status = tfw_reader_next(reader, 0, &batch, error);
    tfw_reader_free(reader);
    return status;
}

static int walk(tfw_error *error) {
    uint64_t at = 0;
    int fd = file_open(&records);
    int status = tfw_walk(fd, records.len, &at, buffer, sizeof buffer, offsets, 8, &count, error);
    close(fd);
    return status;
}

/* The first record and the last by their numbers, up to the first that is wrong. */
static int order(tfw_error *error) {
    const int64_t places[] = {0, (int64_t)records.ends[0], (int64_t)records.ends[1],
                              (int64_t)records.ends[2], (int64_t)records.len};
    const int64_t numbers[] = {0, records.count - 1};
    const tfw_indexed_file indexed = {places, records.count, NULL, file_open(&records), 0};
    const tfw_pipeline_options options = {.size = sizeof options, .num_threads = 1,
                                          .mode = TFW_PIPELINE_SPANS, .indexed = &indexed,
                                          .indexed_count = 1};
    tfw_pipeline *pipeline;
    tfw_chunk *chunk;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &pipeline, NULL));
    CHECK_EQ(TFW_OK, tfw_pipeline_fetch(pipeline, numbers, 2, NULL));
    int status;
    while ((status = tfw_pipeline_next(pipeline, -1, &chunk, error)) == TFW_OK) {
        tfw_chunk_release(chunk);
    }
    tfw_pipeline_free(pipeline);
    close(indexed.fd);
    return status;
}

static int tally(tfw_error *error) {
    tfw_tally sum = {0};
    return tfw_tally_block(&sum, records.data, records.len, 0, error);
}

typedef enum tail { WHOLE, CUT, WRONG_LENGTH, WRONG_PAYLOAD, NUM_TAILS } tail;

/* Three good records of no bytes, and perhaps one that is not. */
static void make_records(tail what) {
    records = (file){0};
    for (size_t i = 0; i < 3 + (what != WHOLE); i++) {
        file_append_record(&records, NULL, 0);
    }
    switch (what) {
    case CUT: records.len--; break;
    case WRONG_LENGTH: records.data[records.ends[2] + 9] ^= 0x55; break;
    case WRONG_PAYLOAD: records.data[records.len - 2] ^= 0x55; break;
    default: break;
    }
}

/* A failure writes the error, success never does; of the other outcomes those that are marked, for
 * which the header says so. */
static void test_errors_are_written_by_failures_and_by_what_says_so(void) {
    static const struct {
        int (*call)(tfw_error *error);
        bool says_so;
    } calls[] = {{scan, true},           {correct_first, true},       {correct_last, true},
                 {walk, false},          {read_all_records, false},   {feed_nothing, false},
                 {order, false},         {tally, false}};
    size_t met[3] = {0}; /* success, other outcomes, failures */
    for (tail what = WHOLE; what < NUM_TAILS; what++) {
        make_records(what);
        for (size_t i = 0; i < COUNT(calls); i++) {
            tfw_error error, before;
            memset(&error, 0x5a, sizeof error);
            before = error;
            int status = calls[i].call(&error);
            bool same = memcmp(&before, &error, sizeof error) == 0;
            const bool other = status > 0 && status != TFW_END && calls[i].says_so;
            CHECK(same || ((status < 0 || other) && error.status == status));
            CHECK(!same || status >= 0);
            CHECK_EQ(status, calls[i].call(NULL));
            met[status < 0 ? 2 : status > 0]++;
        }
        free(records.data);
    }
    CHECK(met[0] > 3 && met[1] > 10 && met[2] > 10);
}

/* ---- Convention 12 -------------------------------------------------------------------------- */

static void test_structs_of_another_size_are_refused(void) {
    make_records(WHOLE);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader;
    tfw_batch batch = {.size = sizeof batch + 8};
    tfw_error error;
    options.fd = file_open(&records);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_next(reader, 0, &batch, &error));
    CHECK(strcmp("batch->size is not sizeof(tfw_batch)", error.text) == 0);
    batch.size = sizeof batch;
    CHECK_EQ(TFW_OK, tfw_reader_next(reader, 0, &batch, NULL));
    CHECK(batch.size == sizeof batch && batch.count == 3);
    tfw_reader_free(reader);
    options.size += 8;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_create(&options, &reader, &error));
    close(options.fd);
    free(records.data);
}

/* A program that knows fewer members gets those. */
static void test_a_smaller_survey_is_filled_in_as_far_as_it_goes(void) {
    blob message = example();
    const tfw_span span = {0, message.len};
    tfw_survey *survey;
    tfw_feature_survey whole = {.size = sizeof whole}, part, before;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &survey, NULL));
    CHECK_EQ(TFW_OK, tfw_survey_add(survey, message.data, message.len, &span, 1, 0, NULL, NULL));
    tfw_survey_get(survey, 0, &whole);
    for (size_t room = sizeof part.size; room <= sizeof part; room += 8) {
        memset(&before, 0x5a, sizeof before);
        part = before;
        part.size = room;
        tfw_survey_get(survey, 0, &part);
        CHECK_EQ(room, part.size);
        CHECK(memcmp(&part.size + 1, &whole.size + 1, room - sizeof part.size) == 0);
        CHECK(memcmp((uint8_t *)&part + room, (uint8_t *)&before + room, sizeof part - room) == 0);
    }
    tfw_survey_free(survey);
    blobs_free();
}

int main(void) {
    RUN(test_every_status_has_its_name);
    RUN(test_the_library_is_the_one_of_its_header);
    RUN(test_the_version_as_a_number_and_as_a_text);
    RUN(test_a_failure_resets_every_field);
    RUN(test_a_long_text_is_cut);
    RUN(test_structs_of_another_size_are_refused);
    RUN(test_a_smaller_survey_is_filled_in_as_far_as_it_goes);
    RUN(test_errors_are_written_by_failures_and_by_what_says_so);
    return check_report("error");
}
