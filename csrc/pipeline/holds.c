/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that outlive their chunk. Users keep one column of a batch for long, or one of every
 * batch. So each is held by itself: when nobody uses its block any more, the memory of what is held
 * is left to the holders, and the block goes on with the rest. What holders give back is spare: the
 * next block that lacks memory for that feature takes it. */
#include "pipeline/pool.h"

/* ---- Of blocks ------------------------------------------------------------------------------ */

void tfwi_block_leave_held(tfwi_block *block) {
    for (int i = 0; i < 2 && block->held != 0; i++) {
        const tfw_columns *columns = block->columns[i];
        for (size_t k = 0; columns != NULL && k < columns->count; k++) {
            tfw_hold *hold = block->holds[i][k];
            if (hold != NULL && hold->holders != 0) {
                tfwi_columns_exchange(block->columns[i], k, &hold->memory);
                hold->block = NULL;
                block->holds[i][k] = NULL;
                block->held--;
                block->pool->count++;
            }
        }
    }
}

void tfwi_block_take_spares(tfwi_block *block) {
    tfwi_pool *pool = block->pool;
    for (int i = 0; i < 2 && pool->spare_bytes != 0; i++) {
        const tfw_columns *columns = block->columns[i];
        for (size_t k = 0; columns != NULL && k < columns->count; k++) {
            tfw_hold *hold = pool->spares[i][k].first;
            if (hold != NULL && columns->columns[k].values.of == NULL) {
                pool->spares[i][k].first = hold->next;
                pool->spares[i][k].count--;
                pool->spare_bytes -= tfwi_column_memory_size(&hold->memory);
                tfwi_columns_exchange(block->columns[i], k, &hold->memory);
                hold->block = block;
                block->holds[i][k] = hold;
            }
        }
    }
}

/* ---- Spare memory --------------------------------------------------------------------------- */

static void free_hold(tfw_hold *hold) {
    tfwi_column_memory_free(&hold->memory);
    tfw_free(hold);
}

void tfwi_spares_free(tfwi_spares *spares, size_t count) {
    for (size_t i = 0; spares != NULL && i < count; i++) {
        while (spares[i].first != NULL) {
            tfw_hold *hold = spares[i].first;
            spares[i].first = hold->next;
            free_hold(hold);
        }
    }
    tfw_free(spares);
}

/* Keeps memory that a block has left; false: there is enough of it. The largest is used first, so
 * that soon nothing has to grow. */
static bool keep_spare(tfwi_pool *pool, tfw_hold *hold) {
    if (pool->closed) { /* and the spares are gone */
        return false;
    }
    tfwi_spares *spares = &pool->spares[hold->is_list][hold->feature];
    const size_t size = tfwi_column_memory_size(&hold->memory);
    if (size == 0 || spares->count >= pool->most_spares || !tfwi_pool_keeps(pool, size)) {
        return false;
    }
    tfw_hold **place = &spares->first;
    while (*place != NULL &&
           (*place)->memory.values.capacity > hold->memory.values.capacity) {
        place = &(*place)->next;
    }
    hold->next = *place;
    *place = hold;
    spares->count++;
    pool->spare_bytes += size;
    return true;
}

/* ---- Holding -------------------------------------------------------------------------------- */

/* The hold of a column of a block, for one holder more; NULL: out of memory. */
static tfw_hold *hold_column(tfwi_block *block, bool is_list, size_t feature) {
    tfw_hold **hold = &block->holds[is_list][feature];
    if (*hold == NULL) {
        *hold = tfwi_calloc(1, sizeof **hold);
        if (*hold == NULL) {
            return NULL;
        }
        **hold = (tfw_hold){
            .pool = block->pool, .block = block, .feature = feature, .is_list = is_list};
    }
    block->held += (*hold)->holders++ == 0;
    return *hold;
}

int tfw_chunk_hold(tfw_chunk *chunk, bool is_list, size_t feature, tfw_column *out_column,
                   tfw_hold **out_hold, tfw_error *error) {
    tfwi_block *block = chunk->pieces.of[0].block;
    tfwi_pool *pool = block->pool;
    *out_hold = NULL;
    int status = tfw_chunk_column(chunk, is_list, feature, out_column, error);
    if (status != TFW_OK) {
        return status;
    }
    if (tfwi_pool_is_of_parent(pool)) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED, "the pipeline is of the parent process");
    }
    tfwi_mutex_lock(&pool->lock);
    *out_hold = hold_column(block, is_list, feature);
    tfwi_mutex_unlock(&pool->lock);
    return *out_hold != NULL ? TFW_OK : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
}

void tfw_hold_release(tfw_hold *hold) {
    if (hold == NULL || tfwi_pool_is_of_parent(hold->pool)) {
        return;
    }
    tfwi_pool *pool = hold->pool;
    tfwi_mutex_lock(&pool->lock);
    const bool unused = --hold->holders == 0;
    const bool was_left = unused && hold->block == NULL;
    if (unused && !was_left) {
        hold->block->held--;
    }
    pool->count -= was_left;
    const bool gone = was_left && !keep_spare(pool, hold);
    const bool last = pool->closed && pool->count == 0;
    tfwi_mutex_unlock(&pool->lock);
    if (gone) {
        free_hold(hold);
    }
    if (last) {
        tfwi_pool_free(pool);
    }
}
