/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of tfwire.h with every flag, with nothing, and with numbers at the edges: an error
 * or a result, but no access outside of what it was given. Buffers have exactly the size stated, so
 * that the sanitizer sees more. tests/house/test_architecture.py asks for every function here. */
#include "arguments.h"
#include "columns.h"

/* ---- Flags ---------------------------------------------------------------------------------- */

/* What a function with flags makes of an input that is right; the status. */
typedef int flagged(unsigned flags);

static int scan_with(unsigned flags) {
    uint8_t *data = framed_record();
    tfw_span span;
    size_t count, consumed;
    int status = tfw_scan(data, FRAMED, 0, flags, &span, 1, &count, &consumed, NULL);
    free(data);
    return status;
}

static int tally_block_with(unsigned flags) {
    uint8_t *data = framed_record();
    tfw_tally tally = {.records = 3};
    int status = tfw_tally_block(&tally, data, FRAMED, flags, NULL);
    CHECK_EQ(status == TFW_OK ? 4 : 3, tally.records);
    free(data);
    return status;
}

static int tally_spans_with(unsigned flags) {
    uint8_t *data = framed_record();
    const tfw_span span = {TFW_HEADER_SIZE, PAYLOAD};
    tfw_tally tally = {.records = 3};
    int status = tfw_tally_spans(&tally, data, FRAMED, &span, 1, flags, NULL);
    CHECK_EQ(status == TFW_OK ? 4 : 3, tally.records);
    free(data);
    return status;
}

static int reader_with(unsigned flags) {
    const tfw_reader_options options = {.size = sizeof options, .fd = -1, .flags = flags};
    tfw_reader *reader;
    int status = tfw_reader_create(&options, &reader, NULL);
    tfw_reader_free(reader);
    return status;
}

static int columns_with(unsigned flags) {
    tfw_schema *schema;
    tfw_columns *columns;
    CHECK_EQ(TFW_OK, tfw_schema_create(NULL, 0, SEED, &schema, NULL));
    int status = tfw_columns_create(schema, flags, &columns, NULL);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    return status;
}

static int parse_with(unsigned flags) {
    table t;
    blob message = example();
    uint8_t *data = exactly(message.data, message.len);
    /* With addresses, the offset is one. */
    const uint64_t offset = (flags & TFW_ADDRESSES) != 0 ? (uintptr_t)data : 0;
    const tfw_span span = {offset, message.len};
    table_open(&t);
    int status = tfw_parse(t.columns, data, message.len, &span, 1, flags, NULL, NULL);
    table_close(&t);
    free(data);
    return status;
}

static int parse_sequence_with(unsigned flags) {
    table t;
    blob message = example();
    uint8_t *data = exactly(message.data, message.len);
    const uint64_t offset = (flags & TFW_ADDRESSES) != 0 ? (uintptr_t)data : 0;
    const tfw_span span = {offset, message.len};
    table_open(&t);
    int status = tfw_parse_sequence(t.columns, t.lists, data, message.len, &span, 1, flags, NULL,
                                    NULL);
    table_close(&t);
    free(data);
    return status;
}

static int survey_with(unsigned flags) {
    blob message = example();
    uint8_t *data = exactly(message.data, message.len);
    const uint64_t offset = (flags & TFW_ADDRESSES) != 0 ? (uintptr_t)data : 0;
    const tfw_span span = {offset, message.len};
    tfw_survey *survey;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &survey, NULL));
    int status = tfw_survey_add(survey, data, message.len, &span, 1, flags, NULL, NULL);
    CHECK_EQ(status == TFW_OK, tfw_survey_count(survey) != 0);
    tfw_survey_free(survey);
    free(data);
    return status;
}

