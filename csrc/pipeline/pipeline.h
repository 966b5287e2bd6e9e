/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a pipeline, and the steps of its work. What they share is read and written under the
 * pipeline's lock, but where a comment says otherwise. */
#ifndef TFWIRE_PIPELINE_H
#define TFWIRE_PIPELINE_H

#include "parse/unknown.h"
#include "pipeline/pool.h"

/* A file, open while ranges of it are read. */
typedef struct tfwi_source {
    uint64_t number;
    uint64_t serial; /* no two sources have the same */
    uint64_t size;   /* as far as the plan knows: of the thread that opens ranges */
    size_t uses;
    int fd;
} tfwi_source;

/* A file whose records are fetched by number, and how many there are up to its end. */
typedef struct tfwi_indexed {
    tfw_indexed_file file;
    uint64_t end;
} tfwi_indexed;

/* A record to fetch. */
typedef struct tfwi_wanted {
    uint32_t file;
    uint64_t number; /* in it */
    int64_t begin;
    uint64_t size; /* with its frame; 0: impossible */
    size_t at;     /* its place among the records of the order */
} tfwi_wanted;

/* The records that begin in a part of a file. */
typedef struct tfwi_segment {
    tfwi_source *source;
    uint64_t from;
    uint64_t limit;
    uint64_t size;   /* of the file, when this was planned */
    uint64_t record; /* number of the first one, if it is known */
} tfwi_segment;

/* Records that somebody else has read, and that lie in their file without gaps. */
typedef struct tfwi_pushed_run {
    size_t first; /* the index of its first record */
    tfw_place begin;
} tfwi_pushed_run;

/* Bytes of a file: whole records, and what there is of the next one. */
struct tfw_parcel {
    tfwi_bytes data;
    size_t end; /* of the records */
    tfwi_spans spans;
    uint64_t record; /* the number of the first one */
    uint64_t offset; /* of the data in the file */
    uint64_t max_record_size;
    uint32_t flags; /* of tfw_scan */
};

enum {
    TFWI_PUSHED_SLACK = 64,         /* zeros after records in memory, where parsing may read */
    TFWI_MOST_PUSHED_KEPT = 1 << 22 /* bytes of that memory, for the next ones */
};

/* Records to be parsed, which somebody has verified. */
typedef struct tfwi_pushed {
    const uint8_t *data; /* with the frames: a copy, or lent */
    size_t len;
    const tfw_span *spans;
    size_t count;
    TFWI_ARRAY(tfwi_pushed_run) runs;
    tfwi_bytes copied;
    tfwi_spans copied_spans;
    size_t done;   /* records that were parsed, or are left out */
    tfw_place end; /* where reading goes on after them; under the lock */
} tfwi_pushed;

enum tfwi_range_state {
    RANGE_READY = 0, /* for any thread to read */
    RANGE_BUSY = 1,
    RANGE_READ = 2,
    RANGE_FILLED = 3 /* by whoever pushes */
};

/* What one thread reads at a time, in a place of the ring. While it is BUSY it is that thread's. */
typedef struct tfwi_range {
    enum tfwi_range_state state;
    bool is_chained; /* read from where the one before ended, up to the end of a batch */
    bool is_known;   /* where its first record begins, and the number of that */
    bool is_found;   /* not known: a record was found, at begin */
    bool was_linked;  /* it was found to begin where it does, or is read from there */
    bool has_stopped; /* not known: at something unusual, which only counts once the link holds */
    bool is_pushed;
    tfwi_pushed pushed;
    TFWI_ARRAY(tfwi_segment) segments; /* else, not chained: one, or several that begin files */
    size_t segment;
    tfw_place at; /* where reading goes on, and at last where it ended */
    uint64_t begin;
    tfwi_block *block;
    size_t delivered; /* runs of the block that were delivered before it was given back */
    int status; /* what is wrong with the record there */
    tfw_error error;
    tfw_place next; /* the record after it, if it is whole */
    tfwi_int64s order;  /* to be fetched: the numbers of its records */
    tfw_draw draw;      /* what the numbers are computed from, unless its count is 0 */
    tfwi_spans given;   /* instead: where they are, by their addresses */
    uint64_t first_row; /* how many were ordered before */
    tfwi_bytes misfit; /* its message, if that does not fit */
    uint64_t row;   /* of its batch, or of one before, where it should begin */
    uint64_t rows;  /* that it should have */
} tfwi_range;

