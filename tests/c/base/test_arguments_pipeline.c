/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines and chunks at the edges of their arguments. */
#include "arguments.h"
#include "tfwire_arrow.h"
#include "tfwire_pipeline.h"

/* Spans and numbers anywhere. */
static void check_pushes(tfw_pipeline *p, size_t edge) {
    const uint8_t data[64] = {0};
    const uint64_t numbers[] = {EDGES[edge], 1};
    const tfw_span spans[] = {{12, 0}, {EDGES[edge], EDGES[edge]}, {28, 1}, {28, EDGES[edge]}};
    const tfw_span spans_in_order[] = {{12, 0}, {28, 0}};
    const uint64_t falling[] = {1, 1};
    const uint8_t *misfit = data;
    uint64_t len = 1;
    const tfw_batch usual = {.size = sizeof usual, .data = data, .data_len = sizeof data,
                             .spans = spans, .count = 1};
    tfw_batch b[10];
    for (size_t i = 0; i < COUNT(b); i++) {
        b[i] = usual;
    }
    b[0].size = size_edge(edge);
    b[1].count = 2;
    b[2].offset = EDGES[edge];
    b[3].first_record = EDGES[edge];
    b[4].numbers = numbers;
    b[5].spans = spans + 2;
    b[5].count = 2;
    b[5].numbers = numbers;
    b[6].data_len = 15;
    b[7].count = UINT64_MAX;
    b[8].data_len = UINT64_MAX;
    b[9].count = 2;
    b[9].spans = spans_in_order;
    b[9].numbers = falling;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_push(p, NULL, 0, NULL));
    for (size_t i = 0; i < COUNT(b); i++) {
        const int status = tfw_pipeline_push(p, &b[i], EDGES[edge], NULL);
        CHECK(status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_ARGUMENT);
        CHECK(i < 5 || status == TFW_E_ARGUMENT);
    }
    tfw_parcel *parcel;
    tfw_batch held;
    CHECK_EQ((uint32_t)EDGES[edge] <= TFW_NO_DATA_CRC ? TFW_OK : TFW_E_ARGUMENT,
             tfw_parcel_create(EDGES[edge], (uint32_t)EDGES[edge], &parcel, NULL));
    tfw_parcel_free(parcel);
    CHECK_EQ(TFW_OK, tfw_parcel_create(EDGES[edge], 0, &parcel, NULL));
    CHECK_EQ(TFW_OK, tfw_parcel_add(parcel, NULL, 0, &held, NULL));
    CHECK(EDGES[edge] < SIZE_MAX / 4 ||
          tfw_parcel_add(parcel, data, size_edge(edge), &held, NULL) == TFW_E_MEMORY);
    CHECK_EQ(TFW_NEED_INPUT, tfw_parcel_add(parcel, data, 3, &held, NULL));
    CHECK_EQ(0, held.count);
    CHECK_EQ(TFW_OK, tfw_parcel_begin(parcel, parcel, NULL)); /* itself: all is dropped */
    const int nothing = tfw_pipeline_push_parcel(p, parcel, EDGES[edge], NULL);
    CHECK(nothing == TFW_OK || nothing == TFW_E_ARGUMENT);
    tfw_parcel_free(parcel);
    const tfw_batch none = {.size = sizeof none, .numbers = numbers};
    const int empty = tfw_pipeline_push(p, &none, 0, NULL);
    CHECK(empty == TFW_OK || empty == TFW_E_ARGUMENT);
    tfw_pipeline_misfit(p, &misfit, &len);
    CHECK(len <= sizeof data);
}

