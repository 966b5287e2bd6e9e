/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that are held: they stay as they are, alone, and come back from anywhere. */
#include "pipeline.h"
#include "race.h"
#include "pipeline/pool.h"
#ifndef _WIN32
#include "fork.h"
#endif

enum { MANY = 300, MOST_HOLDS = 2 * MANY };

static const wanted parse_3 = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};

/* A column that is held, and what it held then. */
typedef struct held {
    tfw_hold *hold;
    tfw_column column;
    bytes values[PARTS];
    uint64_t records;
} held;

static held hold_column(tfw_chunk *chunk, bool is_list, size_t feature) {
    held h = {0};
    tfw_column lent;
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    CHECK_EQ(TFW_OK, tfw_chunk_column(chunk, is_list, feature, &lent, NULL));
    CHECK_EQ(TFW_OK, tfw_chunk_hold(chunk, is_list, feature, &h.column, &h.hold, NULL));
    CHECK(memcmp(&lent, &h.column, sizeof lent) == 0);
    h.records = info.records;
    append_column(h.values, &h.column, h.records, 0, 0);
    return h;
}

/* Whether it still holds that. */
static bool give_back(held *h) {
    bytes now[PARTS] = {{0}};
    bool same = true;
    append_column(now, &h->column, h->records, 0, 0);
    for (size_t i = 0; i < PARTS; i++) {
        same = same && same_data(&h->values[i], &now[i]);
        free(h->values[i].data);
        free(now[i].data);
    }
    tfw_hold_release(h->hold);
    return same;
}

static fileset one_set(bool sequence) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(1, MANY, sequence));
    fileset_add(&set, file_of_examples(2, MANY, sequence));
    return set;
}

/* Of each chunk some columns, each given back after some chunks more, or after the pipeline. */
static void check_held(uint32_t threads, uint64_t range_bytes, size_t delay, uint32_t flags) {
    fileset set = one_set(flags == TFW_SEQUENCE);
    table t = table_new(flags == TFW_SEQUENCE);
    static held holds[2 * MOST_HOLDS * COLUMNS];
    size_t count = 0, given = 0, chunks = 0;
    wanted w = parse_3;
    tfw_chunk *chunk;
    w.flags = flags;
    tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, range_bytes);
    if (delay % 2 == 1) { /* the pipeline has its shares of them */
        tfw_schema_free(t.schema);
        tfw_schema_free(t.list_schema);
        t.schema = t.list_schema = NULL;
    }
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        for (size_t i = 0; i < (flags != 0 ? COLUMNS : COLUMNS - 1); i++) {
            if ((chunks >> i) % 2 == 0) {
                holds[count++] = hold_column(chunk, i == 3, i % 3);
            }
            if (chunks % 11 == 5) { /* twice */
                holds[count++] = hold_column(chunk, i == 3, i % 3);
            }
        }
        tfw_chunk_release(chunk);
        for (chunks++; given + delay < count; given++) {
            CHECK(give_back(&holds[given]));
        }
    }
    tfw_pipeline_free(p);
    table_free(&t); /* with the schemas */
    while (given < count) {
        CHECK(give_back(&holds[given++]));
    }
    fileset_free(&set);
}

static void held_columns_stay(void) {
    const size_t delays[] = {0, 1, 3, 20, MOST_HOLDS};
    for (uint32_t threads = 1; threads < 4; threads++) {
        for (size_t i = 0; i < COUNT(delays); i++) {
            check_held(threads, 900, delays[i], 0);
            check_held(threads, 20000, delays[i], TFW_SEQUENCE);
        }
    }
}

static void refused(void) {
    fileset set = one_set(false);
    table t = table_new(false);
    tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 1, 900);
    tfw_chunk *chunk;
    tfw_column c;
    tfw_hold *hold;
    CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_hold(chunk, false, 3, &c, &hold, NULL));
    CHECK(hold == NULL);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_chunk_hold(chunk, true, 0, &c, &hold, NULL));
    tfwi_test_fail_allocation = 0;
    CHECK_EQ(TFW_E_MEMORY, tfw_chunk_hold(chunk, false, 0, &c, &hold, NULL));
    tfwi_test_fail_allocation = -1;
    CHECK(hold == NULL);
    tfw_hold_release(NULL);
    tfw_chunk_release(chunk);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