enum tfwi_pushing {
    NOT_PUSHING = 0,
    PUSHING_AFTER_STOP = 1, /* until seek */
    PUSHING_AT_END = 2
};

enum { TFWI_MOST_PATHS = INT32_MAX };

/* What a thread reads with. Only it uses them. */
typedef struct tfwi_worker {
    struct tfw_pipeline *pipeline;
    tfwi_thread thread;
    tfwi_stretch stretch;
    uint64_t serial; /* of the source that the stretch is of; 0: none */
    TFWI_ARRAY(int64_t) offsets; /* of headers that were walked over */
    TFWI_ARRAY(tfwi_wanted) wanted; /* the rows of an order */
    TFWI_ARRAY(uint64_t) keys;      /* the rows in the order of the files */
    tfwi_bytes records;
    tfwi_spans spans; /* of the records */
} tfwi_worker;

struct tfw_pipeline {
    /* Never changed. */
    uint64_t batch_size;
    uint64_t max_record_size;
    uint64_t range_bytes; /* 0: by the size of batches */
    size_t num_threads;
    uint32_t mode;
    uint32_t flags;
    tfw_select select; /* NULL: all records */
    const void *wanted;
    bool is_ordered; /* ranges are orders: of records of indexed files, or that are given */
    TFWI_ARRAY(tfwi_indexed) indexed;
    tfwi_pool *pools[2]; /* of ranges; of batches that are much larger than those */
    size_t ring; /* how many ranges there may be */

    tfwi_mutex lock;
    tfwi_condition work;  /* there may be something to do */
    tfwi_condition ready; /* there may be something to deliver */
    tfwi_worker *workers; /* the first is the caller's */
    uint64_t process;     /* that created it; then the one whose threads it has */
    bool is_inside;       /* the caller, in tfw_pipeline_next */
    size_t started;       /* threads */
    size_t busy;          /* threads that do something now */
    bool was_started;
    atomic_bool is_cancelled; /* also read without the lock */

    TFWI_ARRAY(char *) paths; /* some may be NULL */

    /* The ranges: number i is ranges[i % ring]. Those below linked have been delivered to the
     * chunks, those below opened exist. */
    tfwi_range *ranges;
    uint64_t linked;
    uint64_t opened;
    tfw_place place;      /* where the records of all linked ranges end */
    double mean;          /* bytes of a record, with its frame; 0: not known */
    uint64_t bytes_read;  /* of all linked ranges */
    double deviation;     /* of where ranges begin in their batch from where they should, in rows */
    int64_t row_error;    /* rows of linked ranges that are missing in next_row */
    tfw_tally tally;      /* of the records of all linked ranges, if it is asked for */
    tfwi_unknown unknown[2]; /* the same: of the context and of the lists */
    tfw_place unknown_at[2][TFWI_MOST_UNKNOWN];
    tfw_place delivered;  /* the end of the last chunk that was delivered */
    unsigned broken_links; /* in a row */
    uint64_t chained_file; /* whose ranges are chained, as guesses fail there; UINT64_MAX: none */
    tfwi_pieces rest;     /* of a batch that is not full yet */
    uint64_t rest_rows;
    tfw_chunk *first_chunk;
    tfw_chunk *last_chunk;

    /* Where the next range begins. Of the one thread that opens it, while is_opening. */
    bool is_opening;
    bool has_ended;  /* there is no further range */
    bool is_unusual; /* a header cannot be walked over */
    tfw_place next;
    bool is_next_known;    /* the record; its number, too */
    bool is_row_known;
    uint64_t next_row; /* of its batch, or of one before; a guess if it is not known */
    tfwi_source *source;   /* the file of next, or NULL */
    uint64_t last_serial;
    enum tfwi_pushing pushing; /* next is where that goes on; no range is opened */

    /* The end, or what is wrong at place. */
    bool has_failed;
    bool is_final; /* no seek leads on: memory ran out */
    bool was_told; /* it, or TFW_END, was returned by tfw_pipeline_next */
    int status;
    tfw_error error;
    tfw_place after;
    tfwi_bytes misfit;
};

/* ---- pipeline.c ---- */

/* For a function that the caller is in: locks. TFW_E_UNSUPPORTED: this is a forked child. */
int tfwi_pipeline_enter(tfw_pipeline *p, tfw_error *error);
void tfwi_pipeline_leave(tfw_pipeline *p);

/* Starts the other threads, once there is more than one range to read; fewer, where the system has
 * no more. With the lock. */
