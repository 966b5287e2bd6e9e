/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages by several threads: which records each takes, and blocks in their order.
 *
 * A job is a range of records. Jobs are opened in order, encoded at the same time, each into a
 * block that stays in the cache of one core, and joined in order: then the block is delivered, or
 * it is known where its messages are gathered, and a thread copies them there. A block that is full
 * before its job's last record is joined, and then the same job goes on. */
#include "pipeline/encoder.h"

enum {
    MOST_ENCODERS = 1024,
    SAMPLE = 64,              /* records of the first job, which shows how large they are */
    SMALL_RANGE = 1 << 18,  /* bytes */
    WORTH_A_THREAD = 1 << 20 /* bytes of all that is to be encoded, for each */
};

enum job_state {
    JOB_EMPTY = 0,
    JOB_READY,   /* for any thread to encode on */
    JOB_BUSY,    /* a thread encodes or copies */
    JOB_ENCODED, /* the block waits for those before */
    JOB_PLACED   /* for any thread to copy */
};

typedef struct job {
    enum job_state state;
    size_t next; /* records [next, end) are not encoded yet */
    size_t end;
    tfwi_block *block; /* or NULL */
    size_t place;      /* in what is gathered, of the block's messages */
    int status;        /* of record next, where it cannot be encoded */
    tfw_error error;
} job;

struct tfw_encoder {
    tfwi_mutex lock;
    tfwi_condition work;  /* for the threads */
    tfwi_condition ready; /* for the caller */
    uint64_t process;
    tfwi_pool *pool;
    tfwi_thread *threads;
    size_t num_threads;
    size_t started;
    uint64_t range_bytes;
    unsigned flags;
    bool is_freed;
    size_t busy; /* threads, without the lock */

    const tfw_input *inputs;
    size_t input_count;
    size_t records;
    size_t next;     /* the first record of no job yet */
    uint64_t opened; /* jobs */
    uint64_t joined; /* all before this one are */
    size_t active;   /* jobs that are not empty */
    bool is_over;    /* nothing more is begun */
    job *jobs;       /* job i is at i % ring */
    size_t ring;
    uint64_t encoded_bytes; /* so far, and of how many records */
    uint64_t encoded_records;

    int64_t *offsets; /* to gather; else NULL */
    uint8_t *out;
    size_t capacity;
    size_t gathered; /* bytes that have a place */
    size_t uncopied; /* jobs with bytes that are not there yet */
    size_t wanted;   /* bytes of room without which nothing is joined; 0: there is room */
};

/* ---- Work ----------------------------------------------------------------------------------- */

static job *job_at(tfw_encoder *e, uint64_t number) { return &e->jobs[number % e->ring]; }

static uint64_t mean_of(const tfw_encoder *e) {
    const uint64_t mean = e->encoded_records != 0 ? e->encoded_bytes / e->encoded_records : 0;
    return mean != 0 ? mean : 1;
}

/* About how many bytes the records from a number on will be. */
static uint64_t expected_bytes(const tfw_encoder *e, size_t first) {
    const uint64_t count = e->records - first, mean = mean_of(e);
    return count <= INT64_MAX / mean ? count * mean : INT64_MAX;
}

static uint64_t range_bytes(const tfw_encoder *e) {
    const uint64_t share = expected_bytes(e, 0) / (4 * e->num_threads);
    if (e->range_bytes != 0) {
        return e->range_bytes;
    }
    return share < SMALL_RANGE ? SMALL_RANGE
           : share < TFWI_ENCODE_RANGE ? share
                                       : TFWI_ENCODE_RANGE;
}

static bool may_open(tfw_encoder *e) {
    return e->next < e->records && (e->opened == 0 || e->encoded_records != 0) &&
           job_at(e, e->opened)->state == JOB_EMPTY;
}

static job *open_job(tfw_encoder *e) {
    job *j = job_at(e, e->opened);
    const uint64_t fits = range_bytes(e) / 16 * 15 / mean_of(e);
    const uint64_t count = e->opened == 0 ? SAMPLE : fits != 0 ? fits : 1;
    const size_t left = e->records - e->next;
    *j = (job){.state = JOB_READY, .next = e->next};
    j->end = e->next += count < left ? (size_t)count : left;
    e->opened++;
    e->active++;
    return j;
}

