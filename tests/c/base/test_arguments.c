/* Every function of tfwire.h with every flag, with nothing, and with numbers at the edges: an error
 * or a result, but no access outside of what it was given. Buffers have exactly the size stated, so
 * that the sanitizer sees more. tests/unit/test_architecture.py asks for every function here. */
#include "proto.h"

#include "records/frame.h"
#include "python/opcodes.h"

#include <sys/mman.h>

enum { PAYLOAD = 40, FRAMED = PAYLOAD + TFWI_FRAME_SIZE };

static const uint64_t EDGES[] = {
    0, 1, 2, 4, 11, 12, 13, 16, PAYLOAD, FRAMED - 1, FRAMED, FRAMED + 1, INT32_MAX, UINT32_MAX,
    (uint64_t)INT32_MAX + 1, (uint64_t)UINT32_MAX + 1, INT64_MAX - 16, INT64_MAX,
    (uint64_t)INT64_MAX + 1, UINT64_MAX - FRAMED, UINT64_MAX - 16, UINT64_MAX - 1, UINT64_MAX};

enum { NUM_EDGES = sizeof EDGES / sizeof EDGES[0] };

#define FOR_EDGES(i) for (size_t i = 0; i < NUM_EDGES; i++)

static uint8_t *exactly(const void *data, size_t len) {
    uint8_t *copy = malloc(len != 0 ? len : 1);
    if (len != 0) {
        memcpy(copy, data, len);
    }
    return copy;
}

/* A record of PAYLOAD bytes in its frame. */
static uint8_t *framed_record(void) {
    uint8_t *data = malloc(FRAMED);
    const tfw_span span = {TFW_HEADER_SIZE, PAYLOAD};
    for (size_t i = 0; i < FRAMED; i++) {
        data[i] = (uint8_t)i;
    }
    CHECK_EQ(TFW_OK, tfw_frame(data, FRAMED, &span, 1, NULL));
    return data;
}

static blob example(void) {
    return EXAMPLE(entry("i", INTS(7)), entry("s", field(TFW_BYTES, field(1, RAW("text")))));
}

/* Dense: a number and a string; of a feature list: numbers. */
typedef struct table {
    tfw_schema *schema, *list_schema;
    tfw_columns *columns, *lists;
    int64_t number;
} table;

