/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages by several threads: what one call of tfw_encode gives, in blocks, gathered,
 * or dealt out to files; and records that cannot be encoded. */
#include "encoder.h"

/* ---- Blocks --------------------------------------------------------------------------------- */

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

int main(void) {
    fill_table();
    RUN(blocks_are_those_of_one_call);
    RUN(records_before_one_at_fault_come);
    RUN(nothing_is_the_end);
    RUN(gathered_messages_are_those_of_one_call);
    RUN(records_are_dealt_out);
    RUN(columns_without_values_are_dealt_out);
    return check_report("encoders");
}
