/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages by several threads: what one call of tfw_encode gives, in blocks, gathered,
 * or dealt out to files; records that cannot be encoded; and the life of an encoder. */
#include "check.h"
#include "tfwire_pipeline.h"

#ifndef _WIN32
#include "fork.h"

#include <sys/resource.h>
#endif

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

static void fill_table(void) {
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

static model model_of(bool framed) {
    model m = {.data = malloc(1 << 20)};
    m.status = tfw_encode(t.inputs, 3, 0, MANY, framed ? TFW_HEADER_SIZE : 0,
                          framed ? TFW_FOOTER_SIZE : 0, m.data, 1 << 20, m.spans, &m.count, &m.len,
                          &m.error);
    if (framed) {
        CHECK_EQ(TFW_OK, tfw_frame(m.data, m.len, m.spans, m.count, NULL));
    }
    return m;
}

static tfw_encoder *encoder_of(size_t num_threads, uint64_t range_bytes, bool framed) {
    const tfw_encoder_options options = {.size = sizeof options, .range_bytes = range_bytes,
                                         .num_threads = (uint32_t)num_threads,
                                         .flags = framed ? TFW_ENCODE_FRAMED : 0};
    tfw_encoder *e;
    CHECK_EQ(TFW_OK, tfw_encoder_create(&options, &e, NULL));
    return e;
}

static void check_same_error(const model *m, int status, const tfw_error *error) {
    CHECK_EQ(m->status == TFW_OK ? TFW_END : m->status, status);
    if (m->status != TFW_OK) {
        CHECK_EQ(m->error.record, error->record);
        CHECK_EQ(m->error.feature, error->feature);
        CHECK(strcmp(m->error.text, error->text) == 0);
    }
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* Takes up to most blocks; they must continue the model's from *at on. */
static int take_blocks(tfw_encoder *e, const model *m, size_t *at, size_t most, bool framed,
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

static void check_blocks(const model *m, bool framed) {
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
            tfw_encoder *e = encoder_of(threads[i], ranges[k], framed);
            for (size_t again = 0; again < 3; again++) {
                size_t at = 0;
                tfw_error error;
                CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
                if (again == 1) { /* dropped on the way */
                    (void)take_blocks(e, m, &at, 3, framed, &error);
                    continue;
                }
                const int status = take_blocks(e, m, &at, SIZE_MAX, framed, &error);
                CHECK_EQ(m->count, at);
                check_same_error(m, status, &error);
                check_same_error(m, take_blocks(e, m, &at, 1, framed, &error), &error);
            }
            tfw_encoder_free(e);
        }
    }
}

static void blocks_are_those_of_one_call(void) {
    for (int framed = 0; framed < 2; framed++) {
        model m = model_of(framed != 0);
        CHECK_EQ(MANY, m.count);
        check_blocks(&m, framed != 0);
        free(m.data);
    }
}

static void records_before_one_at_fault_come(void) {
    static const size_t at[] = {0, 1, 63, 64, 65, 500, MANY - 1};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const int64_t before = t.splits[at[i] + 1];
        t.splits[at[i] + 1] = INT64_MAX;
        model m = model_of(true);
        CHECK_EQ(at[i], m.count);
        check_blocks(&m, true);
        free(m.data);
        t.splits[at[i] + 1] = before;
    }
}

static void nothing_is_the_end(void) {
    tfw_encoder *e = encoder_of(3, 0, true);
    tfw_chunk *chunk;
    CHECK_EQ(TFW_END, tfw_encoder_next(e, 0, &chunk, NULL));
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, NULL, 0, 0, NULL, NULL));
    CHECK_EQ(TFW_END, tfw_encoder_next(e, -1, &chunk, NULL));
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY + 1, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encoder_next(e, -1, &chunk, NULL));
    tfw_encoder_free(e);
    tfw_encoder_free(NULL);
}

/* ---- Gathered ------------------------------------------------------------------------------- */