/* The first job in a state, or NULL. Those that are copied may be joined already. */
static job *find_job(tfw_encoder *e, enum job_state state) {
    const uint64_t first = e->opened < e->ring ? 0 : e->opened - e->ring;
    for (uint64_t i = first; i < e->opened; i++) {
        job *j = job_at(e, i);
        if (j->state == state) {
            return j;
        }
    }
    return NULL;
}

/* Encodes on, without the lock. */
static void encode_job(tfw_encoder *e, job *j) {
    const size_t most = (size_t)(2 * range_bytes(e));
    const tfwi_rows rows = {e->inputs, e->input_count, e->records, j->next, 1, j->end - j->next};
    size_t done = 0;
    j->state = JOB_BUSY;
    tfwi_mutex_unlock(&e->lock);
    j->block = tfwi_block_take(e->pool);
    j->status = j->block == NULL
                    ? tfwi_fail(&j->error, TFW_E_MEMORY, "no memory for a block of messages")
                    : tfwi_block_encode(j->block, &rows, most, e->flags, &done, &j->error);
    if (done == 0) {
        tfwi_block_release(j->block);
        j->block = NULL;
    }
    tfwi_mutex_lock(&e->lock);
    j->next += done;
    j->state = JOB_ENCODED;
    e->encoded_bytes += done != 0 ? j->block->end : 0;
    e->encoded_records += done;
}

/* After its block was joined: the job goes on, or is over, or has a record that cannot be encoded,
 * which is for tfw_encoder_next. */
static void leave_block(tfw_encoder *e, job *j) {
    j->block = NULL;
    if (j->status == TFW_OK) {
        j->state = j->next < j->end ? JOB_READY : JOB_EMPTY;
        e->active -= j->state == JOB_EMPTY;
    } else {
        j->state = JOB_ENCODED;
    }
}

static bool is_last_block(const job *j) { return j->status == TFW_OK && j->next == j->end; }

/* Copies messages to their place, without the lock. */
static void copy_job(tfw_encoder *e, job *j) {
    tfwi_block *block = j->block;
    int64_t *ends = e->offsets + (size_t)block->runs.of[0].begin.record + 1;
    uint8_t *out = e->out + j->place;
    j->state = JOB_BUSY;
    tfwi_mutex_unlock(&e->lock);
    memcpy(out, block->data, block->end);
    for (size_t i = 0; i < block->spans.count; i++) {
        ends[i] = (int64_t)(j->place + block->spans.of[i].offset + block->spans.of[i].length);
    }
    tfwi_block_release(block);
    tfwi_mutex_lock(&e->lock);
    e->uncopied--;
    leave_block(e, j);
}

/* The next job in order, if it has a block to be joined, or NULL. */
static job *joinable(tfw_encoder *e) {
    job *j = job_at(e, e->joined);
    return e->joined < e->opened && j->state == JOB_ENCODED && j->block != NULL ? j : NULL;
}

/* Gives blocks their places. */
static void place_blocks(tfw_encoder *e) {
    for (job *j; e->wanted == 0 && (j = joinable(e)) != NULL;) {
        const size_t end = e->gathered + j->block->end;
        if (end > e->capacity) {
            e->wanted = end;
            return;
        }
        j->place = e->gathered;
        j->state = JOB_PLACED;
        e->gathered = end;
        e->uncopied++;
        e->joined += is_last_block(j);
    }
}

/* Does what comes next, without the lock meanwhile; false: there is nothing to do. */
static bool encode_or_join(tfw_encoder *e) {
    job *to_copy = e->uncopied != 0 ? find_job(e, JOB_PLACED) : NULL;
    job *to_encode = to_copy == NULL ? find_job(e, JOB_READY) : NULL;
    if (e->is_over) {
        return false;
    }
    if (to_copy == NULL && to_encode == NULL) {
        if (!may_open(e)) {
            return false;
        }
        to_encode = open_job(e);
    }
    e->busy++;
    if (to_copy != NULL) {
        copy_job(e, to_copy);
    } else {
        encode_job(e, to_encode);
    }
    e->busy--;
    if (e->offsets != NULL) {
        place_blocks(e);
    }
    tfwi_condition_broadcast(&e->work);
    tfwi_condition_signal(&e->ready);
    return true;
}

static void run_encoder(void *argument) {
    tfw_encoder *e = argument;
    tfwi_mutex_lock(&e->lock);
    while (!e->is_freed) {
        if (!encode_or_join(e)) {
            tfwi_condition_wait(&e->work, &e->lock);
        }
    }
    tfwi_mutex_unlock(&e->lock);
}

