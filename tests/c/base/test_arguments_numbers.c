/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers at the edges as arguments: an error or a result; see test_arguments.c. */
#include "arguments.h"
#include "tfwire_python.h"

static void names_of_anything(void) {
    bool supported;
    CHECK(strcmp(tfw_version(), TFW_VERSION_STRING) == 0);
    FOR_EDGES(i) {
        CHECK(tfw_status_name((int)EDGES[i]) != NULL);
        CHECK_EQ(i != 0 && EDGES[i] > 8,
                 tfw_crc32c_kernel_name(size_edge(i), &supported) == NULL && EDGES[i] > 8);
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
    int fd = unnamed_file();
    uint8_t *data = framed_record();
    CHECK_EQ(FRAMED, write(fd, data, FRAMED));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const tfw_reader_options options = {
                .size = sizeof options, .fd = fd, .buffer_size = EDGES[i] % (1 << 20),
                .offset = EDGES[k], .max_record_size = EDGES[i], .on_corrupt = (uint32_t)i % 5};
            tfw_reader *reader;
            tfw_batch batch = {.size = sizeof batch};
            tfw_region region;
            tfw_flip flip;
            uint64_t bytes;
            if (tfw_reader_create(&options, &reader, NULL) != TFW_OK) {
                CHECK(reader == NULL && (EDGES[k] > INT64_MAX || i % 5 == 4));
                continue;
            }
            for (int round = 0; round < 3; round++) {
                int status = tfw_reader_next(reader, size_edge(i), &batch, NULL);
                CHECK(status <= TFW_END);
            }
            CHECK(tfw_reader_skipped(reader, size_edge(i), &region, 1) <= 1);
            CHECK(tfw_reader_skipped(reader, size_edge(i), NULL, 0) <= 1);
            CHECK_EQ(0, tfw_reader_flips(reader, size_edge(i), &flip, 1));
            CHECK(tfw_reader_skipped_total(reader, &bytes) <= 1);
            CHECK_EQ(0, tfw_reader_flips_total(reader, &bytes));
            CHECK_EQ(EDGES[i] > INT64_MAX ? TFW_E_ARGUMENT : TFW_OK,
                     tfw_reader_seek(reader, EDGES[i], EDGES[k], NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, size_edge(k), NULL));
            tfw_reader_next(reader, 0, &batch, NULL);
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
        tfw_batch batch = {.size = sizeof batch};
        uint8_t *room;
        size_t len;
        CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
        CHECK_EQ(EDGES[i] == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_reader_commit(reader, size_edge(i), NULL)); /* nothing was reserved */
        if (EDGES[i] != 0) {
            CHECK_EQ(TFW_NEED_INPUT, tfw_reader_next(reader, size_edge(i), &batch, NULL));
            CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, NULL));
            memset(room, 0, len);
            CHECK_EQ(EDGES[i] <= len ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_reader_commit(reader, size_edge(i), NULL));
        }
        int moved = EDGES[i] > INT64_MAX ? TFW_E_ARGUMENT : TFW_OK;
        CHECK_EQ(moved, tfw_reader_seek(reader, EDGES[i], EDGES[i], NULL));
        if (moved == TFW_OK) { /* the input begins again, also after its end */
            CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_commit(reader, 1, NULL));
            CHECK_EQ(TFW_OK, tfw_reader_reserve(reader, &room, &len, NULL));
            memset(room, 0, len);
            CHECK_EQ(TFW_OK, tfw_reader_commit(reader, len, NULL));
            CHECK_EQ(TFW_E_LENGTH_CRC, tfw_reader_next(reader, 0, &batch, NULL));
        }
        tfw_reader_free(reader);
    }
}