static void pipelines_at_the_edges(void) {
    table t;
    tfw_pipeline *p;
    tfw_chunk *chunk;
    tfw_place place, next;
    tfw_tally tally;
    tfw_unknown unknown;
    table_open(&t);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_create(NULL, &p, NULL));
    FOR_EDGES(i) {
        const tfw_pipeline_options usual = {.size = sizeof usual, .context = t.schema,
                                            .batch_size = 1, .num_threads = 1};
        tfw_pipeline_options o[9];
        for (size_t k = 0; k < 9; k++) {
            o[k] = usual;
        }
        o[0].size = size_edge(i);
        o[1].start = (tfw_place){EDGES[i], EDGES[i], EDGES[i]};
        o[2].batch_size = o[2].max_record_size = o[2].range_bytes = EDGES[i];
        o[3].num_threads = (uint32_t)EDGES[i] & 1023;
        o[4].mode = (uint32_t)EDGES[i];
        o[5].flags = (uint32_t)EDGES[i];
        o[6].flags = TFW_SEQUENCE;
        o[6].lists = i % 2 != 0 ? t.list_schema : NULL;
        o[6].context = i % 4 < 2 ? t.schema : NULL;
        o[7].lists = t.list_schema;
        o[8].reserved = 1;
        for (size_t k = 0; k < 9; k++) {
            const int status = tfw_pipeline_create(&o[k], &p, NULL);
            CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
            CHECK((status == TFW_OK) == (p != NULL) && (k < 7 || p == NULL));
            if (p != NULL) {
                CHECK_EQ(TFW_END, tfw_pipeline_next(p, 0, &chunk, NULL));
                CHECK_EQ(TFW_END, tfw_pipeline_next(p, INT32_MAX, &chunk, NULL));
                CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &o[1].start, NULL));
                CHECK_EQ(EDGES[i] <= INT32_MAX ? TFW_OK : TFW_E_ARGUMENT,
                         tfw_pipeline_add(p, NULL, EDGES[i] <= INT32_MAX ? 0 : EDGES[i], NULL));
                tfw_pipeline_stopped(p, &place, &next);
                check_pushes(p, i);
                tfw_pipeline_tally(p, &tally);
                CHECK_EQ(TFW_END, tfw_pipeline_unknown(p, (size_t)EDGES[i], &unknown));
                tfw_pipeline_cancel(p);
                CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_next(p, -1, &chunk, NULL));
            }
            tfw_pipeline_free(p);
        }
    }
    tfw_chunk_release(NULL);
    tfw_hold_release(NULL);
    table_close(&t);
}

/* Each is refused for one reason alone. */
static void pipelines_that_are_refused(void) {
    static const int64_t offsets[2] = {0, FRAMED};
    const tfw_indexed_file file = {offsets, 1, NULL, -1, 0}, reserved = {offsets, 1, NULL, -1, 1};
    const tfw_indexed_file many[2] = {{offsets, INT32_MAX, NULL, -1, 0},
                                      {offsets, UINT64_MAX, NULL, -1, 0}};
    const char *path = "none";
    table t;
    tfw_pipeline *p;
    table_open(&t);
    const tfw_pipeline_options parse = {.size = sizeof parse, .context = t.schema, .batch_size = 1,
                                        .num_threads = 1};
    const tfw_pipeline_options spans = {.size = sizeof spans, .num_threads = 1,
                                        .mode = TFW_PIPELINE_SPANS};
    tfw_pipeline_options o[24];
    for (size_t i = 0; i < COUNT(o); i++) {
        o[i] = i < 10 ? parse : spans;
    }
    o[0].batch_size = 0;
    o[1].batch_size = UINT64_MAX;
    o[2].context = NULL;
    o[3].lists = t.list_schema;
    o[4].num_threads = 1025;
    o[5].start.record = UINT64_MAX;
    o[6].start.offset = UINT64_MAX;
    o[7].range_bytes = UINT64_MAX;
    o[8].path_count = UINT64_MAX;
    o[9].flags = TFW_SEQUENCE;
    o[9].context = NULL;
    o[10].context = t.schema;
    o[11].lists = t.list_schema;
    o[12].batch_size = 1;
    o[13].flags = TFW_SINGLE;
    o[14].flags = TFW_PIPELINE_TALLY;
    for (size_t i = 15; i < COUNT(o); i++) {
        o[i].indexed = &file;
        o[i].indexed_count = 1;
    }
    o[15].paths = &path;
    o[15].path_count = 1;
    o[16].indexed_count = UINT64_MAX;
    o[17].mode = TFW_PIPELINE_VERIFY;
    o[18].flags = TFW_PIPELINE_NO_DATA_CRC;
    o[19].indexed = &reserved;
    o[20].indexed = many;
    o[20].indexed_count = 2;
    o[21].flags = TFW_PIPELINE_KEEP_REST;
    o[22].select = o[23].select = tfw_find;
    o[23].indexed = NULL;
    o[23].indexed_count = 0;
    o[23].mode = TFW_PIPELINE_VERIFY;
    for (size_t i = 0; i < COUNT(o); i++) {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_create(&o[i], &p, NULL));
        CHECK(p == NULL);
    }
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&parse, &p, NULL));
    tfw_pipeline_free(p);
    table_close(&t);
}

