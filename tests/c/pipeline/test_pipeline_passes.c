/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of one schema, one after another or at a time: the next has the memory of the last. */
#include "pipeline.h"
#include "pipeline/pool.h"
#include "race.h"

#ifndef _WIN32
#include "fork.h"

#include <sys/resource.h>
#endif

enum { MANY = 400, PASSES = 4, MOST_IDLE = 192 << 20 };

static const wanted parse_7 = {.batch_size = 7};

static fileset one_file(size_t size, size_t count) {
    fileset set = {0};
    file f = {0};
    uint8_t *text = calloc(size, 1);
    for (size_t i = 0; i < count; i++) {
        blob message = EXAMPLE(entry("n", INTS((int64_t)i)),
                               entry("s", field(1, field(1, raw(text, size)))));
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    free(text);
    fileset_add(&set, f);
    return set;
}

static uint64_t drain(tfw_pipeline *p) {
    uint64_t records = 0;
    tfw_chunk *chunk;
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        records += info.records;
        tfw_chunk_release(chunk);
    }
    return records;
}

static void pass_by(const fileset *set, const table *t, uint32_t threads, uint32_t flags,
                    uint64_t range_bytes) {
    const wanted w = {.batch_size = 7, .flags = flags};
    tfw_pipeline *p = pipeline_of(set, &w, t, threads, range_bytes);
    CHECK_EQ(set->files[0].count, drain(p));
    tfw_pipeline_free(p);
}

static void pass(const fileset *set, const table *t, uint32_t threads, uint32_t flags) {
    pass_by(set, t, threads, flags, 1 << 14);
}

/* The pool that a schema keeps, which stays there. */
static tfwi_pool *pool_of(const table *t) {
    tfwi_pool *pool = (tfwi_pool *)tfwi_schema_take(t->schema, 0);
    if (pool != NULL) {
        tfwi_schema_keep(t->schema, 0, &pool->kept);
    }
    return pool;
}

/* ---- Which pipeline has which pool ---------------------------------------------------------- */

static void one_is_kept(void) {
    fileset set = one_file(500, MANY);
    table t = table_new(false);
    CHECK(pool_of(&t) == NULL);
    pass(&set, &t, 1, 0);
    tfwi_pool *pool = pool_of(&t);
    tfw_pipeline *p = pipeline_of(&set, &parse_7, &t, 1, 3000);
    CHECK(pool != NULL && pool_of(&t) == NULL);
    pass(&set, &t, 1, 0);
    CHECK(pool_of(&t) != NULL && pool_of(&t) != pool);
    tfw_pipeline_free(p);
    CHECK(pool_of(&t) == pool); /* the last */
    CHECK(pool->idle != NULL);
    table_free(&t);
    fileset_free(&set);
}

static void columns_of_another_kind_are_not_taken(void) {
    fileset set = one_file(500, MANY);
    table t = table_new(false);
    pass(&set, &t, 1, TFW_PIPELINE_NOTE_ABSENT);
    CHECK(pool_of(&t)->flags == TFW_NOTE_ABSENT);
    pass(&set, &t, 1, 0);
    CHECK(pool_of(&t)->flags == 0);
    table_free(&t);
    fileset_free(&set);
}

/* A child of a fork may go on with what no thread uses. */
static void any_number_of_threads_takes_it(void) {
    fileset set = one_file(500, MANY);
    table t = table_new(false);
    pass(&set, &t, 3, 0);
    const tfwi_pool *pool = pool_of(&t);
    CHECK(pool->is_shared);
    pass(&set, &t, 1, 0);
    CHECK(pool_of(&t) == pool && !pool->is_shared);
    pass(&set, &t, 20, 0);
    CHECK(pool_of(&t) == pool && pool->is_shared);
    table_free(&t);
    fileset_free(&set);
}

static void it_keeps_what_it_has_room_for(void) {
    fileset set = one_file(500, MANY);
    table t = table_new(false);
    tfw_chunk *chunks[2];
    tfw_column c;
    tfw_hold *hold;
    tfw_pipeline *p = pipeline_of(&set, &parse_7, &t, 1, 1000);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunks[i], NULL));
    }
    CHECK_EQ(TFW_OK, tfw_chunk_hold(chunks[0], false, 0, &c, &hold, NULL));
    tfw_pipeline_free(p);
    tfwi_pool *pool = pool_of(&t);
    CHECK(!tfwi_pool_keeps(pool, (size_t)MOST_IDLE + 1));
    const size_t count = pool->count, room = pool->room;
    tfw_chunk_release(chunks[0]); /* and its column is left to the holder */
    CHECK_EQ(count + 1, pool->count);
    CHECK(pool->room < room);
    pool->room = 0;
    tfw_chunk_release(chunks[1]);
    tfw_hold_release(hold);
    CHECK_EQ(count - 1, pool->count);
    CHECK_EQ(0, pool->spare_bytes);
    table_free(&t);
    fileset_free(&set);
}

/* Pretends that blocks are large. */
static void the_largest_pass_leaves_no_more(void) {
    table t = table_new(false);
    const tfw_schema *const schemas[2] = {t.schema};
    tfwi_pool *pool = tfwi_pool_take(schemas, 0, 0, 3);
    tfwi_block *blocks[5];
    for (size_t i = 0; i < 5; i++) {
        blocks[i] = tfwi_block_take(pool);
        blocks[i]->capacity = MOST_IDLE / 3;
    }
    for (size_t i = 0; i < 5; i++) {
        tfwi_block_release(blocks[i]);
    }
    CHECK_EQ(5, pool->count);
    tfwi_pool_leave(pool, 0);
    CHECK(pool_of(&t) == pool);
    CHECK_EQ(3, pool->count);
    CHECK(tfwi_pool_take(schemas, 0, 0, 3) == pool);
    pool->spare_bytes = (size_t)MOST_IDLE + 1;
    tfwi_pool_leave(pool, 0);
    CHECK(pool_of(&t) == NULL);
    table_free(&t);
}