/* Starts as many other threads as there is enough to do for, once that is known; fewer, where the
 * system has no more. */
static void start_threads(tfw_encoder *e) {
    const uint64_t worth = e->range_bytes != 0 ? e->num_threads
                           : e->encoded_records != 0 ? expected_bytes(e, 0) / WORTH_A_THREAD : 0;
    while (e->started + 1 < e->num_threads && e->started + 1 < worth) {
        if (!tfwi_thread_start(&e->threads[e->started], run_encoder, e)) {
            e->num_threads = e->started + 1;
            return;
        }
        e->started++;
    }
}

/* ---- Delivery ------------------------------------------------------------------------------- */

static int deliver_job(tfw_encoder *e, job *j, tfw_chunk **out_chunk, tfw_error *error) {
    *out_chunk = tfwi_chunk_of(j->block);
    if (*out_chunk == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a block of messages");
    }
    e->joined += is_last_block(j);
    leave_block(e, j);
    tfwi_condition_broadcast(&e->work);
    return TFW_OK;
}

static int want_space(tfw_encoder *e, tfw_error *error) {
    const size_t first = (size_t)job_at(e, e->joined)->block->runs.of[0].end.record;
    const uint64_t rest = expected_bytes(e, first);
    tfwi_fail(error, TFW_NEED_SPACE, "the messages need more room");
    TFWI_SET(error, found, tfwi_saturated(e->gathered));
    TFWI_SET(error, expected, tfwi_saturated(e->wanted));
    TFWI_SET(error, offset, tfwi_saturated(e->wanted + rest + rest / 16));
    return TFW_NEED_SPACE;
}

/* What tfw_encoder_next returns now; TFW_NEED_INPUT: it is not known yet. */
static int deliver_encoded(tfw_encoder *e, tfw_chunk **out_chunk, tfw_error *error) {
    job *j = job_at(e, e->joined);
    const bool is_joinable = e->joined < e->opened && j->state == JOB_ENCODED;
    if (e->next == e->records && e->active == 0) {
        return TFW_END;
    }
    if (is_joinable && j->block == NULL) {
        e->is_over = true; /* the inputs are not read any more when this is known */
        if (e->busy == 0 && error != NULL) {
            *error = j->error;
        }
        return e->busy == 0 ? j->status : TFW_NEED_INPUT;
    }
    if (e->offsets != NULL) {
        return e->wanted != 0 && e->uncopied == 0 ? want_space(e, error) : TFW_NEED_INPUT;
    }
    return is_joinable ? deliver_job(e, j, out_chunk, error) : TFW_NEED_INPUT;
}

static int of_parent(tfw_error *error) {
    return tfwi_fail(error, TFW_E_UNSUPPORTED, "the encoder is of the parent process");
}

int tfw_encoder_next(tfw_encoder *e, int32_t timeout_ms, tfw_chunk **out_chunk, tfw_error *error) {
    *out_chunk = NULL;
    if (tfwi_process() != e->process) {
        return of_parent(error);
    }
    const uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : tfwi_clock() + (uint64_t)timeout_ms;
    tfwi_mutex_lock(&e->lock);
    int status = deliver_encoded(e, out_chunk, error);
    while (status == TFW_NEED_INPUT) {
        start_threads(e);
        if (!encode_or_join(e)) {
            if (timeout_ms < 0) {
                tfwi_condition_wait(&e->ready, &e->lock);
            } else {
                tfwi_condition_wait_until(&e->ready, &e->lock, deadline);
            }
        }
        status = deliver_encoded(e, out_chunk, error);
        if (status == TFW_NEED_INPUT && timeout_ms >= 0 && tfwi_clock() >= deadline) {
            break;
        }
    }
    tfwi_mutex_unlock(&e->lock);
    return status;
}

/* ---- What is encoded ------------------------------------------------------------------------ */

/* Drops all jobs; nothing is begun until is_over is false. With the lock. */
static void drop_jobs(tfw_encoder *e) {
    e->is_over = true;
    while (e->busy != 0) {
        tfwi_condition_wait(&e->ready, &e->lock);
    }
    for (size_t i = 0; i < e->ring; i++) {
        tfwi_block_release(e->jobs[i].block);
        e->jobs[i] = (job){0};
    }
    e->next = e->records = e->active = e->uncopied = e->gathered = e->wanted = e->capacity = 0;
    e->opened = e->joined = e->encoded_bytes = e->encoded_records = 0;
    e->offsets = NULL;
    e->out = NULL;
}