/* Of all that is held at a time, a pool keeps only so much for the next blocks. */
static void a_pool_keeps_few_spares(void) {
    fileset set = one_set(false);
    table t = table_new(false);
    tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 1, 100);
    static tfw_hold *holds[MOST_HOLDS];
    tfw_column c;
    tfw_chunk *chunk;
    size_t count = 0;
    const tfwi_pool *pool = NULL;
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        CHECK_EQ(TFW_OK, tfw_chunk_hold(chunk, false, 1, &c, &holds[count++], NULL));
        pool = chunk->pieces.of[0].block->pool;
        tfw_chunk_release(chunk);
    }
    CHECK(pool != NULL && count > 4 * pool->most_spares && pool->spares[0][1].count == 0);
    for (size_t i = 0; i < count; i++) {
        tfw_hold_release(holds[i]);
    }
    CHECK_EQ(pool->most_spares, pool->spares[0][1].count);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

/* ---- From anywhere -------------------------------------------------------------------------- */

enum { SLOTS = 16 };

/* Holds that pass from the thread that takes chunks to one that gives back. */
typedef struct passage {
    pthread_mutex_t lock;
    held slots[SLOTS];
    size_t count;
    bool ended;
} passage;

static void *give_all_back(void *argument) {
    passage *a = argument;
    bool ended = false;
    while (!ended) {
        held taken[SLOTS];
        pthread_mutex_lock(&a->lock);
        const size_t count = a->count;
        memcpy(taken, a->slots, count * sizeof *taken);
        a->count = 0;
        ended = a->ended;
        pthread_mutex_unlock(&a->lock);
        for (size_t i = 0; i < count; i++) {
            EXPECT(give_back(&taken[i]));
        }
    }
    return NULL;
}

static void pass(passage *a, held h) {
    for (bool passed = false; !passed;) {
        pthread_mutex_lock(&a->lock);
        passed = a->count < SLOTS;
        if (passed) {
            a->slots[a->count++] = h;
        }
        pthread_mutex_unlock(&a->lock);
    }
}

/* While the pipeline uses its blocks again, and is freed. */
static void held_columns_come_back_from_any_thread(void) {
    fileset set = one_set(false);
    for (uint32_t threads = 1; threads < 4; threads++) {
        table t = table_new(false);
        passage a = {.lock = PTHREAD_MUTEX_INITIALIZER};
        pthread_t thread;
        tfw_chunk *chunk;
        tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, threads, 900);
        CHECK_EQ(0, pthread_create(&thread, NULL, give_all_back, &a));
        while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
            pass(&a, hold_column(chunk, false, 0));
            pass(&a, hold_column(chunk, false, 1));
            tfw_chunk_release(chunk);
        }
        tfw_pipeline_free(p);
        pthread_mutex_lock(&a.lock);
        a.ended = true;
        pthread_mutex_unlock(&a.lock);
        CHECK_EQ(0, pthread_join(thread, NULL));
        CHECK_EQ(0, atomic_exchange(&wrong, 0));
        table_free(&t);
    }
    fileset_free(&set);
}

#ifndef _WIN32
static bool use_in_child(tfw_chunk *chunk, held *h) {
    tfw_column c;
    tfw_hold *hold;
    const bool refused = tfw_chunk_hold(chunk, false, 1, &c, &hold, NULL) == TFW_E_UNSUPPORTED;
    bytes now[PARTS] = {{0}};
    append_column(now, &h->column, h->records, 0, 0); /* what was held is there */
    tfw_hold_release(h->hold);
    tfw_chunk_release(chunk);
    return refused && hold == NULL && same_data(&h->values[0], &now[0]);
}

static void a_forked_child_keeps_them(void) {
    fileset set = one_set(false);
    table t = table_new(false);
    for (size_t i = 1; i < 10; i++) {
        tfw_pipeline *p = pipeline_of(&set, &parse_3, &t, 3, 900);
        tfw_chunk *chunk;
        for (size_t k = 0; k < i; k++) {
            CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
            tfw_chunk_release(chunk);
        }
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        held h = hold_column(chunk, false, 0);
        const pid_t child = fork();
        if (child == 0) {
            end_child(use_in_child(chunk, &h));
        }
        check_child(child);
        tfw_chunk_release(chunk);
        CHECK(give_back(&h));
        tfw_pipeline_free(p);
    }
    table_free(&t);
    fileset_free(&set);
}
#endif

int main(void) {
    RUN(held_columns_stay);
    RUN(refused);
    RUN(a_pool_keeps_few_spares);
    RUN(held_columns_come_back_from_any_thread);
#ifndef _WIN32
    RUN(a_forked_child_keeps_them);
#endif
    return check_report("columns of pipelines that are held");
}