/* Of a chunk of one record, without columns. */
static void arrays_at_the_edges(const tfw_chunk *chunk) {
    tfw_arrow_layout *layout;
    struct ArrowArray *array;
    CHECK_EQ(TFW_OK,
             tfw_arrow_layout_create(NULL, 0, NULL, NULL, TFW_ARROW_SEQUENCE, &layout, NULL));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const bool inside = EDGES[i] <= 1 && EDGES[k] <= 1 - EDGES[i];
            CHECK_EQ(inside ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_arrow_chunk_create(layout, chunk, EDGES[i], EDGES[k], NULL, &array, NULL));
            CHECK_EQ(inside, array != NULL);
            tfw_arrow_array_free(array);
        }
    }
    tfw_arrow_layout_free(layout);
}

static void chunks_at_the_edges(void) {
    const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : getenv("TEMP");
    char path[512];
    const char *paths[1] = {path};
    uint8_t *data = framed_record();
    tfw_pipeline *p;
    tfw_chunk *chunk;
    snprintf(path, sizeof path, "%s/tfwire-arguments-%lu", folder != NULL ? folder : "/tmp",
             (unsigned long)getpid());
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, FRAMED, file) == FRAMED && fclose(file) == 0);
    const tfw_pipeline_options o = {.size = sizeof o, .paths = paths, .path_count = 1,
                                    .num_threads = 1, .mode = TFW_PIPELINE_SPANS};
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&o, &p, NULL));
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    FOR_EDGES(i) {
        tfw_chunk_info info = {.size = size_edge(i) < sizeof info ? size_edge(i) : sizeof info};
        tfw_column column;
        tfw_hold *hold;
        tfw_chunk_get(chunk, &info);
        CHECK_EQ(info.size < sizeof info ? 0 : PAYLOAD,
                 info.spans != NULL ? info.spans->length : 0);
        CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_column(chunk, false, size_edge(i), &column, NULL));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_column(chunk, true, size_edge(i), &column, NULL));
        CHECK_EQ(TFW_E_ARGUMENT,
                 tfw_chunk_hold(chunk, i % 2 == 0, size_edge(i), &column, &hold, NULL));
        CHECK(hold == NULL);
        const tfw_packed packed = {.feature = size_edge(i)};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_pack(chunk, 0, 1, &packed, 1, data, FRAMED, NULL));
        CHECK_EQ(size_edge(i) < 2 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_chunk_pack(chunk, 0, size_edge(i), NULL, 0, NULL, 0, NULL));
        CHECK_EQ(size_edge(i) < 2 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_chunk_pack(chunk, size_edge(i), 0, NULL, 0, NULL, 0, NULL));
    }
    tfw_place place;
    tfw_chunk_place(chunk, 0, &place);
    CHECK_EQ(0, place.offset);
    arrays_at_the_edges(chunk);
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    unlink(path);
    free(data);
}

