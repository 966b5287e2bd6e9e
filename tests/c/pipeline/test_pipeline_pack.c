/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a chunk's columns in a block of the caller's: at any place, and never beyond it. */
#include "pipeline.h"

enum { MANY = 300, ROW = sizeof(int64_t) };

static const wanted parse_3 = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};

static uint64_t records_of(const tfw_chunk *chunk) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    return info.records;
}

/* Packs column 0 twice, at odd places, into a block of just the size, and compares. */
static void check_rows(const tfw_chunk *chunk, uint64_t first, uint64_t count) {
    tfw_column c;
    CHECK_EQ(TFW_OK, tfw_chunk_column(chunk, false, 0, &c, NULL));
    const size_t length = (size_t)count * ROW;
    for (size_t at = 0; at < 2 * ROW; at++) {
        const tfw_packed packed[] = {{.feature = 0, .at = at}, {.feature = 0, .at = at + length}};
        const size_t size = at + 2 * length;
        uint8_t *block = malloc(size + 1);
        memset(block, 0xa5, size + 1);
        CHECK_EQ(TFW_OK, tfw_chunk_pack(chunk, first, count, packed, 2, block, size, NULL));
        const uint8_t *rows = (const uint8_t *)c.values + first * ROW;
        CHECK(memcmp(block + at, rows, length) == 0);
        CHECK(memcmp(block + at + length, rows, length) == 0);
        for (size_t i = 0; i < at; i++) {
            CHECK_EQ(0xa5, block[i]);
        }
        CHECK_EQ(0xa5, block[size]);
        if (size != 0) {
            uint8_t *exact = malloc(size - 1);
            CHECK_EQ(count == 0 ? (at <= size - 1 ? TFW_OK : TFW_E_ARGUMENT) : TFW_E_ARGUMENT,
                     tfw_chunk_pack(chunk, first, count, packed, 2, exact, size - 1, NULL));
            free(exact);
        }
        free(block);
    }
}

static void rows_are_packed(void) {
    for (uint32_t threads = 1; threads < 4; threads++) {
        fileset set = {0};
        fileset_add(&set, file_of_examples(1, MANY, false));
        fileset_add(&set, file_of_examples(2, MANY, false));
        table t = table_new(false);
        tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, threads, 900);
        tfw_chunk *chunk;
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            const uint64_t records = records_of(chunk);
            for (uint64_t first = 0; first <= records; first += 1 + records / 4) {
                check_rows(chunk, first, 0);
                check_rows(chunk, first, (records - first) / 2);
                check_rows(chunk, first, records - first);
            }
            tfw_chunk_release(chunk);
        }
        tfw_pipeline_free(p);
        table_free(&t);
        fileset_free(&set);
    }
}

static void refused(void) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(1, MANY, false));
    table t = table_new(false);
    tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 1, 900);
    tfw_chunk *chunk;
    uint8_t block[ROW];
    tfw_error error;
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    const uint64_t records = records_of(chunk);
    const uint64_t odd[][2] = {
        {records + 1, 0}, {0, records + 1}, {records, 1},
        {1, UINT64_MAX},  {UINT64_MAX, 1},  {UINT64_MAX, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(odd); i++) {
        CHECK_EQ(TFW_E_ARGUMENT,
                 tfw_chunk_pack(chunk, odd[i][0], odd[i][1], NULL, 0, block, ROW, &error));
        CHECK(strstr(error.text, "rows") != NULL);
    }
    for (size_t feature = 1; feature < 4; feature++) { /* strings, values of any number, none */
        const tfw_packed packed = {.feature = feature};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_pack(chunk, 0, 1, &packed, 1, block, ROW, &error));
        CHECK(strstr(error.text, feature < 3 ? "dense" : "no such column") != NULL);
    }
    const uint64_t places[] = {1, ROW, ROW + 1, UINT64_MAX - ROW + 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT(places); i++) {
        const tfw_packed packed = {.feature = 0, .at = places[i]};
        CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_pack(chunk, 0, 1, &packed, 1, block, ROW, &error));
        CHECK(strstr(error.text, "block") != NULL);
    }
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

int main(void) {
    RUN(rows_are_packed);
    RUN(refused);
    return check_report("rows of chunks in blocks");
}
