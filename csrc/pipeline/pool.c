/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that come back are used again with the memory that they have: fresh memory costs a page
 * fault every 4 KiB, which takes longer than parsing does. */
#include "pipeline/pool.h"

enum { MOST_IDLE = 192 << 20 }; /* bytes of a pool that no pipeline uses */

/* ---- Blocks --------------------------------------------------------------------------------- */

static void free_block(tfwi_block *block) {
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; block->holds[i] != NULL && k < block->columns[i]->count; k++) {
            tfw_free(block->holds[i][k]);
        }
        tfw_columns_free(block->columns[i]);
        tfw_free(block->finished[i]);
        tfw_free(block->holds[i]);
    }
    tfw_free(block->runs.of);
    tfw_free(block->offsets.of);
    tfw_free(block->spans.of);
    tfw_free(block->places.of);
    tfw_free(block->data);
    tfw_free(block);
}

static bool create_block_columns(tfwi_block *block, int i, const tfw_schema *schema) {
    const unsigned flags = block->pool->flags | TFW_OWN_NUMBERS | (i == 1 ? TFW_FEATURE_LISTS : 0);
    block->finished[i] = tfwi_calloc(schema->count, sizeof *block->finished[i]);
    if (block->finished[i] == NULL ||
        tfw_columns_create(schema, flags, &block->columns[i], NULL) != TFW_OK) {
        return false;
    }
    block->holds[i] = tfwi_calloc(schema->count, sizeof(tfw_hold *));
    return block->holds[i] != NULL;
}

static void free_block_list(tfwi_block *block) {
    while (block != NULL) {
        tfwi_block *next = block->next;
        free_block(block);
        block = next;
    }
}

static tfwi_block *create_block(tfwi_pool *pool) {
    tfwi_block *block = tfwi_calloc(1, sizeof *block);
    if (block != NULL) {
        block->pool = pool;
    }
    for (int i = 0; i < 2 && block != NULL; i++) {
        if (pool->schemas[i] != NULL && !create_block_columns(block, i, pool->schemas[i])) {
            free_block(block);
            return NULL;
        }
    }
    if (block != NULL) {
        block->pool = pool;
    }
    return block;
}

static size_t size_of_block(const tfwi_block *block) {
    return block->capacity + block->runs.capacity * sizeof *block->runs.of +
           block->offsets.capacity * sizeof *block->offsets.of +
           block->spans.capacity * sizeof *block->spans.of +
           block->places.capacity * sizeof *block->places.of +
           tfwi_columns_memory_size(block->columns[0]) +
           tfwi_columns_memory_size(block->columns[1]);
}

void tfwi_block_clear(tfwi_block *block) {
    for (int i = 0; i < 2; i++) {
        if (block->columns[i] != NULL) {
            tfw_columns_clear(block->columns[i]);
        }
    }
    block->rows = 0;
    block->is_lent = false;
    block->runs.count = block->offsets.count = block->spans.count = block->places.count = 0;
    block->end = 0;
}

tfwi_block *tfwi_block_take(tfwi_pool *pool) {
    tfwi_mutex_lock(&pool->lock);
    tfwi_block *block = pool->idle;
    if (block == NULL) {
        tfwi_mutex_unlock(&pool->lock);
        block = create_block(pool);
        if (block == NULL) {
            return NULL;
        }
        tfwi_mutex_lock(&pool->lock);
        pool->count++;
    } else {
        pool->idle = block->next;
    }
    tfwi_block_take_spares(block);
    tfwi_mutex_unlock(&pool->lock);
    block->uses = 1;
    tfwi_block_clear(block);
    return block;
}

void tfwi_block_use(tfwi_block *block) {
    tfwi_mutex_lock(&block->pool->lock);
    block->uses++;
    tfwi_mutex_unlock(&block->pool->lock);
}

bool tfwi_pool_keeps(tfwi_pool *pool, size_t size) {
    const bool keeps = !pool->closed && (pool->is_used || size <= pool->room);
    pool->room -= keeps && !pool->is_used ? size : 0;
    return keeps;
}

static bool keeps_block(tfwi_pool *pool, const tfwi_block *block) {
    return tfwi_pool_keeps(pool, pool->is_used ? 0 : size_of_block(block));
}

void tfwi_block_release(tfwi_block *block) {
    if (block == NULL) {
        return;
    }
    tfwi_pool *pool = block->pool;
    tfwi_mutex_lock(&pool->lock);
    const bool unused = --block->uses == 0;
    if (unused) {
        tfwi_block_leave_held(block);
    }
    const bool gone = unused && !keeps_block(pool, block);
    if (unused && !gone) {
        block->next = pool->idle;
        pool->idle = block;
    }
    pool->count -= gone;
    const bool last = gone && pool->closed && pool->count == 0;
    tfwi_mutex_unlock(&pool->lock);
    if (gone) {
        free_block(block);
    }
    if (last) {
        tfwi_pool_free(pool);
    }
}

int tfwi_block_finish(tfwi_block *block, tfw_error *error) {
    int status = TFW_OK;
    for (int i = 0; i < 2 && status == TFW_OK; i++) {
        if (block->columns[i] != NULL) {
            status = tfwi_columns_peek_all(block->columns[i], block->finished[i], error);
        }
    }
    return status;
}

static const tfwi_run *run_of(const tfwi_block *block, uint64_t row) {
    const tfwi_run *run = &block->runs.of[block->runs.count - 1];
    while (run->row > row) {
        run--;
    }
    return run;
}