static void unknown_flags_are_refused(void) {
    static const struct {
        flagged *call;
        unsigned known;
    } functions[] = {
        {scan_with, TFW_NO_DATA_CRC},
        {tally_block_with, TFW_NO_DATA_CRC},
        {tally_spans_with, TFW_NO_DATA_CRC},
        {reader_with, TFW_NO_DATA_CRC | TFW_CORRECT | TFW_CORRECT_AMBIGUOUS},
        {columns_with,
         TFW_FEATURE_LISTS | TFW_OWN_NUMBERS | TFW_NOTE_ABSENT | TFW_NOTE_UNKNOWN},
        {parse_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_ADDRESSES},
        {parse_sequence_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_ADDRESSES},
        {survey_with, TFW_SEQUENCE | TFW_ADDRESSES},
    };
    for (size_t i = 0; i < COUNT(functions); i++) {
        const unsigned known = functions[i].known;
        for (unsigned bit = 0; bit < 32; bit++) {
            const unsigned flag = 1u << bit;
            const int expected = (flag & ~known) != 0 ? TFW_E_ARGUMENT : TFW_OK;
            CHECK_EQ(expected, functions[i].call(flag));
            CHECK_EQ(expected, functions[i].call(flag | known));
        }
        CHECK_EQ(TFW_OK, functions[i].call(0));
        CHECK_EQ(TFW_E_ARGUMENT, functions[i].call(UINT32_MAX));
        blobs_free();
    }
}

/* ---- Nothing -------------------------------------------------------------------------------- */

