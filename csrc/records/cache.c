/* SPDX-License-Identifier: Apache-2.0 */
/* A cache has the address space of the whole file, and fills it block by block: records are in one
 * piece wherever they lie, and whoever finds a block takes no lock. A thread claims a block, fills
 * it and publishes it. Nobody waits for that: a forked child would, forever. */
#include "records/cache.h"

#include "base/memory.h"

#include <stdatomic.h>

enum { BLOCK = 1 << 16, ABSENT = 0, CLAIMED = 1, PRESENT = 2 };

struct tfw_cache {
    atomic_size_t shares; /* its creator's, and those of pipelines: freed with the last one */
    uint64_t size;        /* of the file */
    atomic_uchar *states;
    tfwi_bytes memory;
};

int tfw_cache_create(uint64_t size, tfw_cache **out_cache, tfw_error *error) {
    tfw_cache *cache = tfwi_calloc(1, sizeof *cache);
    const uint64_t blocks = size / BLOCK + 1;
    *out_cache = NULL;
    if (cache != NULL) {
        atomic_init(&cache->shares, 1);
    }
    if (cache != NULL && size <= SIZE_MAX / 2) {
        cache->size = size;
        cache->states = tfwi_calloc((size_t)blocks, sizeof *cache->states);
        if (cache->states != NULL && TFWI_RESERVE(cache->memory, size)) {
            *out_cache = cache;
            return TFW_OK;
        }
    }
    tfw_cache_free(cache);
    return tfwi_fail(error, TFW_E_MEMORY, "no memory for a cache");
}

void tfwi_cache_share(tfw_cache *cache) {
    if (cache != NULL) {
        atomic_fetch_add(&cache->shares, 1);
    }
}

void tfw_cache_free(tfw_cache *cache) {
    if (cache == NULL || atomic_fetch_sub(&cache->shares, 1) != 1) {
        return;
    }
    tfw_free(cache->states);
    tfw_free(cache->memory.of);
    tfw_free(cache);
}

static bool fill_block(tfw_cache *cache, int32_t fd, size_t block) {
    unsigned char state = ABSENT;
    const uint64_t begin = (uint64_t)block * BLOCK, left = cache->size - begin;
    const size_t len = left < BLOCK ? (size_t)left : BLOCK;
    size_t got = 0;
    if (!atomic_compare_exchange_strong(&cache->states[block], &state, CLAIMED)) {
        return state == PRESENT;
    }
    const int status = tfw_read_at(fd, cache->memory.of + begin, len, begin, &got, NULL);
    const bool filled = status == TFW_OK && got == len;
    atomic_store_explicit(&cache->states[block], filled ? PRESENT : ABSENT, memory_order_release);
    return filled;
}

const uint8_t *tfwi_cache_find(tfw_cache *cache, int32_t fd, uint64_t offset, uint64_t len) {
    if (offset > cache->size || len > cache->size - offset || len == 0) {
        return NULL;
    }
    const size_t last = (size_t)((offset + len - 1) / BLOCK);
    for (size_t block = (size_t)(offset / BLOCK); block <= last; block++) {
        if (atomic_load_explicit(&cache->states[block], memory_order_acquire) != PRESENT &&
            !fill_block(cache, fd, block)) {
            return NULL;
        }
    }
    return cache->memory.of + offset;
}

void tfwi_cache_prefetch(const tfw_cache *cache, uint64_t offset) {
    if (offset < cache->size) {
        TFWI_PREFETCH(cache->memory.of + offset);
        TFWI_PREFETCH(cache->memory.of + offset + 64); /* or past the end, which does no harm */
    }
}