int tfw_encoder_begin(tfw_encoder *e, const tfw_input *inputs, size_t input_count, uint64_t records,
                      int64_t *out_offsets, tfw_error *error) {
    if (tfwi_process() != e->process) {
        return of_parent(error);
    }
    if (records > SIZE_MAX / 16) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more records than memory can hold");
    }
    tfwi_mutex_lock(&e->lock);
    drop_jobs(e);
    e->inputs = inputs;
    e->input_count = input_count;
    e->records = (size_t)records;
    e->offsets = out_offsets;
    e->is_over = false;
    tfwi_mutex_unlock(&e->lock);
    if (out_offsets != NULL) {
        out_offsets[0] = 0;
    }
    return TFW_OK;
}

void tfw_encoder_room(tfw_encoder *e, uint8_t *out, size_t capacity) {
    if (tfwi_process() != e->process) {
        return;
    }
    tfwi_mutex_lock(&e->lock);
    e->out = out;
    e->capacity = capacity;
    e->wanted = 0;
    place_blocks(e);
    tfwi_condition_broadcast(&e->work);
    tfwi_mutex_unlock(&e->lock);
}

int tfw_encoder_take(tfw_encoder *e, tfw_chunk **out_chunk, tfw_error *error) {
    *out_chunk = NULL;
    if (tfwi_process() != e->process) {
        return of_parent(error);
    }
    tfwi_block *block = tfwi_block_take(e->pool);
    if (block != NULL && (*out_chunk = tfwi_chunk_of(block)) == NULL) {
        tfwi_block_release(block);
    }
    return *out_chunk != NULL ? TFW_OK
                              : tfwi_fail(error, TFW_E_MEMORY, "no memory for a block of messages");
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void free_encoder(tfw_encoder *e) {
    if (e->pool != NULL) {
        tfwi_pool_leave(e->pool, 0);
    }
    tfw_free(e->threads);
    tfw_free(e->jobs);
    tfw_free(e);
}

int tfw_encoder_create(const tfw_encoder_options *o, tfw_encoder **out_encoder, tfw_error *error) {
    static const tfw_schema *const no_schemas[2];
    *out_encoder = NULL;
    if (o == NULL || o->size != sizeof *o) {
        return tfwi_fail(error, TFW_E_ARGUMENT,
                         "options->size is not sizeof(tfw_encoder_options)");
    }
    if (o->num_threads == 0 || o->num_threads > MOST_ENCODERS || o->range_bytes > INT32_MAX) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible num_threads or range_bytes");
    }
    const int status = tfwi_check_flags(o->flags, TFW_ENCODE_FRAMED, error);
    if (status != TFW_OK) {
        return status;
    }
    tfw_encoder *e = tfwi_calloc(1, sizeof *e);
    if (e == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for an encoder");
    }
    e->process = tfwi_process();
    e->num_threads = o->num_threads;
    e->range_bytes = o->range_bytes;
    e->flags = o->flags;
    e->ring = e->num_threads + 2;
    e->jobs = tfwi_calloc(e->ring, sizeof *e->jobs);
    e->threads = tfwi_calloc(e->num_threads, sizeof *e->threads);
    e->pool = tfwi_pool_take(no_schemas, 0, 0, 0);
    if (e->jobs == NULL || e->threads == NULL || e->pool == NULL ||
        !tfwi_locks_init(&e->lock, &e->work, &e->ready)) {
        free_encoder(e);
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for an encoder");
    }
    *out_encoder = e;
    return TFW_OK;
}

void tfw_encoder_free(tfw_encoder *e) {
    if (e == NULL || tfwi_process() != e->process) {
        return;
    }
    tfwi_mutex_lock(&e->lock);
    e->is_freed = true;
    drop_jobs(e);
    tfwi_condition_broadcast(&e->work);
    tfwi_mutex_unlock(&e->lock);
    for (size_t i = 0; i < e->started; i++) {
        tfwi_thread_join(&e->threads[i]);
    }
    tfwi_condition_destroy(&e->ready);
    tfwi_condition_destroy(&e->work);
    tfwi_mutex_destroy(&e->lock);
    free_encoder(e);
}
