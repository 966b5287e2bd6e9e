/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for converted values: blocks, which become a single one after some batches. */
#include "arrow/import_parts.h"

#include "base/memory.h"

#define LEAST_BLOCK ((size_t)1 << 16)
#define BLOCK_HEAD ((size_t)64)

typedef struct tfwi_block {
    struct tfwi_block *before;
    size_t capacity;
    size_t used;
} tfwi_block;

static size_t free_blocks(tfwi_arena *arena) {
    size_t capacity = 0;
    while (arena->last != NULL) {
        tfwi_block *block = arena->last;
        arena->last = block->before;
        capacity += block->capacity;
        tfw_free(block);
    }
    return capacity;
}

void tfwi_arena_begin(tfwi_arena *arena, uint64_t room) {
    if (arena->last != NULL && arena->last->before != NULL) {
        arena->hint = free_blocks(arena);
    } else if (arena->last != NULL) {
        arena->last->used = 0;
    }
    arena->used = 0;
    arena->room = room;
}

static bool add_arena_block(tfwi_arena *arena, size_t size) {
    size_t capacity = arena->hint > LEAST_BLOCK ? arena->hint : LEAST_BLOCK;
    capacity = capacity < size ? size : capacity;
    tfwi_block *block = tfwi_realloc(NULL, BLOCK_HEAD + capacity);
    if (block == NULL) {
        return false;
    }
    *block = (tfwi_block){.before = arena->last, .capacity = capacity};
    arena->last = block;
    arena->hint = 0;
    return true;
}

void *tfwi_arena_take(tfwi_arena *arena, uint64_t count, size_t size) {
    size_t bytes;
    if (count > SIZE_MAX / 2 || tfwi_mul_overflows((size_t)count, size, &bytes) ||
        bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    arena->used += bytes; /* each is below 2^63; the first above the room ends the call */
    if (arena->used > arena->room) {
        return NULL;
    }
    tfwi_block *block = arena->last;
    if (block == NULL || block->capacity - block->used < bytes) {
        if (!add_arena_block(arena, bytes)) {
            return NULL;
        }
        block = arena->last;
    }
    uint8_t *memory = (uint8_t *)block + BLOCK_HEAD + block->used;
    block->used += bytes;
    return memory;
}

void tfwi_arena_free(tfwi_arena *arena) { (void)free_blocks(arena); }