tfw_place tfwi_block_begin(const tfwi_block *block, uint64_t row) {
    const tfwi_run *run = run_of(block, row);
    tfw_place place = run->begin;
    if (row != run->row) {
        place.record += row - run->row;
        place.offset = row < block->offsets.count ? block->offsets.of[row] : place.offset;
    }
    return place;
}

tfw_place tfwi_block_end(const tfwi_block *block, uint64_t row) {
    const tfwi_run *run = run_of(block, row);
    const bool is_last = row + 1 - run->row == run->end.record - run->begin.record;
    return is_last ? run->end : tfwi_block_begin(block, row + 1);
}

/* ---- The pool ------------------------------------------------------------------------------- */

static void free_spares(tfwi_pool *pool) {
    for (int i = 0; i < 2; i++) {
        tfwi_spares_free(pool->spares[i], pool->schemas[i] != NULL ? pool->schemas[i]->count : 0);
        pool->spares[i] = NULL;
    }
}

static bool create_spares(tfwi_pool *pool) {
    for (int i = 0; i < 2; i++) {
        if (pool->schemas[i] != NULL) {
            pool->spares[i] = tfwi_calloc(pool->schemas[i]->count, sizeof *pool->spares[i]);
            if (pool->spares[i] == NULL) {
                return false;
            }
        }
    }
    return true;
}

static void free_shares(tfwi_pool *pool) {
    for (int i = 0; i < 2; i++) {
        tfwi_schema_unshare(pool->schemas[i]);
    }
    tfw_free(pool);
}

void tfwi_pool_free(tfwi_pool *pool) {
    tfwi_mutex_destroy(&pool->lock);
    free_shares(pool);
}

/* With the lock; after a fork, the child's. */
static void own_pool(tfwi_pool *pool) {
    if (pool->process != tfwi_process()) { /* others read it without the lock */
        pool->process = tfwi_process();
    }
}

void tfwi_pool_share(tfwi_pool *pool) {
    tfwi_mutex_lock(&pool->lock);
    pool->is_shared = true;
    own_pool(pool);
    tfwi_mutex_unlock(&pool->lock);
}

bool tfwi_pool_is_of_parent(const tfwi_pool *pool) {
    return tfwi_process() != pool->process && pool->is_shared;
}

/* ---- From one pipeline to the next ---------------------------------------------------------- */

/* Nothing is freed in a forked child, where another thread may seem to hold the lock for ever. */
static void end_pool(tfwi_kept *kept) {
    tfwi_pool *pool = (tfwi_pool *)kept;
    if (pool->process != tfwi_process()) {
        return;
    }
    tfwi_mutex_lock(&pool->lock);
    tfwi_block *idle = pool->idle;
    pool->closed = true;
    pool->idle = NULL;
    for (const tfwi_block *block = idle; block != NULL; block = block->next) {
        pool->count--;
    }
    free_spares(pool);
    const bool last = pool->count == 0;
    tfwi_mutex_unlock(&pool->lock);
    free_block_list(idle);
    if (last) {
        tfwi_pool_free(pool);
    }
}

static tfwi_pool *create_pool(const tfw_schema *const schemas[2], unsigned flags) {
    tfwi_pool *pool = tfwi_calloc(1, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    /* Shares, as Arrow arrays live longer than the parser that made them. */
    for (int i = 0; i < 2; i++) {
        pool->schemas[i] = schemas[i];
        tfwi_schema_share(schemas[i]);
    }
    pool->flags = flags;
    pool->process = tfwi_process();
    pool->kept.end = end_pool;
    if (!create_spares(pool) || !tfwi_mutex_init(&pool->lock)) {
        free_spares(pool);
        free_shares(pool);
        return NULL;
    }
    return pool;
}

/* Whose places it is kept in. */
static const tfw_schema *keeper_of(const tfw_schema *const schemas[2]) {
    return schemas[0] != NULL ? schemas[0] : schemas[1];
}

static bool pool_fits(const tfwi_pool *pool, const tfw_schema *const schemas[2], unsigned flags) {
    return pool->process == tfwi_process() && pool->schemas[0] == schemas[0] &&
           pool->schemas[1] == schemas[1] && pool->flags == flags;
}

tfwi_pool *tfwi_pool_take(const tfw_schema *const schemas[2], size_t place, unsigned flags,
                          size_t most_spares) {
    tfwi_pool *pool = (tfwi_pool *)tfwi_schema_take(keeper_of(schemas), place);
    if (pool != NULL && !pool_fits(pool, schemas, flags)) {
        end_pool(&pool->kept);
        pool = NULL;
    }
    pool = pool != NULL ? pool : create_pool(schemas, flags);
    if (pool != NULL) {
        tfwi_mutex_lock(&pool->lock);
        pool->most_spares = most_spares;
        pool->is_used = true;
        pool->is_shared = false;
        tfwi_mutex_unlock(&pool->lock);
    }
    return pool;
}

void tfwi_pool_leave(tfwi_pool *pool, size_t place) {
    tfwi_mutex_lock(&pool->lock);
    own_pool(pool);
    pool->is_used = false;
    pool->room = MOST_IDLE;
    const bool keeps = tfwi_pool_keeps(pool, pool->spare_bytes);
    tfwi_block *gone = NULL;
    for (tfwi_block **place_of = &pool->idle, *block; (block = *place_of) != NULL;) {
        if (keeps_block(pool, block)) {
            place_of = &block->next;
        } else {
            *place_of = block->next;
            block->next = gone;
            gone = block;
            pool->count--;
        }
    }
    tfwi_mutex_unlock(&pool->lock);
    free_block_list(gone);
    tfwi_schema_keep(keeps ? keeper_of(pool->schemas) : NULL, place, &pool->kept);
}