static void walks_at_the_edges(void) {
    int fd = unnamed_file();
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
        const size_t edge = size_edge(i);
        CHECK_EQ(edge == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_bind(t.columns, edge, &number, 1, NULL));
        tfw_columns_bind(t.columns, 0, &number, edge, NULL); /* whatever the caller says */
        CHECK_EQ(edge == 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_bind(t.columns, 0, NULL, edge, NULL));
        CHECK_EQ(edge <= SIZE_MAX / 8 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_begin(t.columns, memory, none, edge, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_finish(t.columns, lent, columns, NULL));
        CHECK_EQ(edge == 1 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_columns_peek(t.columns, edge, &column, NULL));
        CHECK(edge == 1 || tfw_columns_take(t.columns, edge, &column, NULL) < 0);
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
                 tfw_encode(&good, 1, size_edge(i), 1, 0, 0, out, 512, spans, &done, &len, NULL));
        tfw_encode(NULL, 0, size_edge(i), 64, 0, 0, out, 512, spans, &done, &len, NULL);
        FOR_EDGES(k) {
            int status = tfw_encode(&good, 1, 0, 2, size_edge(i), size_edge(k), out, 64, spans,
                                    &done, &len, NULL);
            CHECK(status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_ARGUMENT);
            CHECK(len <= 64);
            tfw_encode_sequence(&good, 1, NULL, 0, 0, 2, size_edge(i), size_edge(k), out, 64,
                                spans, &done, &len, NULL);
            CHECK(len <= 64);
        }
    }
    free(values);
    free(out);
}

static void slots_at_the_edges(void) {
    uint64_t held[2] = {1, 2}, others[1] = {3};
    int64_t held_numbers[2] = {1, 2}, other_numbers[1] = {3};
    FOR_EDGES(i) {
        const int64_t slot = (int64_t)EDGES[i];
        CHECK_EQ(TFW_OK, tfw_exchange(EDGES[i], EDGES[i], held, held_numbers, 2, others,
                                      other_numbers, 8, 1, NULL));
        const size_t size = size_edge(i);
        CHECK_EQ(size == 4 ? TFW_OK : TFW_E_ARGUMENT,
                 size == 8 || size == 16 ? TFW_E_ARGUMENT
                                         : tfw_exchange(1, 0, held, held_numbers, 2, others,
                                                        other_numbers, size, 1, NULL));
        int64_t number = slot;
        CHECK_EQ(slot == 0 ? TFW_OK : TFW_E_ARGUMENT, tfw_permute(EDGES[i], 1, &number, 1, NULL));
        CHECK_EQ(slot, number);
        number = 0;
        CHECK_EQ(EDGES[i] != 0 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_permute(1, EDGES[i], &number, 1, NULL));
        CHECK(number == 0 || (uint64_t)number < EDGES[i]);
        tfw_span span = {(uintptr_t)held, 8};
        uint8_t out[8];
        size_t count;
        int status = tfw_gather(&span, 1, out, i % 9, &count);
        CHECK_EQ(i % 9 == 8 ? TFW_OK : TFW_NEED_SPACE, status);
    }
}

static void packing_at_the_edges(void) {
    FOR_EDGES(i) {
        const int64_t edge = (int64_t)EDGES[i], width = 2, zero = 0, one = 1;
        int64_t filled = 0, held = 0, places[3];
        size_t end;
        const tfw_rows rows = {&width, &filled, &held, 1, 1};
        const bool fits = edge >= 0 && edge <= width;
        CHECK_EQ(fits ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_first_fit(&rows, &edge, 1, 0, places, &end, NULL));
        CHECK_EQ(fits ? edge : 0, filled);
        const uint8_t values[2] = {1, 2};
        uint8_t out[2];
        int32_t ids[2], positions[2];
        const tfw_segments segments[4] = {{&edge, &zero, &zero, &one, &zero, 1},
                                          {&zero, &edge, &zero, &one, &zero, 1},
                                          {&zero, &zero, &edge, &one, &zero, 1},
                                          {&zero, &zero, &zero, &one, &edge, 1}};
        for (size_t k = 0; k < 4; k++) {
            const bool within = edge >= 0 && edge <= (k == 2 ? 0 : width);
            CHECK_EQ(within ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_copy_segments(segments + k, values, 2, 1, 1, 2, out, ids, positions,
                                       NULL));
        }
    }
}

int main(void) {
    RUN(names_of_anything);
    RUN(limits_at_the_edges);
    RUN(readers_at_the_edges);
    RUN(fed_readers_at_the_edges);
    RUN(walks_at_the_edges);
    RUN(columns_at_the_edges);
    RUN(features_at_the_edges);
    RUN(inputs_at_the_edges);
    RUN(slots_at_the_edges);
    RUN(packing_at_the_edges);
    return check_report("arguments_numbers");
}
