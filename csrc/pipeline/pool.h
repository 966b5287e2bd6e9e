/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of rows, which are used again and again, and the chunks that lend them. */
#ifndef TFWIRE_POOL_H
#define TFWIRE_POOL_H

#include "base/threads.h"
#include "parse/schema.h"
#include "pipeline/read_columns.h"
#include "tfwire_pipeline.h"

/* Rows of a block that come from one file, without gaps. */
typedef struct tfwi_run {
    uint64_t row;    /* the first one */
    tfw_place begin;
    tfw_place end;   /* as many records later */
    tfw_tally tally; /* to verify */
    uint64_t lengths[2];
    size_t first; /* to verify: where the payload of the file's first record is in the data; to
                     select: the first one of the records that are chosen */
    uint64_t first_len; /* 0: the run does not begin with it; how many they are */
} tfwi_run;

/* The memory of one column of a block. Who holds it keeps it when the block is used again, which
 * then gets other memory. */
struct tfw_hold {
    struct tfwi_pool *pool;
    struct tfwi_block *block; /* that has the memory, or NULL */
    struct tfw_hold *next;    /* of those that are spare */
    size_t holders;
    size_t feature;
    bool is_list;
    tfwi_column_memory memory; /* where no block has it */
};

/* What a thread makes of a range: only it writes them, and then nobody. */
typedef struct tfwi_block {
    struct tfwi_pool *pool;
    struct tfwi_block *next; /* of those that are idle */
    size_t uses;             /* by ranges, batches and chunks; under the pool's lock */
    tfw_columns *columns[2]; /* of the context and of the lists, or NULL */
    tfw_column *finished[2]; /* what they hold */
    tfw_hold **holds[2];     /* of columns that somebody has held, or NULL; under that lock */
    size_t held;             /* columns; the same */
    uint64_t rows;
    bool is_lent; /* in a chunk, though some of its rows are not delivered yet */
    TFWI_ARRAY(tfwi_run) runs;
    tfwi_offsets offsets; /* of the rows in their files, where rows may be cut off, positions are
                             asked for, or no more is wanted; else empty */
    tfwi_spans spans;     /* of the data */
    tfwi_record_places places;   /* where they begin, where not all records have one */
    uint8_t *data;        /* records with their frames, or payloads */
    size_t capacity;
    size_t end; /* of the data */
} tfwi_block;

/* Memory of a feature that nobody holds any more, for blocks that had to leave theirs. */
typedef struct tfwi_spares {
    tfw_hold *first;
    size_t count;
} tfwi_spares;

/* It lives until it is closed, and all chunks and all that is held are gone. One pipeline uses it,
 * or a schema keeps it for the next. */
typedef struct tfwi_pool {
    tfwi_kept kept;
    tfwi_mutex lock;
    const tfw_schema *schemas[2]; /* it has a share of each */
    unsigned flags;    /* of the columns */
    uint64_t process;  /* that owns it */
    bool is_shared;    /* with threads, which a forked child does not have */
    size_t count;      /* of blocks, idle or not, and of columns that blocks have left to holders */
    bool closed;       /* nobody takes idle blocks any more */
    bool is_used;      /* by a pipeline */
    size_t room;       /* else: how many bytes more it keeps */
    tfwi_block *idle;
    tfwi_spares *spares[2];
    size_t spare_bytes; /* of all features */
    size_t most_spares; /* of each */
} tfwi_pool;

/* The pool that the last pipeline has left in one of two places, or a new one; NULL: out of
 * memory. */
tfwi_pool *tfwi_pool_take(const tfw_schema *const schemas[2], size_t place, unsigned flags,
                          size_t most_spares);

/* Leaves it to the next pipeline. */
void tfwi_pool_leave(tfwi_pool *pool, size_t place);

/* Whether it keeps so many bytes more that nobody uses, which count then. With the lock. */
bool tfwi_pool_keeps(tfwi_pool *pool, size_t size);

/* Before threads start, which only this process has. */
void tfwi_pool_share(tfwi_pool *pool);

/* Whether this is a forked child, in which another thread may seem to hold the lock for ever. */
bool tfwi_pool_is_of_parent(const tfwi_pool *pool);

/* An empty block, used once; NULL: out of memory. */
tfwi_block *tfwi_block_take(tfwi_pool *pool);
void tfwi_block_use(tfwi_block *block);
void tfwi_block_release(tfwi_block *block); /* NULL is allowed */

/* ---- holds.c: memory that outlives its block; with the pool's lock ---- */

/* Leaves columns that are held to their holders. */
void tfwi_block_leave_held(tfwi_block *block);

/* Gives a block memory that is spare for the columns that have none. */
void tfwi_block_take_spares(tfwi_block *block);

void tfwi_spares_free(tfwi_spares *spares, size_t count);

/* ---- pool.c, on ---- */

/* The end of a pool that nothing needs any more. */
void tfwi_pool_free(tfwi_pool *pool);

/* Makes a block empty. */
void tfwi_block_clear(tfwi_block *block);

/* Makes the columns ready to be lent; TFW_E_MEMORY. */
int tfwi_block_finish(tfwi_block *block, tfw_error *error);

/* Where a row begins and ends in its file. REQUIRES: the block has it. offset is that of the run
 * where the block has none of the row, as of joined ones, and no run begins or ends there. */
tfw_place tfwi_block_begin(const tfwi_block *block, uint64_t row);
tfw_place tfwi_block_end(const tfwi_block *block, uint64_t row);

/* Rows [first, end) of a block. */
typedef struct tfwi_piece {
    tfwi_block *block;
    uint64_t first;
    uint64_t end;
} tfwi_piece;

typedef TFWI_ARRAY(tfwi_piece) tfwi_pieces;

enum tfwi_chunk_state {
    CHUNK_READY = 0, /* one piece */
    CHUNK_SPLIT = 1, /* for any thread to join */
    CHUNK_BUSY = 2
};

/* Its pieces are read by the thread that joins it, and then by nobody until it is delivered. */
struct tfw_chunk {
    struct tfw_chunk *next;
    uint64_t range; /* the last one that it has rows of */
    enum tfwi_chunk_state state;
    int status; /* of joining */
    tfwi_pieces pieces;
    tfw_place begin;
    tfw_place end;
};

/* Copies the pieces to the end of the first one's block; or where that is lent, into another of
 * pools[0]; or where they are many, into one of pools[1]. Also the offsets of the rows in their
 * files if asked for. TFW_E_MEMORY. REQUIRES: all chunks before it are joined, as they may have
 * rows of that block. */
int tfwi_chunk_join(tfw_chunk *chunk, tfwi_pool *const pools[2], bool notes_offsets);

#endif /* TFWIRE_POOL_H */