/* Gathers into memory that is as small as may be, or as large as is likely. */
static int gather(tfw_encoder *e, const model *m, bool is_tight, size_t *out_rooms) {
    int64_t offsets[MANY + 1];
    uint8_t *out = NULL;
    tfw_chunk *chunk;
    tfw_error error;
    int status;
    *out_rooms = 0;
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, offsets, NULL));
    while ((status = tfw_encoder_next(e, -1, &chunk, &error)) == TFW_NEED_SPACE) {
        const size_t size = (size_t)(is_tight ? error.expected : error.offset);
        uint8_t *grown = malloc(size);
        CHECK(error.found <= error.expected && error.expected <= error.offset);
        if (error.found != 0) {
            memcpy(grown, out, (size_t)error.found);
        }
        free(out);
        out = grown;
        tfw_encoder_room(e, out, size);
        ++*out_rooms;
    }
    check_same_error(m, status, &error);
    if (status == TFW_END) {
        CHECK_EQ(m->len, offsets[MANY]);
        CHECK(memcmp(m->data, out, m->len) == 0);
        for (size_t i = 0; i < MANY; i++) {
            CHECK_EQ(m->spans[i].offset, offsets[i]);
        }
    }
    free(out);
    return status;
}

static void gathered_messages_are_those_of_one_call(void) {
    for (int fault = 0; fault < 2; fault++) {
        const int64_t before = t.splits[600];
        t.splits[600] = fault != 0 ? INT64_MAX : before;
        model m = model_of(false);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
                tfw_encoder *e = encoder_of(threads[i], ranges[k], false);
                size_t rooms;
                (void)gather(e, &m, true, &rooms);
                (void)gather(e, &m, false, &rooms);
                CHECK(fault != 0 || rooms < 8);
                tfw_encoder_free(e);
            }
        }
        free(m.data);
        t.splits[600] = before;
    }
}

/* ---- Dealt out ------------------------------------------------------------------------------ */

static void records_are_dealt_out(void) {
    const model m = model_of(true);
    for (size_t files = 1; files < 8; files += 3) {
        tfw_encoder *e = encoder_of(1, 0, true);
        for (size_t file = 0; file < files; file++) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk *chunk;
            size_t done = 0;
            CHECK_EQ(TFW_OK, tfw_encoder_take(e, &chunk, NULL));
            tfw_chunk_get(chunk, &info);
            CHECK_EQ(0, info.records);
            /* Some at a time, and not more than fit. */
            for (size_t first = file; first < MANY; first = file + done * files) {
                const size_t left = (MANY - 1 - first) / files + 1;
                const uint64_t most = done < 100 ? 3000 + info.data_len : SIZE_MAX;
                CHECK_EQ(TFW_OK, tfw_encode_more(chunk, t.inputs, 3, MANY, first, files,
                                                 left < 90 ? left : 90, most, TFW_ENCODE_FRAMED,
                                                 NULL));
                tfw_chunk_get(chunk, &info);
                CHECK(info.records > done && info.records <= done + 90);
                done = (size_t)info.records;
            }
            size_t at = 0;
            for (size_t i = 0; i < done; i++) {
                const tfw_span *span = &m.spans[file + i * files];
                const size_t size = (size_t)span->length + TFW_HEADER_SIZE + TFW_FOOTER_SIZE;
                CHECK(memcmp(info.data + at, m.data + span->offset - TFW_HEADER_SIZE, size) == 0);
                at += size;
            }
            CHECK_EQ(at, info.data_len);
            tfw_tally tally = {0};
            CHECK_EQ(TFW_OK, tfw_tally_block(&tally, info.data, at, 0, NULL));
            CHECK(memcmp(&tally, &info.tally, sizeof tally) == 0);
            CHECK_EQ(TFW_E_ARGUMENT, tfw_encode_more(chunk, t.inputs, 3, MANY, MANY - 1, 1, 2,
                                                     SIZE_MAX, TFW_ENCODE_FRAMED, NULL));
            tfw_chunk_release(chunk);
        }
        tfw_encoder_free(e);
    }
    free(m.data);
}