static void records_by_number_at_the_edges(void) {
    const int64_t offsets[2] = {0, FRAMED};
    const char *path = "none";
    FOR_EDGES(i) {
        const tfw_indexed_file file = {offsets, EDGES[i], NULL, -1, 0};
        const tfw_pipeline_options o = {.size = sizeof o, .num_threads = 1,
                                        .mode = TFW_PIPELINE_SPANS, .indexed = &file,
                                        .indexed_count = 1};
        tfw_pipeline *p;
        tfw_chunk *chunk;
        const int status = tfw_pipeline_create(&o, &p, NULL);
        CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
        if (p != NULL) {
            const int64_t number = (int64_t)EDGES[i], first = 0;
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, &number, 1, NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, NULL, 0, NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_give(p, NULL, (size_t)EDGES[i], NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, NULL, SIZE_MAX, NULL));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_fetch(p, NULL, 1, NULL));
            FOR_EDGES(k) {
                const int64_t edge = (int64_t)EDGES[k];
                const tfw_draw draws[] = {{EDGES[k], 1, edge, EDGES[k], EDGES[k], edge, edge},
                                          {2, edge, edge, 0, 0, 0, 0}};
                for (size_t m = 0; m < COUNT(draws) && EDGES[i] == 0; m++) {
                    CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_draw(p, &draws[m], NULL));
                }
            }
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_add(p, &path, 1, NULL));
            CHECK_EQ(EDGES[i] != 0 ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_pipeline_fetch(p, &first, 1, NULL));
            CHECK_EQ(EDGES[i] != 0 ? TFW_E_IO : TFW_END, tfw_pipeline_next(p, -1, &chunk, NULL));
        }
        tfw_pipeline_free(p);
        tfw_cache *cache;
        const uint64_t size = EDGES[i] > INT64_MAX ? EDGES[i] : EDGES[i] % (1 << 20);
        CHECK((tfw_cache_create(size, &cache, NULL) == TFW_OK) == (cache != NULL));
        tfw_cache_free(cache);
    }
}

static void encoders_at_the_edges(void) {
    static const int64_t values[2] = {1, 2};
    const tfw_input in = {.name = "a", .name_len = 1, .kind = TFW_INT64, .count = 1,
                          .values = values, .value_count = 2, .byte_count = sizeof values};
    int64_t offsets[3];
    tfw_encoder *e;
    tfw_chunk *chunk;
    const tfw_encoder_options crowd = {.size = sizeof crowd, .num_threads = 1025};
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encoder_create(NULL, &e, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encoder_create(&crowd, &e, NULL));
    FOR_EDGES(i) {
        const tfw_encoder_options usual = {.size = sizeof usual, .num_threads = 1};
        tfw_encoder_options o[4] = {usual, usual, usual, usual};
        o[0].size = size_edge(i);
        o[1].range_bytes = EDGES[i];
        o[2].num_threads = (uint32_t)EDGES[i] & 1023;
        o[3].flags = (uint32_t)EDGES[i];
        for (size_t k = 0; k < 4; k++) {
            const int status = tfw_encoder_create(&o[k], &e, NULL);
            CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
            CHECK((status == TFW_OK) == (e != NULL));
            if (e != NULL) {
                CHECK_EQ(TFW_END, tfw_encoder_next(e, INT32_MAX, &chunk, NULL));
            }
            tfw_encoder_free(e);
        }
        CHECK_EQ(TFW_OK, tfw_encoder_create(&usual, &e, NULL));
        CHECK_EQ(TFW_OK, tfw_encoder_take(e, &chunk, NULL));
        const uint64_t more[4][4] = {{EDGES[i], 0, 1, 1}, {2, EDGES[i], 1, 1},
                                     {2, 0, EDGES[i], 2}, {2, 0, 1, EDGES[i]}};
        for (size_t k = 0; k < 4; k++) {
            const uint64_t *m = more[k];
            const int status = tfw_encode_more(chunk, &in, 1, m[0], m[1], m[2], m[3], EDGES[i],
                                               (uint32_t)(k == 0 ? EDGES[i] : 0), NULL);
            CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
        }
        tfw_chunk_release(chunk);
        int status = tfw_encoder_begin(e, &in, 1, EDGES[i], NULL, NULL);
        CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
        if (status == TFW_OK && (status = tfw_encoder_next(e, -1, &chunk, NULL)) == TFW_OK) {
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(EDGES[i] == 0 ? TFW_END : EDGES[i] <= 2 ? TFW_OK : TFW_E_ARGUMENT, status);
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, &in, 1, 2, offsets, NULL));
        CHECK_EQ(TFW_NEED_SPACE, tfw_encoder_next(e, -1, &chunk, NULL));
        tfw_encoder_room(e, NULL, 0);
        CHECK_EQ(TFW_NEED_SPACE, tfw_encoder_next(e, -1, &chunk, NULL));
        tfw_encoder_free(e);
    }
}

int main(void) {
    RUN(records_by_number_at_the_edges);
    RUN(pipelines_at_the_edges);
    RUN(pipelines_that_are_refused);
    RUN(chunks_at_the_edges);
    RUN(encoders_at_the_edges);
    return check_report("arguments of pipelines");
}