static void no_records_are_no_error(void) {
    size_t a = 9, b = 9;
    uint64_t shortest = 1, longest = 2;
    tfw_tally tally = {0};
    tfw_flip flip;
    uint8_t buffer[TFW_HEADER_SIZE];
    uint64_t offset = 0;
    tfw_free(NULL);
    CHECK_EQ(7, tfw_crc32c(7, NULL, 0));
    CHECK_EQ(TFW_OK, tfw_scan(NULL, 0, 0, 0, NULL, 0, &a, &b, NULL));
    CHECK(a == 0 && b == 0);
    CHECK_EQ(TFW_OK, tfw_frame(NULL, 0, NULL, 0, NULL));
    CHECK_EQ(TFW_OK, tfw_pack(NULL, 0, NULL, 0, NULL, 0, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_tally_block(&tally, NULL, 0, 0, NULL));
    CHECK_EQ(TFW_OK, tfw_tally_spans(&tally, NULL, 0, NULL, 0, 0, NULL));
    CHECK(tally.records == 0 && tally.file_crc == 0);
    CHECK_EQ(TFW_OK, tfw_hash_spans(SEED, NULL, 0, NULL, 0, NULL, NULL));
    tfw_span_lengths(NULL, 0, &shortest, &longest);
    CHECK(shortest == 1 && longest == 2);
    CHECK_EQ(TFW_NEED_INPUT, tfw_correct(NULL, 0, 0, 0, &flip, NULL));
    CHECK_EQ(TFW_OK, tfw_read_at(-1, NULL, 0, 0, &a, NULL));
    CHECK_EQ(TFW_END, tfw_walk(-1, 0, &offset, buffer, sizeof buffer, NULL, 0, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_pack_addresses(NULL, 0, NULL, 0, &a, &b));
    tfw_close_file(&(int32_t){-1});
    CHECK_EQ(TFW_E_IO, tfw_lock_file(-1, 0, NULL));
    CHECK_EQ(TFW_E_IO, tfw_unlock_file(-1, NULL));
    CHECK_EQ(0, tfw_find_reserved_flags(NULL, 0));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_read_record(-1, 0, 0, NULL));
}

static void no_messages_are_no_error(void) {
    table t;
    size_t a = 9, b = 9;
    size_t done = 9;
    const int64_t splits[] = {0};
    table_open(&t);
    CHECK_EQ(TFW_OK, tfw_parse(t.columns, NULL, 0, NULL, 0, 0, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_parse_sequence(NULL, NULL, NULL, 0, NULL, 0, 0, &a, NULL));
    tfw_extent extent = {1, 1, 1};
    uint64_t left_out = 9;
    CHECK_EQ(TFW_OK, tfw_shorten(NULL, 0, &extent, NULL, &a, NULL, 0, &b, &left_out, NULL));
    CHECK(a == 0 && b == 0 && left_out == 0);
    CHECK_EQ(0, tfw_find(NULL, 0, NULL, 0, &(tfw_wanted){.part_len = 0}, NULL));
    CHECK_EQ(TFW_OK, tfw_measure(NULL, 0, &extent, NULL));
    CHECK(extent.features == 0 && extent.objects == 0 && extent.bytes == 0);
    tfw_survey *survey;
    CHECK_EQ(TFW_OK, tfw_survey_create(0, &survey, NULL));
    CHECK_EQ(TFW_OK, tfw_survey_add(survey, NULL, 0, NULL, 0, 0, &a, NULL));
    CHECK_EQ(0, tfw_survey_count(survey));
    tfw_survey_free(survey);
    tfw_survey_free(NULL);
    CHECK_EQ(TFW_OK, tfw_pad(NULL, 0, splits, 0, 0, 8, splits, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_exchange(0, 0, NULL, NULL, 0, NULL, NULL, 8, 0, NULL));
    CHECK_EQ(TFW_OK, tfw_gather(NULL, 0, NULL, 0, &a));
    CHECK_EQ(TFW_OK, tfw_permute(0, 0, NULL, 0, NULL));
    CHECK_EQ(TFW_OK, tfw_encode(NULL, 0, 0, 0, 0, 0, NULL, 0, NULL, &done, &b, NULL));
    CHECK_EQ(TFW_OK, tfw_encode_sequence(NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, 0, NULL, &done, &b,
                                         NULL));
    tfw_columns_free(NULL);
    tfw_schema_free(NULL);
    tfw_reader_free(NULL);
    table_close(&t);
}

/* ---- Spans at the edges --------------------------------------------------------------------- */

/* Functions that take spans over data of FRAMED bytes; none may look outside of it. */
static void try_span(uint8_t *data, const tfw_span *spans, size_t count) {
    uint8_t *out = malloc(1024);
    size_t len = 9, done;
    tfw_tally tally = {.records = 5};
    bool inside = true;
    for (size_t i = 0; i < count; i++) {
        inside &= spans[i].length <= FRAMED && spans[i].offset <= FRAMED - spans[i].length;
    }
    CHECK_EQ(inside ? TFW_OK : TFW_E_ARGUMENT,
             tfw_pack(data, FRAMED, spans, count, out, 1024, &len, NULL));
    int status = tfw_tally_spans(&tally, data, FRAMED, spans, count, 0, NULL);
    CHECK(status == TFW_OK || (tally.records == 5 && tally.hash == 0 && tally.file_crc == 0));
    uint64_t hashes[2];
    CHECK_EQ(inside ? TFW_OK : TFW_E_ARGUMENT,
             tfw_hash_spans(SEED, data, FRAMED, spans, count, hashes, NULL));
    tfw_survey *survey;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &survey, NULL));
    status = tfw_survey_add(survey, data, FRAMED, spans, count, 0, &done, NULL);
    CHECK(inside ? status == TFW_OK || status == TFW_E_WIRE : status == TFW_E_ARGUMENT);
    for (size_t at = 0; at < tfw_survey_count(survey); at++) {
        tfw_feature_survey feature = {.size = sizeof feature};
        tfw_survey_get(survey, at, &feature);
        CHECK(feature.name_len <= FRAMED);
    }
    tfw_survey_free(survey);
    table t;
    table_open(&t);
    CHECK(tfw_parse(t.columns, data, FRAMED, spans, count, 0, &done, NULL) < 0);
    status = tfw_parse_sequence(NULL, t.lists, data, FRAMED, spans, count, 0, &done, NULL);
    CHECK(inside ? status == TFW_OK || status == TFW_E_WIRE : status == TFW_E_ARGUMENT);
    table_close(&t);
    tfw_frame(data, FRAMED, spans, count, NULL); /* what it writes is checked elsewhere */
    free(out);
}

static void spans_at_the_edges_stay_inside(void) {
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            uint8_t *data = framed_record();
            const tfw_span spans[] = {{EDGES[i], EDGES[k]}, {TFW_HEADER_SIZE, PAYLOAD}};
            try_span(data, spans, 1);
            free(data);
            data = framed_record();
            const tfw_span swapped[] = {spans[1], spans[0]};
            try_span(data, swapped, 2); /* one that is right before one that may not be */
            free(data);
        }
    }
}