/* Nothing is looked for where no values are. */
static void columns_without_values_are_dealt_out(void) {
    const tfw_input in[] = {{.name = "a", .name_len = 1, .kind = TFW_BYTES},
                            {.name = "b", .name_len = 1, .kind = TFW_INT64}};
    tfw_encoder *e = encoder_of(1, 0, true);
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk *chunk;
    CHECK_EQ(TFW_OK, tfw_encoder_take(e, &chunk, NULL));
    CHECK_EQ(TFW_OK, tfw_encode_more(chunk, in, 2, 100, 1, 3, 33, SIZE_MAX, 0, NULL));
    tfw_chunk_get(chunk, &info);
    CHECK_EQ(33, info.records);
    for (size_t i = 0; i < 33; i++) {
        static const char message[] = "\n\x12\n\x07\n\x01" "a\x12\x02\n\x00"
                                      "\n\x07\n\x01" "b\x12\x02\x1a\x00";
        CHECK_EQ(sizeof message - 1, info.spans[i].length);
        CHECK(memcmp(message, info.data + info.spans[i].offset, sizeof message - 1) == 0);
    }
    tfw_chunk_release(chunk);
    tfw_encoder_free(e);
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* An encoder may be freed at any time, and what it gave out stays. */
static void freed_at_any_time(void) {
    const model m = model_of(true);
    for (size_t taken = 0; taken < 12; taken++) {
        tfw_encoder *e = encoder_of(3, 300, true);
        size_t at = 0;
        tfw_chunk *kept = NULL;
        tfw_error error;
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
        (void)take_blocks(e, &m, &at, taken, true, &error);
        (void)tfw_encoder_next(e, -1, &kept, &error);
        tfw_encoder_free(e);
        if (kept != NULL) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk_get(kept, &info);
            CHECK(memcmp(m.data + m.spans[at].offset, info.data + TFW_HEADER_SIZE,
                         (size_t)m.spans[at].length) == 0);
            tfw_chunk_release(kept);
        }
    }
    free(m.data);
}

/* Whichever request for memory fails, the records before it came. */
static void without_memory(void) {
    const model m = model_of(true);
    for (long i = 0; i < 150; i++) {
        const tfw_encoder_options options = {.size = sizeof options, .range_bytes = 5000,
                                             .num_threads = 1, .flags = TFW_ENCODE_FRAMED};
        tfw_encoder *e = NULL;
        size_t at = 0;
        tfw_error error;
        tfwi_test_fail_allocation = i;
        int status = tfw_encoder_create(&options, &e, NULL);
        if (status == TFW_OK) {
            CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
            status = take_blocks(e, &m, &at, SIZE_MAX, true, &error);
        }
        CHECK(status == TFW_E_MEMORY || (status == TFW_END && at == MANY));
        tfwi_test_fail_allocation = -1;
        tfw_encoder_free(e);
    }
    free(m.data);
}

#ifndef _WIN32
static void a_forked_child_gets_an_error(void) {
    const model m = model_of(true);
    tfw_encoder *e = encoder_of(3, 300, true);
    tfw_chunk *chunk;
    tfw_error error;
    size_t at = 0;
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
    (void)take_blocks(e, &m, &at, 2, true, &error);
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = tfw_encoder_next(e, -1, &chunk, NULL) == TFW_E_UNSUPPORTED &&
                             tfw_encoder_take(e, &chunk, NULL) == TFW_E_UNSUPPORTED &&
                             tfw_encoder_begin(e, NULL, 0, 0, NULL, NULL) == TFW_E_UNSUPPORTED;
        tfw_encoder_room(e, NULL, 0);
        tfw_encoder_free(e);
        end_child(refused);
    }
    check_child(child);
    CHECK_EQ(TFW_END, take_blocks(e, &m, &at, SIZE_MAX, true, &error));
    tfw_encoder_free(e);
    free(m.data);
}

/* Blocks are used again, by every thread. A round makes 60 KiB; some faults are for ASan, which
 * keeps small memory that was freed. */
static void no_fresh_memory(void) {
    enum { ROUNDS = 30 };
    const model m = model_of(true);
    tfw_encoder *e = encoder_of(2, 20000, true);
    struct rusage before, after;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        size_t at = 0;
        tfw_error error;
        if (round == ROUNDS) {
            CHECK_EQ(0, getrusage(RUSAGE_SELF, &before));
        }
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
        CHECK_EQ(TFW_END, take_blocks(e, &m, &at, SIZE_MAX, true, &error));
    }
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &after));
    CHECK(after.ru_minflt - before.ru_minflt < 6 * ROUNDS);
    tfw_encoder_free(e);
    free(m.data);
}
#endif

int main(void) {
    fill_table();
    RUN(blocks_are_those_of_one_call);
    RUN(records_before_one_at_fault_come);
    RUN(nothing_is_the_end);
    RUN(gathered_messages_are_those_of_one_call);
    RUN(records_are_dealt_out);
    RUN(columns_without_values_are_dealt_out);
    RUN(freed_at_any_time);
    RUN(without_memory);
#ifndef _WIN32
    RUN(a_forked_child_gets_an_error);
    RUN(no_fresh_memory);
#endif
    return check_report("encoders");
}
