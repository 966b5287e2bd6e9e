/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an encoder: begun again, waited for and freed at any time, without memory, and in a
 * forked child. */
#include "encoder.h"

#ifndef _WIN32
#include "fork.h"

#include <sys/resource.h>
#endif

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
    for (long i = 0; i < 300; i++) {
        const tfw_encoder_options options = {.size = sizeof options, .range_bytes = 5000,
                                             .num_threads = i % 2 == 0 ? 1 : 3,
                                             .flags = TFW_ENCODE_FRAMED};
        tfw_encoder *e = NULL;
        size_t at = 0;
        tfw_error error;
        tfwi_test_fail_allocation = i / 2;
        int status = tfw_encoder_create(&options, &e, NULL);
        if (status == TFW_OK) {
            CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
            status = take_blocks(e, &m, &at, SIZE_MAX, true, &error);
        }
        CHECK(status == TFW_E_MEMORY || (status == TFW_END && at == MANY));
        tfw_encoder_free(e); /* its threads count requests, too */
        tfwi_test_fail_allocation = -1;
    }
    free(m.data);
}

static void without_memory_nothing_is_taken(void) {
    long i = 0;
    for (int status = TFW_E_MEMORY; status == TFW_E_MEMORY; i++) {
        tfw_encoder *e = encoder_of(1, 0, true);
        tfw_chunk *chunk;
        tfwi_test_fail_allocation = i;
        status = tfw_encoder_take(e, &chunk, NULL);
        tfwi_test_fail_allocation = -1;
        CHECK(status == TFW_E_MEMORY || status == TFW_OK);
        CHECK_EQ(status == TFW_OK, chunk != NULL);
        tfw_chunk_release(chunk);
        tfw_encoder_free(e);
    }
    CHECK(i > 2);
}

/* Whoever asks again gets it all, whatever the threads do meanwhile. */
static void a_wait_ends_with_its_time(void) {
    const model m = model_of(false);
    size_t waits = 0;
    for (size_t i = 0; i < 60; i++) {
        tfw_encoder *e = encoder_of(threads[i % 4], ranges[1 + i / 4 % 3], false);
        int64_t offsets[MANY + 1];
        uint8_t *out = malloc(m.len);
        tfw_chunk *chunk;
        int status;
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, offsets, NULL));
        do {
            status = tfw_encoder_next(e, (int32_t)(i / 8 % 2), &chunk, NULL);
            if (status == TFW_NEED_SPACE) {
                tfw_encoder_room(e, out, m.len);
            }
            waits += status == TFW_NEED_INPUT;
        } while (status == TFW_NEED_SPACE || status == TFW_NEED_INPUT);
        CHECK_EQ(TFW_END, status);
        CHECK_EQ(m.len, offsets[MANY]);
        CHECK(memcmp(m.data, out, m.len) == 0);
        free(out);
        tfw_encoder_free(e);
    }
    CHECK(waits != 0);
    free(m.data);
}

/* Threads that encode when something else is begun, or when they find the error, come to an end. */
static void begun_again_at_any_time(void) {
    const model m = model_of(true);
    int64_t splits[MANY + 1];
    tfw_input wrong[3] = {t.inputs[0], t.inputs[1], t.inputs[2]};
    memcpy(splits, t.splits, sizeof splits);
    splits[MANY / 2] = INT64_MAX;
    wrong[2].splits = splits;
    for (size_t i = 0; i < 200; i++) {
        tfw_encoder *e = encoder_of(8, 1 + 100 * (i % 20), true);
        size_t at = 0;
        tfw_error error;
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
        (void)take_blocks(e, &m, &at, i % 10, true, &error);
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
        at = 0;
        (void)take_blocks(e, &m, &at, 2, true, &error);
        CHECK_EQ(TFW_OK, tfw_encoder_begin(e, wrong, 3, MANY, NULL, NULL));
        at = 0;
        CHECK_EQ(TFW_E_ARGUMENT, take_blocks(e, &m, &at, SIZE_MAX, true, NULL));
        CHECK_EQ(MANY / 2 - 1, at);
        tfw_encoder_free(e);
    }
    free(m.data);
}

/* So many records that nobody waits for the last; more than that are refused. */
static void more_than_anybody_takes(void) {
    tfw_encoder *e = encoder_of(2, 0, true);
    uint64_t records = 0;
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, NULL, 0, SIZE_MAX / 16, NULL, NULL));
    for (size_t i = 0; i < 4; i++) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk *chunk;
        CHECK_EQ(TFW_OK, tfw_encoder_next(e, -1, &chunk, NULL));
        tfw_chunk_get(chunk, &info);
        CHECK_EQ(records, info.begin.record);
        records += info.records;
        CHECK_EQ(records, info.end.record);
        tfw_chunk_release(chunk);
    }
    CHECK(records > 1000);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_encoder_begin(e, NULL, 0, SIZE_MAX / 8, NULL, NULL));
    tfw_encoder_free(e);
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

/* As many blocks at a time as there may be: all of them have their memory afterwards. */
static void take_together(tfw_encoder *e) {
    tfw_chunk *chunks[MANY];
    size_t count = 0;
    CHECK_EQ(TFW_OK, tfw_encoder_begin(e, t.inputs, 3, MANY, NULL, NULL));
    while (tfw_encoder_next(e, -1, &chunks[count], NULL) == TFW_OK) {
        count++;
    }
    CHECK(count > 2);
    while (count != 0) {
        tfw_chunk_release(chunks[--count]);
    }
}

/* Blocks are used again, by every thread. A round makes 60 KiB; some faults are for ASan, which
 * keeps small memory that was freed. */
static void no_fresh_memory(void) {
    enum { ROUNDS = 30 };
    const model m = model_of(true);
    tfw_encoder *e = encoder_of(2, 20000, true);
    struct rusage before, after;
    for (int round = 0; round < ROUNDS; round++) {
        take_together(e);
    }
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &before));
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = 0;
        tfw_error error;
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
#ifndef _WIN32
    RUN(no_fresh_memory); /* first: what ASan keeps of other tests is not counted then */
#endif
    RUN(freed_at_any_time);
    RUN(without_memory);
    RUN(without_memory_nothing_is_taken);
    RUN(a_wait_ends_with_its_time);
    RUN(begun_again_at_any_time);
    RUN(more_than_anybody_takes);
#ifndef _WIN32
    RUN(a_forked_child_gets_an_error);
#endif
    return check_report("encoders and their life");
}