/* ---- The end -------------------------------------------------------------------------------- */

static void any_of_them_ends_first(void) {
    fileset set = one_file(500, MANY);
    for (unsigned order = 0; order < 16; order++) {
        table t = table_new(false);
        pass(&set, &t, 1, 0);
        tfw_pipeline *p = pipeline_of(&set, &parse_7, &t, 1 + order % 2 * 2, 3000);
        tfw_chunk *chunk;
        tfw_column c;
        tfw_hold *hold;
        CHECK_EQ(TFW_OK, tfw_pipeline_next(p, -1, &chunk, NULL));
        CHECK_EQ(TFW_OK, tfw_chunk_hold(chunk, false, 0, &c, &hold, NULL));
        for (unsigned k = 0; k < 4; k++) {
            switch ((order + (order & 4 ? k * 3 : k)) % 4) {
            case 0: table_free(&t); break;
            case 1: tfw_pipeline_free(p); break;
            case 2: tfw_chunk_release(chunk); break;
            default: tfw_hold_release(hold); break;
            }
        }
    }
    fileset_free(&set);
}

static void *take_and_leave(void *schemas) {
    for (size_t i = 0; i < 500; i++) {
        const size_t place = i % 2;
        tfwi_pool *pool = tfwi_pool_take(schemas, place, 0, 3);
        EXPECT(pool != NULL && pool->is_used && !pool->closed);
        tfwi_block_release(tfwi_block_take(pool));
        tfwi_pool_leave(pool, place);
    }
    return NULL;
}

static void threads_take_and_leave(void) {
    table t = table_new(false);
    const tfw_schema *schemas[2] = {t.schema};
    race(take_and_leave, schemas);
    CHECK(pool_of(&t) != NULL);
    table_free(&t);
}

typedef struct user {
    tfw_pipeline *last;
    tfw_chunk *chunk;
    tfw_hold *hold;
} user;

static void *end(void *argument) {
    user *u = argument;
    tfw_pipeline_free(u->last);
    tfw_chunk_release(u->chunk);
    tfw_hold_release(u->hold);
    return NULL;
}

static void a_schema_is_freed_while_pipelines_end(void) {
    fileset set = one_file(500, MANY);
    table t = table_new(false);
    user users[THREADS];
    pthread_t threads[THREADS];
    tfw_column c;
    for (size_t i = 0; i < THREADS; i++) {
        user *u = &users[i];
        u->last = pipeline_of(&set, &parse_7, &t, 1 + i % 2, 3000);
        CHECK_EQ(TFW_OK, tfw_pipeline_next(u->last, -1, &u->chunk, NULL));
        CHECK_EQ(TFW_OK, tfw_chunk_hold(u->chunk, false, 0, &c, &u->hold, NULL));
    }
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, end, &users[i]));
    }
    table_free(&t);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_EQ(0, pthread_join(threads[i], NULL));
    }
    fileset_free(&set);
}

#ifndef _WIN32
/* ---- Pages and processes -------------------------------------------------------------------- */

#if defined(__has_feature)
#define HAS_TSAN __has_feature(thread_sanitizer) /* which takes four pages for each */
#else
#define HAS_TSAN 0
#endif

static long faults(void) {
    struct rusage usage;
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &usage));
    return usage.ru_minflt;
}

static void the_next_takes_no_fresh_memory(void) {
    fileset set = one_file(6000, 2 * MANY);
    table t = table_new(false);
    long before = 0;
    for (size_t i = 0; i < 2 * PASSES; i++) {
        before = i == PASSES ? faults() : before;
        pass_by(&set, &t, 1, 0, 1 << 22);
    }
    CHECK(faults() - before < PASSES * (HAS_TSAN ? 1000 : 250)); /* else a thousand and more */
    table_free(&t);
    fileset_free(&set);
}

/* In the parent another thread has the lock of what is kept, and so it stays in the child. */
static void a_forked_child_makes_its_own(void) {
    fileset set = one_file(500, MANY);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        table t = table_new(false);
        pass(&set, &t, threads, 0);
        tfwi_pool *pool = pool_of(&t);
        tfwi_mutex_lock(&pool->lock);
        const pid_t child = fork();
        if (child == 0) {
            pass(&set, &t, threads, 0);
            const bool is_another = pool_of(&t) != pool;
            table_free(&t);
            end_child(is_another);
        }
        tfwi_mutex_unlock(&pool->lock);
        check_child(child);
        table_free(&t);
    }
    fileset_free(&set);
}
#endif

int main(void) {
    RUN(one_is_kept);
    RUN(columns_of_another_kind_are_not_taken);
    RUN(any_number_of_threads_takes_it);
    RUN(the_largest_pass_leaves_no_more);
    RUN(it_keeps_what_it_has_room_for);
    RUN(any_of_them_ends_first);
    RUN(threads_take_and_leave);
    RUN(a_schema_is_freed_while_pipelines_end);
#ifndef _WIN32
    RUN(the_next_takes_no_fresh_memory);
    RUN(a_forked_child_makes_its_own);
#endif
    return check_report("one pipeline after another");
}