static void table_open(table *t) {
    const tfw_feature features[] = {
        {.name = "i", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 1},
        {.name = "s", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_DENSE, .count = 1},
    };
    const tfw_feature list = {
        .name = "l", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE};
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 2, SEED, &t->schema, NULL));
    CHECK_EQ(TFW_OK, tfw_schema_create(&list, 1, SEED, &t->list_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(t->schema, 0, &t->columns, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(t->list_schema, TFW_FEATURE_LISTS, &t->lists, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_bind(t->columns, 0, &t->number, 1, NULL));
}

static void table_close(table *t) {
    tfw_columns_free(t->columns);
    tfw_columns_free(t->lists);
    tfw_schema_free(t->schema);
    tfw_schema_free(t->list_schema);
}

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

static int parse_one_with(unsigned flags) {
    table t;
    blob message = example();
    uint8_t *data = exactly(message.data, message.len), strings[4];
    int64_t end;
    table_open(&t);
    int status = tfw_parse_one(t.columns, data, message.len, flags, strings, 4, &end, NULL);
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

/* The framed record, as an Example or not, through a buffer of its size. */
static int read_with(unsigned flags, unsigned scan_flags) {
    table t;
    blob message = example();
    uint8_t *data = malloc(message.len + TFWI_FRAME_SIZE);
    const tfw_span span = {TFW_HEADER_SIZE, message.len};
    size_t done;
    memcpy(data + TFW_HEADER_SIZE, message.data, message.len);
    CHECK_EQ(TFW_OK, tfw_frame(data, message.len + TFWI_FRAME_SIZE, &span, 1, NULL));
    tfw_stretch s = {.size = sizeof s, .fd = -1, .flags = scan_flags, .buffer = data,
                     .capacity = message.len + TFWI_FRAME_SIZE,
                     .end = message.len + TFWI_FRAME_SIZE};
    table_open(&t);
    int status = tfw_read_columns(t.columns, t.lists, &s, 1, flags, NULL, &done, NULL);
    CHECK_EQ(status == TFW_OK, done);
    table_close(&t);
    free(data);
    return status;
}

static int read_columns_with(unsigned flags) { return read_with(flags, 0); }
static int stretch_with(unsigned flags) { return read_with(0, flags); }

static int decode_with(unsigned flags) {
    blob message = example();
    uint8_t *data = exactly(message.data, message.len);
    const uint64_t offset = (flags & TFW_ADDRESSES) != 0 ? (uintptr_t)data : 0;
    const tfw_span span = {offset, message.len};
    tfw_dicts dicts = {0};
    int status = tfw_decode(data, message.len, &span, 1, flags, &dicts, NULL, NULL);
    tfw_dicts_free(&dicts);
    free(data);
    return status;
}

/* pickle.dumps({}, 5) */
static const uint8_t NO_FEATURES[] = {OP_PROTO, 5, OP_EMPTY_DICT, OP_MEMOIZE, OP_STOP};

static int rows_with(unsigned flags) {
    tfw_rows *rows;
    tfw_span span;
    uint8_t *stream = exactly(NO_FEATURES, sizeof NO_FEATURES), *out = malloc(256);
    size_t done, len;
    CHECK_EQ(TFW_OK, tfw_rows_create(SEED, &rows, NULL));
    int status = tfw_rows_encode(rows, stream, sizeof NO_FEATURES, flags, 0, 0, out, 256, &span, 1,
                                 &done, &len, NULL);
    CHECK_EQ(status == TFW_OK, done);
    tfw_rows_free(rows);
    free(stream);
    free(out);
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
        {columns_with, TFW_FEATURE_LISTS},
        {parse_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_ADDRESSES},
        {parse_one_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE},
        {parse_sequence_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_ADDRESSES},
        {read_columns_with, TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE},
        {stretch_with, TFW_NO_DATA_CRC},
        {decode_with, TFW_SEQUENCE | TFW_ADDRESSES},
        {rows_with, TFW_KEEP_ORDER},
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
    uint8_t buffer[TFW_HEADER_SIZE], out[512];
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
    tfw_span_lengths(NULL, 0, &shortest, &longest);
    CHECK(shortest == 1 && longest == 2);
    CHECK_EQ(TFW_NEED_INPUT, tfw_correct(NULL, 0, 0, 0, &flip, NULL));
    CHECK_EQ(TFW_END, tfw_walk(-1, 0, &offset, buffer, sizeof buffer, NULL, 0, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_fetch(-1, NULL, NULL, 0, NULL, 0, NULL, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_pickle_spans(NULL, 0, NULL, 0, out, sizeof out, &a));
    CHECK_EQ(TFW_NEED_SPACE, tfw_pickle_spans(NULL, 0, NULL, 0, NULL, 0, &a));
    CHECK_EQ(TFW_OK, tfw_pickle_offsets(NULL, 0, NULL, 0, out, sizeof out, &a));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pickle_frame(NULL, 0, NULL, 0));
    CHECK_EQ(TFW_OK, tfw_object_spans(NULL, 0, &(tfw_object_layout){0}, NULL));
    CHECK_EQ(TFW_OK, tfw_pack_objects(NULL, 0, &(tfw_object_layout){0}, NULL, 0, &a, &b));
}

static void no_messages_are_no_error(void) {
    table t;
    size_t a = 9, b = 9;
    size_t done = 9;
    tfw_dicts dicts = {0};
    const int64_t splits[] = {0};
    table_open(&t);
    CHECK_EQ(TFW_OK, tfw_parse(t.columns, NULL, 0, NULL, 0, 0, &a, NULL));
    CHECK_EQ(TFW_OK, tfw_parse_sequence(NULL, NULL, NULL, 0, NULL, 0, 0, &a, NULL));
    CHECK_EQ(TFW_E_MISSING, tfw_parse_one(t.columns, NULL, 0, 0, NULL, 0, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_decode(NULL, 0, NULL, 0, 0, &dicts, &a, NULL));
    tfw_dicts_free(&dicts);
    tfw_dicts_free(&dicts);
    CHECK_EQ(TFW_OK, tfw_pad(NULL, 0, splits, 0, 0, 8, splits, NULL, NULL));
    CHECK_EQ(TFW_OK, tfw_exchange(NULL, NULL, 0, NULL, NULL, 8, NULL, 0, NULL));
    CHECK_EQ(TFW_OK, tfw_gather(NULL, 0, NULL, 0, &a));
    CHECK_EQ(TFW_OK, tfw_encode(NULL, 0, 0, 0, 0, 0, NULL, 0, NULL, &done, &b, NULL));
    CHECK_EQ(TFW_OK, tfw_encode_sequence(NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, 0, NULL, &done, &b,
                                         NULL));
    tfw_rows *rows;
    CHECK_EQ(TFW_OK, tfw_rows_create(0, &rows, NULL));
    CHECK_EQ(TFW_E_UNSUPPORTED,
             tfw_rows_encode(rows, NULL, 0, 0, 0, 0, NULL, 0, NULL, 0, &a, &b, NULL));
    tfw_rows_free(rows);
    tfw_columns_free(NULL);
    tfw_schema_free(NULL);
    tfw_reader_free(NULL);
    tfw_rows_free(NULL);
    table_close(&t);
}

/* ---- Spans at the edges --------------------------------------------------------------------- */

/* Functions that take spans over data of FRAMED bytes; none may look outside of it. */
static void try_span(uint8_t *data, const tfw_span *spans, size_t count) {
    uint8_t *out = malloc(1024);
    size_t len = 9, done;
    tfw_tally tally = {.records = 5};
    tfw_dicts dicts = {0};
    bool inside = true;
    for (size_t i = 0; i < count; i++) {
        inside &= spans[i].length <= FRAMED && spans[i].offset <= FRAMED - spans[i].length;
    }
    int status = tfw_pickle_spans(data, FRAMED, spans, count, out, 1024, &len);
    CHECK(inside ? status == TFW_OK : status < 0 || status == TFW_NEED_SPACE);
    CHECK_EQ(inside ? TFW_OK : TFW_E_ARGUMENT,
             tfw_pack(data, FRAMED, spans, count, out, 1024, &len, NULL));
    status = tfw_tally_spans(&tally, data, FRAMED, spans, count, 0, NULL);
    CHECK(status == TFW_OK || (tally.records == 5 && tally.hash == 0 && tally.file_crc == 0));
    status = tfw_decode(data, FRAMED, spans, count, 0, &dicts, &done, NULL);
    CHECK(inside ? status == TFW_OK || status == TFW_E_WIRE : status == TFW_E_ARGUMENT);
    tfw_dicts_free(&dicts);
    table t;
    table_open(&t);
    CHECK(tfw_parse(t.columns, data, FRAMED, spans, count, 0, &done, NULL) < 0);
    status = tfw_parse_sequence(NULL, t.lists, data, FRAMED, spans, count, 0, &done, NULL);
    CHECK(inside ? status == TFW_OK || status == TFW_E_WIRE : status == TFW_E_ARGUMENT);
    table_close(&t);
    tfw_pickle_frame(data, FRAMED, spans, count);
    tfw_frame(data, FRAMED, spans, count, NULL); /* what these two write is checked elsewhere */
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
    int status = tfw_pickle_offsets(data, PAYLOAD, offsets, count, out, 1024, &len);
    CHECK(good ? status == TFW_OK && len != 0 : status != TFW_OK && len == 0);
    status = tfw_pad(data, PAYLOAD / 8, offsets, count, 16, 8, padding, padded, NULL);
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

static void fetched_offsets_at_the_edges_are_refused(void) {
    int fd = memfd_create("records", 0);
    uint8_t *data = framed_record(), *out = malloc(FRAMED);
    const int64_t numbers[] = {0, 1};
    CHECK_EQ(FRAMED, write(fd, data, FRAMED));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const int64_t offsets[] = {(int64_t)EDGES[i], (int64_t)EDGES[k], FRAMED};
            tfw_span spans[2];
            size_t done = 9;
            int status = tfw_fetch(fd, offsets, numbers, 2, out, FRAMED, spans, &done, NULL);
            CHECK(done <= 2 && (done == 2) == (status == TFW_OK));
            status = tfw_fetch(fd, offsets, numbers, 1, out, 0, spans, &done, NULL);
            CHECK(status != TFW_OK && done == 0);
        }
    }
    close(fd);
    free(data);
    free(out);
}

/* ---- Numbers at the edges ------------------------------------------------------------------- */

static void names_of_anything(void) {
    bool supported;
    CHECK(strcmp(tfw_version(), TFW_VERSION_STRING) == 0);
    FOR_EDGES(i) {
        CHECK(tfw_status_name((int)EDGES[i]) != NULL);
        CHECK_EQ(i != 0 && EDGES[i] > 8,
                 tfw_crc32c_kernel_name((size_t)EDGES[i], &supported) == NULL && EDGES[i] > 8);
        CHECK_EQ(EDGES[i] & UINT32_MAX,
                 tfw_crc32c_unmask(tfw_crc32c_mask((uint32_t)EDGES[i])));
        CHECK_EQ(5, tfw_crc32c_combine(0, 5, EDGES[i])); /* zeros before zeros change nothing */
    }
    CHECK_EQ(TFW_E_ARGUMENT, tfw_crc32c_select(""));
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
    CHECK(tfw_crc32c_kernel() != NULL);
}

static void limits_at_the_edges(void) {
    uint8_t *data = framed_record();
    tfw_span span;
    tfw_flip flip;
    size_t count, consumed;
    FOR_EDGES(i) {
        const uint64_t limit = EDGES[i];
        int status = tfw_scan(data, FRAMED, limit, 0, &span, 1, &count, &consumed, NULL);
        CHECK_EQ(limit == 0 || limit >= PAYLOAD ? TFW_OK : TFW_E_TOO_LARGE, status);
        CHECK(tfw_pickle_bound(limit, limit) >= limit);
        CHECK(tfw_pickle_bound(limit, 0) >= limit);
        tfw_tally tally = {0};
        tfw_tally_record(&tally, (uint32_t)limit, limit);
        CHECK(tally.payload_bytes == limit);
        status = tfw_verify_record(data, data + TFW_HEADER_SIZE, limit,
                                   data + FRAMED - TFW_FOOTER_SIZE, NULL);
        CHECK_EQ(limit == PAYLOAD ? TFW_OK : TFW_E_INDEX, status);
        FOR_EDGES(k) {
            status = tfw_correct(data, FRAMED, EDGES[k], limit, &flip, NULL);
            CHECK_EQ(limit == 0 || limit >= PAYLOAD ? TFW_END : TFW_E_TOO_LARGE, status);
            data[3] ^= 1;
            tfw_correct(data, FRAMED, EDGES[k], limit, &flip, NULL);
            data[3] ^= 1;
        }
    }
    free(data);
}

static void readers_at_the_edges(void) {
    int fd = memfd_create("records", 0);
    uint8_t *data = framed_record();
    CHECK_EQ(FRAMED, write(fd, data, FRAMED));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const tfw_reader_options options = {
                .size = sizeof options, .fd = fd, .buffer_size = EDGES[i] % (1 << 20),
                .offset = EDGES[k], .max_record_size = EDGES[i], .on_corrupt = (uint32_t)i % 5};
            tfw_reader *reader;
            tfw_batch batch;
            tfw_region region;
            tfw_flip flip;
            uint64_t bytes;
            if (tfw_reader_create(&options, &reader, NULL) != TFW_OK) {
                CHECK(reader == NULL && (EDGES[k] > INT64_MAX || i % 5 == 4));
                continue;
            }
            for (int round = 0; round < 3; round++) {
                int status = tfw_reader_next(reader, (size_t)EDGES[i], &batch, NULL);
                CHECK(status <= TFW_END);
            }
            CHECK(tfw_reader_skipped(reader, (size_t)EDGES[i], &region, 1) <= 1);
            CHECK(tfw_reader_skipped(reader, (size_t)EDGES[i], NULL, 0) <= 1);
            CHECK_EQ(0, tfw_reader_flips(reader, (size_t)EDGES[i], &flip, 1));
            CHECK(tfw_reader_skipped_total(reader, &bytes) <= 1);
            CHECK_EQ(0, tfw_reader_flips_total(reader, &bytes));
            CHECK_EQ(EDGES[i] > INT64_MAX ? TFW_E_ARGUMENT : TFW_OK,
                     tfw_reader_seek(reader, EDGES[i], EDGES[k], NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, (size_t)EDGES[k], NULL));
            tfw_reader_next(reader, 0, &batch, NULL);
            tfw_summary summary = {.shortest = UINT64_MAX};
            int summed = tfw_reader_summarize(reader, EDGES[k], 0, &summary, NULL, NULL);
            CHECK(summed != TFW_OK || EDGES[k] == 0 || summary.records != 0);
            CHECK(summary.shortest >= summary.longest || summary.records != 0);
            tfw_reader_free(reader);
        }
    }
    const tfw_reader_options huge = {.size = sizeof huge, .fd = -1, .buffer_size = UINT64_MAX};
    tfw_reader *reader;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_create(&huge, &reader, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_create(NULL, &reader, NULL));
    close(fd);
    free(data);
}

static void fed_readers_at_the_edges(void) {
    const tfw_reader_options options = {.size = sizeof options, .fd = -1, .buffer_size = 100};
    FOR_EDGES(i) {
        tfw_reader *reader;
        tfw_batch batch;
        uint8_t *room;
        size_t len;
        CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
        CHECK_EQ(EDGES[i] == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_reader_commit(reader, (size_t)EDGES[i], NULL)); /* nothing was reserved */
        if (EDGES[i] != 0) {
            CHECK_EQ(TFW_NEED_INPUT, tfw_reader_next(reader, (size_t)EDGES[i], &batch, NULL));
            CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, NULL));
            memset(room, 0, len);
            CHECK_EQ(EDGES[i] <= len ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_reader_commit(reader, (size_t)EDGES[i], NULL));
        }
        CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_seek(reader, EDGES[i], 0, NULL));
        tfw_reader_free(reader);
    }
}