void tfwi_pipeline_start(tfw_pipeline *p);

/* ---- resume.c: what comes after a stop, and more files; with the lock ---- */

/* Adds all paths, or none; false: out of memory. */
bool tfwi_pipeline_add_paths(tfw_pipeline *p, const char *const *paths, uint64_t count);

/* Whether more may be pushed after what was, unless that has failed and it is to be told first. */
bool tfwi_pipeline_is_pushing(const tfw_pipeline *p);

/* Waits until nobody reads, and drops all ranges that are not linked. */
void tfwi_pipeline_drop_ranges(tfw_pipeline *p);

/* ---- parcel.c: records that wait to be pushed ---- */

/* All its records. */
tfw_batch tfwi_parcel_batch(const tfw_parcel *parcel);

/* Drops what is in it, but for memory that it may use again. */
void tfwi_parcel_clear(tfw_parcel *parcel);

/* ---- push.c: records that somebody else has read ---- */

/* Ends the range that pushing fills; false: there is none. With the lock. */
bool tfwi_push_end_range(tfw_pipeline *p);

/* Parses the records of a range that are left, up to a number of them. Without the lock. */
void tfwi_push_parse(tfw_pipeline *p, tfwi_range *r, size_t end);

/* The index of the first record of a range that does not begin before a place, or of the one after
 * the record that ends there; false: the place is not in the range. */
bool tfwi_push_find(const tfwi_range *r, const tfw_place *place, size_t *out_index);

/* ---- plan.c: which range is read next; with the lock unless they say so ---- */

/* Whether the ring has a place for a range more. */
bool tfwi_plan_has_room(const tfw_pipeline *p);

/* Whether a range can be opened now. */
bool tfwi_plan_may_open(const tfw_pipeline *p);

/* Opens the next range, and reads it where it is chained. Leaves the lock meanwhile. */
void tfwi_plan_open(tfw_pipeline *p, tfwi_worker *w);

/* Opens the file of p->next, or the next one that holds more. TFW_END: there is none. Without the
 * lock, but while the caller opens a range. */
int tfwi_plan_source(tfw_pipeline *p, tfw_error *error);

void tfwi_source_use(tfwi_source *source);
void tfwi_source_release(tfwi_source *source); /* NULL is allowed */

/* ---- ranges.c ---- */

/* Makes a range new. */
void tfwi_range_begin(tfwi_range *r);

/* Whether a range has a block to read to; else it fails. */
bool tfwi_range_has_block(tfw_pipeline *p, tfwi_range *r);

/* Ends the reading of a range, for now. */
void tfwi_range_finish(tfwi_range *r, int status);

/* Keeps the message that does not fit, if there is memory. */
void tfwi_range_keep_misfit(tfwi_range *r, const uint8_t *message, uint64_t len);

/* Drops what a range holds, but for memory that it may use again. */
void tfwi_range_clear(tfwi_range *r);
void tfwi_range_free(tfwi_range *r);

/* ---- read_range.c: reading ranges; without the lock ---- */

/* Reads a range that was planned, or goes on with it. */
void tfwi_range_read(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r);

/* The same for one that is chained: whole batches from p->next on, which it advances. */
void tfwi_range_read_chained(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r, uint64_t bytes,
                             double mean, bool notes_offsets);

/* ---- orders.c: which records are fetched ---- */

/* Notes the files, before any thread is started. */
int tfwi_orders_init(tfw_pipeline *p, const tfw_pipeline_options *o, tfw_error *error);

/* Computes the numbers of a range; without the lock. False: out of memory. */
bool tfwi_order_draw(tfwi_range *r);

/* ---- fetch.c: records by number ---- */

/* Reads the records of an order; without the lock. */
void tfwi_fetch_range(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r);

/* ---- links.c: ranges in order, and batches of them; with the lock ---- */

/* Links the ranges that were read, as far as possible. */
void tfwi_links_advance(tfw_pipeline *p);

/* Delivers what a range has so far, which follows all that is linked. all: also the rest. */
void tfwi_links_deliver(tfw_pipeline *p, tfwi_range *r, bool all);

/* Nothing leads on: out of memory. */
void tfwi_links_fail_for_memory(tfw_pipeline *p);

/* Puts the rest into a chunk of its own. */
void tfwi_links_deliver_rest(tfw_pipeline *p);

#endif /* TFWIRE_PIPELINE_H */