/* Spans that touch as those of neighbours do, of which the second leaves the data. */
static void neighbours_that_leave_the_data_are_refused(void) {
    uint8_t *data = framed_record();
    const tfw_span spans[] = {{TFW_HEADER_SIZE, PAYLOAD}, {FRAMED + TFW_HEADER_SIZE, PAYLOAD}};
    tfw_tally tally = {.records = 5};
    CHECK_EQ(TFW_E_ARGUMENT, tfw_tally_spans(&tally, data, FRAMED, spans, 2, 0, NULL));
    CHECK(tally.records == 5 && tally.payload_bytes == 0 && tally.hash == 0);
    free(data);
}

/* ---- Offsets at the edges ------------------------------------------------------------------- */

static void try_offsets(const uint8_t *data, const int64_t *offsets, size_t count) {
    uint8_t *out = malloc(1024), *padded = malloc(3 * 8 * 16);
    const uint8_t padding[8] = {1};
    size_t len = 9;
    bool good = offsets[0] >= 0 && offsets[count] <= PAYLOAD;
    for (size_t i = 0; i < count; i++) {
        good = good && offsets[i] <= offsets[i + 1];
    }
    int status = tfw_pad(data, PAYLOAD / 8, offsets, count, 16, 8, padding, padded, NULL);
    CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
    const tfw_input string = {.name = "s", .name_len = 1, .kind = TFW_BYTES, .count = 1,
                              .values = data, .value_count = count, .byte_count = PAYLOAD,
                              .offsets = offsets};
    const tfw_input list = {.name = "l", .name_len = 1, .kind = TFW_INT64, .values = data,
                            .value_count = PAYLOAD / 8, .byte_count = PAYLOAD, .splits = offsets,
                            .cell_count = count};
    tfw_span spans[2];
    size_t done;
    status = tfw_encode(&string, 1, 0, count, 0, 0, out, 1024, spans, &done, &len, NULL);
    CHECK(good ? status == TFW_OK : status != TFW_OK);
    status = tfw_encode(&list, 1, 0, count, 0, 0, out, 1024, spans, &done, &len, NULL);
    CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
    free(out);
    free(padded);
}

static void offsets_at_the_edges_stay_inside(void) {
    uint8_t *data = calloc(1, PAYLOAD);
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const int64_t one = (int64_t)EDGES[i], other = (int64_t)EDGES[k];
            const int64_t offsets[3][3] = {{one, other, PAYLOAD}, {0, one, other}, {one, 5, other}};
            for (size_t n = 0; n < 3; n++) {
                int64_t *exact = (int64_t *)(void *)exactly(offsets[n], 3 * sizeof **offsets);
                try_offsets(data, exact, 2);
                free(exact);
            }
        }
    }
    free(data);
}

int main(void) {
    RUN(unknown_flags_are_refused);
    RUN(no_records_are_no_error);
    RUN(no_messages_are_no_error);
    RUN(spans_at_the_edges_stay_inside);
    RUN(neighbours_that_leave_the_data_are_refused);
    RUN(offsets_at_the_edges_stay_inside);
    return check_report("arguments");
}