static void walks_at_the_edges(void) {
    int fd = memfd_create("records", 0);
    uint8_t *data = framed_record();
    CHECK_EQ(FRAMED, write(fd, data, FRAMED));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            uint64_t offset = EDGES[k];
            uint8_t *buffer = malloc(TFW_HEADER_SIZE);
            int64_t found[1];
            size_t count = 9;
            int status = tfw_walk(fd, EDGES[i], &offset, buffer, TFW_HEADER_SIZE, found, 1, &count,
                                  NULL);
            CHECK(count <= 1);
            CHECK(EDGES[k] <= EDGES[i] || status == TFW_E_ARGUMENT);
            CHECK_EQ(TFW_E_ARGUMENT,
                     tfw_walk(fd, EDGES[i], &offset, buffer, 11, found, 1, &count, NULL));
            free(buffer);
        }
    }
    close(fd);
    free(data);
}

static void stretches_at_the_edges(void) {
    int fd = memfd_create("records", 0);
    uint8_t *data = framed_record();
    table t;
    size_t count;
    CHECK_EQ(FRAMED, write(fd, data, FRAMED));
    table_open(&t);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_read_ahead(NULL, 1, &count, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_read_columns(t.columns, NULL, NULL, 1, 0, NULL, &count, NULL));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const tfw_stretch s = {.size = sizeof s, .fd = fd, .offset = EDGES[i],
                                   .stop = EDGES[k], .buffer = malloc(FRAMED), .capacity = FRAMED};
            tfw_stretch other = s;
            int status = tfw_read_ahead(&other, (size_t)EDGES[k], &count, NULL);
            CHECK(count <= 1 && (count == 0) == (other.end == 0));
            CHECK(EDGES[i] <= FRAMED || EDGES[k] == 0 || status == TFW_END);
            other = s;
            status = tfw_read_columns(t.columns, NULL, &other, (size_t)EDGES[k], 0, NULL, &count,
                                      NULL);
            CHECK_EQ(0, count); /* it is no Example */
            CHECK(EDGES[i] <= FRAMED || EDGES[k] == 0 || status == TFW_END);
            other = (tfw_stretch){.size = sizeof s, .fd = -1, .begin = (size_t)EDGES[i],
                                  .end = (size_t)EDGES[k], .capacity = 0};
            status = tfw_read_columns(t.columns, NULL, &other, 1, 0, NULL, &count, NULL);
            const bool empty = EDGES[i] == 0 && EDGES[k] == 0;
            CHECK_EQ(empty ? TFW_END : TFW_E_ARGUMENT, status);
            CHECK_EQ(empty ? TFW_NEED_SPACE : TFW_E_ARGUMENT,
                     tfw_read_ahead(&other, 1, &count, NULL));
            other.size = (size_t)EDGES[i];
            other.begin = 1;
            CHECK_EQ(TFW_E_ARGUMENT, tfw_read_ahead(&other, 1, &count, NULL));
            free(s.buffer);
        }
    }
    CHECK_EQ(TFW_E_ARGUMENT, tfw_read_columns(NULL, NULL, NULL, 1, 0, NULL, &count, NULL));
    const tfw_part none = {0};
    for (unsigned flags = 0; flags <= 3 * TFW_BEGIN; flags += TFW_BEGIN) {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_read_unit(&none, &none, NULL, 1, flags, NULL, &count, NULL));
    }
    table_close(&t);
    close(fd);
    free(data);
}

