/* SPDX-License-Identifier: Apache-2.0 */
/* Encoders, and what they must give: what one call of tfw_encode does. */
#ifndef TFWIRE_TESTS_ENCODER_H
#define TFWIRE_TESTS_ENCODER_H

#include "check.h"
#include "tfwire_pipeline.h"

enum { MANY = 900, LONG_RECORD = 700 };

/* Numbers, strings that grow, and lists of any length. */
typedef struct table {
    int64_t numbers[MANY];
    int64_t offsets[MANY + 1];
    int64_t splits[MANY + 1];
    float values[3 * MANY];
    uint8_t text[40 * MANY];
    tfw_input inputs[3];
} table;

/* What tfw_encode says, and the records of a file that it makes. */
typedef struct model {
    uint8_t *data;
    size_t len;
    tfw_span spans[MANY];
    size_t count;
    int status;
    tfw_error error;
} model;

static table t;
static const size_t threads[] = {1, 2, 3, 8};
static const uint64_t ranges[] = {0, 1, 300, 5000};

static inline void fill_table(void) {
    uint64_t state = SEED;
    for (size_t i = 0; i < MANY; i++) {
        t.numbers[i] = (int64_t)check_random(&state) >> (check_random(&state) % 64);
        const size_t len = i == LONG_RECORD ? 20000 : check_random(&state) % (i / 50 + 1);
        t.offsets[i + 1] = t.offsets[i] + (int64_t)len;
        t.splits[i + 1] = t.splits[i] + (int64_t)(check_random(&state) % 4);
    }
    memset(t.text, 'x', sizeof t.text);
    t.inputs[0] = (tfw_input){.name = "n", .name_len = 1, .kind = TFW_INT64, .count = 1,
                              .values = t.numbers, .value_count = MANY,
                              .byte_count = sizeof t.numbers};
    t.inputs[1] = (tfw_input){.name = "s", .name_len = 1, .kind = TFW_BYTES, .count = 1,
                              .values = t.text, .value_count = MANY, .byte_count = sizeof t.text,
                              .offsets = t.offsets};
    t.inputs[2] = (tfw_input){.name = "f", .name_len = 1, .kind = TFW_FLOAT, .values = t.values,
                              .value_count = 3 * MANY, .byte_count = sizeof t.values,
                              .splits = t.splits, .cell_count = MANY};
}

static inline model model_of(bool framed) {
    model m = {.data = malloc(1 << 20)};
    m.status = tfw_encode(t.inputs, 3, 0, MANY, framed ? TFW_HEADER_SIZE : 0,
                          framed ? TFW_FOOTER_SIZE : 0, m.data, 1 << 20, m.spans, &m.count, &m.len,
                          &m.error);
    if (framed) {
        CHECK_EQ(TFW_OK, tfw_frame(m.data, m.len, m.spans, m.count, NULL));
    }
    return m;
}

static inline tfw_encoder *encoder_of(size_t num_threads, uint64_t range_bytes, bool framed) {
    const tfw_encoder_options options = {.size = sizeof options, .range_bytes = range_bytes,
                                         .num_threads = (uint32_t)num_threads,
                                         .flags = framed ? TFW_ENCODE_FRAMED : 0};
    tfw_encoder *e;
    CHECK_EQ(TFW_OK, tfw_encoder_create(&options, &e, NULL));
    return e;
}

static inline void check_same_error(const model *m, int status, const tfw_error *error) {
    CHECK_EQ(m->status == TFW_OK ? TFW_END : m->status, status);
    if (m->status != TFW_OK) {
        CHECK_EQ(m->error.record, error->record);
        CHECK_EQ(m->error.feature, error->feature);
        CHECK(strcmp(m->error.text, error->text) == 0);
    }
}

/* Takes up to most blocks; they must continue the model's from *at on. */
static inline int take_blocks(tfw_encoder *e, const model *m, size_t *at, size_t most, bool framed,
                              tfw_error *error) {
    tfw_chunk *chunk;
    int status = TFW_OK;
    for (size_t i = 0; i < most && status == TFW_OK; i++) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_tally tally = {0};
        status = tfw_encoder_next(e, -1, &chunk, error);
        if (status != TFW_OK) {
            CHECK(chunk == NULL);
            break;
        }
        tfw_chunk_get(chunk, &info);
        CHECK(info.records != 0 && info.records <= m->count - *at);
        CHECK_EQ(*at, info.begin.record);
        CHECK_EQ(*at + info.records, info.end.record);
        const tfw_span *spans = m->spans + *at;
        const size_t begin = (size_t)(spans[0].offset - info.spans[0].offset);
        for (size_t k = 0; k < info.records; k++) {
            CHECK_EQ(spans[k].offset - begin, info.spans[k].offset);
            CHECK_EQ(spans[k].length, info.spans[k].length);
        }
        CHECK(memcmp(m->data + begin, info.data, (size_t)info.data_len) == 0);
        if (framed) {
            CHECK_EQ(TFW_OK, tfw_tally_block(&tally, info.data, (size_t)info.data_len, 0, NULL));
        }
        CHECK(memcmp(&tally, &info.tally, sizeof tally) == 0);
        *at += (size_t)info.records;
        tfw_chunk_release(chunk);
    }
    return status;
}

#endif