static void columns_at_the_edges(void) {
    table t;
    tfw_column column;
    int64_t number;
    void *memory[] = {&number, NULL};
    const size_t none[2] = {0};
    const uint8_t lent[2] = {0, 1};
    tfw_column columns[2];
    table_open(&t);
    FOR_EDGES(i) {
        const uint64_t edge = EDGES[i];
        CHECK_EQ(edge == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_bind(t.columns, (size_t)edge, &number, 1, NULL));
        tfw_columns_bind(t.columns, 0, &number, edge, NULL); /* whatever the caller says */
        CHECK_EQ(edge == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_bind(t.columns, 0, NULL, edge, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_bind_all(t.columns, memory, 1, NULL));
        CHECK_EQ(edge <= SIZE_MAX / 8 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_begin(t.columns, memory, none, (size_t)edge, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_finish(t.columns, lent, columns, NULL));
        CHECK_EQ(edge == 1 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_peek(t.columns, (size_t)edge, &column, NULL));
        CHECK_EQ(edge == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_donate(t.lists, 0, NULL, edge, NULL));
        CHECK(edge == 1 || tfw_columns_take(t.columns, (size_t)edge, &column, NULL) < 0);
        tfw_columns_truncate(t.columns, edge);
        CHECK_EQ(0, tfw_columns_records(t.columns));
        tfw_columns_clear(t.columns);
    }
    /* A column that was peeked at has memory, and one without records can be taken. */
    CHECK_EQ(TFW_OK, tfw_columns_take(t.columns, 1, &column, NULL));
    tfw_free(column.values);
    tfw_free(column.offsets);
    table_close(&t);
}

static void features_at_the_edges(void) {
    FOR_EDGES(i) {
        const uint64_t edge = EDGES[i];
        const tfw_feature features[] = {
            {.name = "f", .name_len = 1, .kind = (int32_t)edge, .layout = TFW_DENSE},
            {.name = "f", .name_len = 1, .kind = TFW_INT64, .layout = (int32_t)edge},
            {.name = "f", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = edge},
            {.name = "f", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_REPEATED, .count = edge},
            {.name = NULL, .name_len = edge, .kind = TFW_BYTES, .layout = TFW_VARIABLE},
            {.name = "f", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_VARIABLE,
             .reserved = (int32_t)edge},
        };
        for (size_t k = 0; k < COUNT(features); k++) {
            tfw_schema *schema;
            tfw_columns *columns = NULL;
            int status = tfw_schema_create(&features[k], 1, edge, &schema, NULL);
            CHECK(status == TFW_OK || (status == TFW_E_SCHEMA && schema == NULL));
            CHECK(k != 5 || (status == TFW_OK) == ((int32_t)edge == 0));
            if (status == TFW_OK) {
                status = tfw_columns_create(schema, 0, &columns, NULL);
                CHECK_EQ(TFW_OK, status);
            }
            tfw_columns_free(columns);
            tfw_schema_free(schema);
        }
    }
    tfw_schema *schema;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_schema_create(NULL, SIZE_MAX, SEED, &schema, NULL));
}

static void inputs_at_the_edges(void) {
    uint8_t *values = calloc(1, PAYLOAD), *out = malloc(512);
    const int64_t steps[] = {0, 1};
    const uint8_t presence[] = {3};
    tfw_span spans[64];
    FOR_EDGES(i) {
        const uint64_t edge = EDGES[i];
        size_t done = 9;
        size_t len = 9;
        const tfw_input good = {.name = "n", .name_len = 1, .kind = TFW_INT64, .count = 1,
                                .values = values, .value_count = PAYLOAD / 8,
                                .byte_count = PAYLOAD};
        tfw_input inputs[5] = {good, good, good, good, good};
        inputs[0].kind = (int32_t)edge == TFW_BYTES ? TFW_NONE : (int32_t)edge;
        inputs[1].count = edge;
        inputs[2].steps = steps; /* not a feature list */
        inputs[3].presence = presence;
        inputs[4].name = NULL;
        inputs[4].name_len = edge;
        for (size_t k = 0; k < 5; k++) {
            int status = tfw_encode(&inputs[k], 1, 0, 1, 0, 0, out, 512, spans, &done, &len, NULL);
            CHECK(status == TFW_OK || (status == TFW_E_ARGUMENT && done == 0));
            CHECK(status == TFW_OK || k != 4 || edge != 0);
            CHECK(status != TFW_OK || (k != 2 && k != 3));
        }
        /* More records than there are values, and no more memory than stated. */
        CHECK_EQ(edge < PAYLOAD / 8 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_encode(&good, 1, edge, 1, 0, 0, out, 512, spans, &done, &len, NULL));
        tfw_encode(NULL, 0, edge, 64, 0, 0, out, 512, spans, &done, &len, NULL);
        FOR_EDGES(k) {
            int status = tfw_encode(&good, 1, 0, 2, (size_t)edge, (size_t)EDGES[k], out, 64, spans,
                                    &done, &len, NULL);
            CHECK(status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_ARGUMENT);
            CHECK(len <= 64);
            tfw_encode_sequence(&good, 1, NULL, 0, 0, 2, (size_t)edge, (size_t)EDGES[k], out, 64,
                                spans, &done, &len, NULL);
            CHECK(len <= 64);
        }
    }
    free(values);
    free(out);
}

static void rows_at_the_edges(void) {
    uint8_t *stream = exactly(NO_FEATURES, sizeof NO_FEATURES), *out = malloc(64);
    tfw_rows *rows;
    tfw_span span;
    CHECK_EQ(TFW_OK, tfw_rows_create(SEED, &rows, NULL));
    for (size_t len = 0; len < sizeof NO_FEATURES; len++) { /* cut short, and lengths that lie */
        size_t done, size;
        uint8_t *cut = exactly(NO_FEATURES, len);
        int status = tfw_rows_encode(rows, cut, len, 0, 0, 0, out, 64, &span, 1, &done, &size,
                                     NULL);
        CHECK_EQ(TFW_E_UNSUPPORTED, status);
        free(cut);
    }
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            size_t done = 9, size = 9;
            int status = tfw_rows_encode(rows, stream, sizeof NO_FEATURES, 0, (size_t)EDGES[i],
                                         (size_t)EDGES[k], out, 64, &span, 1, &done, &size, NULL);
            CHECK(status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_ARGUMENT);
            CHECK(size <= 64);
        }
    }
    tfw_rows_free(rows);
    free(stream);
    free(out);
}

static void slots_at_the_edges(void) {
    uint64_t held[2] = {1, 2}, others[1] = {3};
    int64_t held_numbers[2] = {1, 2}, other_numbers[1] = {3};
    FOR_EDGES(i) {
        const int64_t slot = (int64_t)EDGES[i];
        CHECK_EQ(slot == 0 || slot == 1 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_exchange(held, held_numbers, 2, others, other_numbers, 8, &slot, 1, NULL));
        const int64_t first = 0;
        const size_t size = (size_t)EDGES[i];
        CHECK_EQ(size == 4 ? TFW_OK : TFW_E_ARGUMENT,
                 size == 8 || size == 16 ? TFW_E_ARGUMENT
                                         : tfw_exchange(held, held_numbers, 2, others,
                                                        other_numbers, size, &first, 1, NULL));
        tfw_span span = {(uintptr_t)held, 8};
        uint8_t out[8];
        size_t count;
        int status = tfw_gather(&span, 1, out, i % 9, &count);
        CHECK_EQ(i % 9 == 8 ? TFW_OK : TFW_NEED_SPACE, status);
    }
}

static void objects_without_room_are_left(void) {
    struct {
        uintptr_t type, length;
        uint8_t data[4];
    } object = {17, 4, "abc"};
    const tfw_object_layout layout = {17, 0, sizeof(uintptr_t), 2 * sizeof(uintptr_t)};
    const uintptr_t objects[] = {(uintptr_t)&object, (uintptr_t)&object};
    tfw_span spans[2];
    CHECK_EQ(TFW_OK, tfw_object_spans(objects, 2, &layout, spans));
    CHECK_EQ(4, spans[1].length);
    for (size_t capacity = 0; capacity <= 2 * (4 + TFWI_FRAME_SIZE); capacity++) {
        uint8_t *out = malloc(capacity != 0 ? capacity : 1);
        size_t done, len;
        int status = tfw_pack_objects(objects, 2, &layout, out, capacity, &done, &len);
        CHECK_EQ(capacity == 2 * (4 + TFWI_FRAME_SIZE) ? TFW_OK : TFW_NEED_SPACE, status);
        CHECK_EQ(capacity / (4 + TFWI_FRAME_SIZE), done);
        free(out);
    }
    object.type++;
    CHECK_EQ(TFW_E_UNSUPPORTED, tfw_object_spans(objects, 2, &layout, spans));
}

int main(void) {
    RUN(unknown_flags_are_refused);
    RUN(no_records_are_no_error);
    RUN(no_messages_are_no_error);
    RUN(spans_at_the_edges_stay_inside);
    RUN(neighbours_that_leave_the_data_are_refused);
    RUN(offsets_at_the_edges_stay_inside);
    RUN(fetched_offsets_at_the_edges_are_refused);
    RUN(names_of_anything);
    RUN(limits_at_the_edges);
    RUN(readers_at_the_edges);
    RUN(fed_readers_at_the_edges);
    RUN(walks_at_the_edges);
    RUN(stretches_at_the_edges);
    RUN(columns_at_the_edges);
    RUN(features_at_the_edges);
    RUN(inputs_at_the_edges);
    RUN(rows_at_the_edges);
    RUN(slots_at_the_edges);
    RUN(objects_without_room_are_left);
    return check_report("arguments");
}
