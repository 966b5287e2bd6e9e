/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline of threads: its life, and what each thread does next.
 *
 *     files -> ranges -> links -> rows of batches -> chunks
 *              plan.c, read_range.c    links.c            chunk.c
 *
 * All threads do the same: join a chunk, read a range again, or open the next one. The caller of
 * tfw_pipeline_next does so while it waits; where it is the only thread, it does all. */
#include "pipeline/pipeline.h"

enum {
    MOST_THREADS = 1024,
    WORTH_THREADS = 1 << 20, /* bytes after which others are started */
    PARSE_FLAGS = TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE,
    PARSE_ONLY = PARSE_FLAGS | (int)TFW_PIPELINE_NOTE_ABSENT | (int)TFW_PIPELINE_POSITIONS |
                 (int)TFW_PIPELINE_GIVEN | (int)TFW_PIPELINE_NOTE_UNKNOWN,
    PIPELINE_FLAGS = PARSE_ONLY | (int)TFW_PIPELINE_NO_DATA_CRC | (int)TFW_PIPELINE_KEEP_REST |
                     (int)TFW_PIPELINE_TALLY
};

/* ---- Creation ------------------------------------------------------------------------------- */

static int check_mode(const tfw_pipeline_options *o, tfw_error *error) {
    const bool sequence = (o->flags & TFW_SEQUENCE) != 0;
    if (o->mode > TFW_PIPELINE_OFFSETS) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "unknown mode");
    }
    if ((o->flags & TFW_PIPELINE_TALLY) != 0 && o->mode >= TFW_PIPELINE_SPANS) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "nothing is added up");
    }
    if (o->select != NULL && (o->mode != TFW_PIPELINE_SPANS || o->indexed != NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "nothing is selected");
    }
    if (o->mode != TFW_PIPELINE_PARSE) {
        return o->context != NULL || o->lists != NULL || o->batch_size != 0 ||
                       (o->flags & PARSE_ONLY) != 0
                   ? tfwi_fail(error, TFW_E_ARGUMENT, "nothing is parsed")
                   : TFW_OK;
    }
    if (o->batch_size == 0 || o->batch_size > SIZE_MAX / 2) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible batch_size");
    }
    if (sequence ? o->context == NULL && o->lists == NULL
                 : o->context == NULL || o->lists != NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "schemas other than the flags say");
    }
    return TFW_OK;
}

static int check_pipeline_options(const tfw_pipeline_options *o, tfw_error *error) {
    if (o == NULL || o->size != sizeof *o) {
        return tfwi_fail(error, TFW_E_ARGUMENT,
                         "options->size is not sizeof(tfw_pipeline_options)");
    }
    if (o->num_threads == 0 || o->num_threads > MOST_THREADS || o->reserved != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible num_threads, or reserved is not 0");
    }
    if (o->path_count > TFWI_MOST_PATHS || o->start.offset > INT64_MAX ||
        o->start.record > SIZE_MAX / 2 || o->range_bytes > INT64_MAX) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a start or range_bytes that is too large");
    }
    int status = tfwi_check_flags(o->flags, PIPELINE_FLAGS, error);
    return status == TFW_OK ? check_mode(o, error) : status;
}

/* The locks are there when it returns true. */
static bool init_pipeline(tfw_pipeline *p, const tfw_pipeline_options *o) {
    const tfw_schema *const schemas[2] = {o->context, o->lists};
    p->process = tfwi_process();
    p->batch_size = o->batch_size;
    p->max_record_size = o->max_record_size;
    p->range_bytes = o->range_bytes;
    p->num_threads = o->num_threads;
    p->mode = o->mode;
    p->flags = o->flags;
    p->select = o->select;
    p->wanted = o->wanted;
    p->ring = p->num_threads + 2;
    p->place = p->next = o->start;
    p->chained_file = UINT64_MAX;
    p->workers = tfwi_calloc(p->num_threads, sizeof *p->workers);
    p->ranges = tfwi_calloc(p->ring, sizeof *p->ranges);
    if (!tfwi_pipeline_add_paths(p, o->paths, o->path_count) || p->workers == NULL ||
        p->ranges == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->num_threads; i++) {
        p->workers[i].pipeline = p;
    }
    const unsigned flags = ((o->flags & TFW_PIPELINE_NOTE_ABSENT) != 0 ? TFW_NOTE_ABSENT : 0) |
                           ((o->flags & TFW_PIPELINE_NOTE_UNKNOWN) != 0 ? TFW_NOTE_UNKNOWN : 0);
    for (size_t i = 0; i < 2; i++) {
        p->pools[i] = tfwi_pool_take(schemas, i, flags, p->ring + 3);
    }
    return p->pools[0] != NULL && p->pools[1] != NULL &&
           tfwi_locks_init(&p->lock, &p->work, &p->ready);
}

static void free_parts(tfw_pipeline *p) {
    for (size_t i = 0; i < p->paths.count; i++) {
        tfw_free(p->paths.of[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        tfwi_unknown_clear(&p->unknown[i]);
        if (p->pools[i] != NULL) {
            tfwi_pool_leave(p->pools[i], i);
        }
    }
    for (size_t i = 0; i < p->indexed.count; i++) {
        tfw_cache_free(p->indexed.of[i].file.cache);
    }
    tfw_free(p->indexed.of);
    tfw_free(p->paths.of);
    tfw_free(p->workers);
    tfw_free(p->ranges);
    tfw_free(p);
}

int tfw_pipeline_create(const tfw_pipeline_options *options, tfw_pipeline **out_pipeline,
                        tfw_error *error) {
    *out_pipeline = NULL;
    int status = check_pipeline_options(options, error);
    if (status != TFW_OK) {
        return status;
    }
    tfw_pipeline *p = tfwi_calloc(1, sizeof *p);
    if (p == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a pipeline");
    }
    status = tfwi_orders_init(p, options, error);
    if (status == TFW_OK && !init_pipeline(p, options)) {
        status = tfwi_fail(error, TFW_E_MEMORY, "no memory for a pipeline");
    }
    if (status != TFW_OK) {
        free_parts(p);
        return status;
    }
    *out_pipeline = p;
    return TFW_OK;
}

/* ---- Work ----------------------------------------------------------------------------------- */

/* The first chunk that is to be joined, or NULL; none while another is, as they may share a
 * block. */
static tfw_chunk *find_chunk(const tfw_pipeline *p) {
    tfw_chunk *chunk = p->first_chunk;
    while (chunk != NULL && chunk->state == CHUNK_READY) {
        chunk = chunk->next;
    }
    return chunk != NULL && chunk->state == CHUNK_SPLIT ? chunk : NULL;
}

static tfwi_range *find_range(const tfw_pipeline *p) {
    for (uint64_t i = p->linked; i < p->opened; i++) {
        tfwi_range *r = &p->ranges[i % p->ring];
        if (r->state == RANGE_READY) {
            return r;
        }
    }
    return NULL;
}

static void join_chunk(tfw_pipeline *p, tfw_chunk *chunk) {
    chunk->state = CHUNK_BUSY;
    tfwi_mutex_unlock(&p->lock);
    const int status =
        tfwi_chunk_join(chunk, p->pools, (p->flags & TFW_PIPELINE_POSITIONS) != 0);
    tfwi_mutex_lock(&p->lock);
    chunk->state = CHUNK_READY;
    chunk->status = status;
}

static void read_range(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r) {
    r->state = RANGE_BUSY;
    tfwi_mutex_unlock(&p->lock);
    if (p->is_ordered) {
        tfwi_fetch_range(p, w, r);
    } else {
        tfwi_range_read(p, w, r);
    }
    tfwi_mutex_lock(&p->lock);
    r->state = RANGE_READ;
}

/* Does what comes next, without the lock meanwhile; false: there is nothing to do. */
static bool work(tfw_pipeline *p, tfwi_worker *w) {
    tfw_chunk *chunk = find_chunk(p);
    tfwi_range *r = find_range(p);
    if (chunk == NULL && (r == NULL || p->has_failed) && !tfwi_plan_may_open(p)) {
        return false;
    }
    p->busy++;
    if (chunk != NULL) {
        join_chunk(p, chunk);
    } else if (r != NULL) {
        read_range(p, w, r);
    } else {
        tfwi_plan_open(p, w);
    }
    p->busy--;
    tfwi_links_advance(p);
    tfwi_condition_signal(&p->work); /* who finds something to do wakes the next one */
    tfwi_condition_broadcast(&p->ready);
    return true;
}

static void run_worker(void *argument) {
    tfwi_worker *w = argument;
    tfw_pipeline *p = w->pipeline;
    tfwi_mutex_lock(&p->lock);
    while (!p->is_cancelled) {
        if (!work(p, w)) {
            tfwi_condition_wait(&p->work, &p->lock);
        }
    }
    tfwi_mutex_unlock(&p->lock);
}

void tfwi_pipeline_start(tfw_pipeline *p) {
    const uint64_t least = p->range_bytes != 0 && p->range_bytes < WORTH_THREADS ? p->range_bytes
                                                                                 : WORTH_THREADS;
    const bool has_little = p->is_ordered               ? p->opened < 2
                            : p->pushing != NOT_PUSHING ? p->opened - p->linked < 2
                                                        : p->bytes_read < least || p->has_ended;
    if (p->was_started || has_little || p->num_threads == 1) {
        return;
    }
    p->was_started = true;
    if (p->process != tfwi_process()) { /* others read it without the lock */
        p->process = tfwi_process();
    }
    tfwi_pool_share(p->pools[0]);
    tfwi_pool_share(p->pools[1]);
    while (p->started + 1 < p->num_threads) {
        tfwi_worker *w = &p->workers[p->started + 1];
        if (!tfwi_thread_start(&w->thread, run_worker, w)) {
            break;
        }
        p->started++;
    }
}

/* ---- Entering ------------------------------------------------------------------------------ */

/* Whether this is a forked child, which has not the threads that this pipeline needs. */
static bool is_of_parent(const tfw_pipeline *p) {
    return tfwi_process() != p->process && (p->was_started || p->is_inside);
}

int tfwi_pipeline_enter(tfw_pipeline *p, tfw_error *error) {
    if (is_of_parent(p)) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED, "the pipeline is of the parent process");
    }
    p->is_inside = true;
    tfwi_mutex_lock(&p->lock);
    return TFW_OK;
}

void tfwi_pipeline_leave(tfw_pipeline *p) {
    tfwi_mutex_unlock(&p->lock);
    p->is_inside = false;
}

/* ---- Delivery ------------------------------------------------------------------------------- */

/* What tfw_pipeline_next returns now; TFW_NEED_INPUT: it is not known yet. */
static int deliver_next(tfw_pipeline *p, tfw_chunk **out_chunk, tfw_error *error) {
    tfw_chunk *chunk = p->first_chunk;
    if (p->is_cancelled) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the pipeline was cancelled");
    }
    if (chunk != NULL) {
        if (chunk->state != CHUNK_READY) {
            return TFW_NEED_INPUT;
        }
        if (chunk->status != TFW_OK) {
            return tfwi_fail(error, chunk->status, "out of memory");
        }
        p->first_chunk = chunk->next;
        p->last_chunk = p->first_chunk != NULL ? p->last_chunk : NULL;
        chunk->next = NULL;
        p->delivered = chunk->end;
        tfwi_condition_signal(&p->work); /* there is room in the ring */
        *out_chunk = chunk;
        return TFW_OK;
    }
    if (!p->has_failed && !(p->has_ended && p->linked == p->opened)) {
        return TFW_NEED_INPUT;
    }
    if (p->was_told && p->rest_rows != 0 && !p->is_final) {
        tfwi_links_deliver_rest(p);
        return deliver_next(p, out_chunk, error);
    }
    p->was_told = true;
    if (!p->has_failed) {
        return TFW_END;
    }
    if (error != NULL) {
        *error = p->error;
    }
    return p->status;
}

/* Whether nothing comes before somebody pushes or seeks. */
static bool is_drained(const tfw_pipeline *p) {
    return p->pushing == PUSHING_AFTER_STOP && p->linked == p->opened && p->first_chunk == NULL;
}

/* Does something, or waits for those who do. */
static void work_or_wait(tfw_pipeline *p, int32_t timeout_ms, uint64_t deadline) {
    tfwi_pipeline_start(p);
    if (work(p, &p->workers[0]) || tfwi_push_end_range(p)) {
        return;
    }
    if (timeout_ms < 0) {
        tfwi_condition_wait(&p->ready, &p->lock);
    } else {
        tfwi_condition_wait_until(&p->ready, &p->lock, deadline);
    }
}

int tfw_pipeline_next(tfw_pipeline *p, int32_t timeout_ms, tfw_chunk **out_chunk,
                      tfw_error *error) {
    *out_chunk = NULL;
    int status = tfwi_pipeline_enter(p, error);
    if (status != TFW_OK) {
        return status;
    }
    const uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : tfwi_clock() + (uint64_t)timeout_ms;
    status = deliver_next(p, out_chunk, error);
    while (status == TFW_NEED_INPUT && !is_drained(p)) {
        work_or_wait(p, timeout_ms, deadline);
        status = deliver_next(p, out_chunk, error);
        if (status == TFW_NEED_INPUT && timeout_ms >= 0 && tfwi_clock() >= deadline) {
            break;
        }
    }
    tfwi_pipeline_leave(p);
    return status;
}

/* ---- Keys that are not asked for ------------------------------------------------------------ */

static bool is_delivered(const tfw_pipeline *p, const tfw_place *place) {
    return place->file != p->delivered.file ? place->file < p->delivered.file
                                            : place->record < p->delivered.record;
}

int tfw_pipeline_unknown(tfw_pipeline *p, size_t i, tfw_unknown *out) {
    *out = (tfw_unknown){0};
    int status = tfwi_pipeline_enter(p, NULL);
    if (status != TFW_OK) {
        return status;
    }
    status = TFW_END;
    for (int part = 0; part < 2 && status == TFW_END; part++) {
        const tfwi_unknown *u = &p->unknown[part];
        size_t count = 0;
        while (count < u->count && is_delivered(p, &p->unknown_at[part][count])) {
            count++;
        }
        if (i < count) {
            const tfwi_unknown_key *key = &u->of[i];
            *out = (tfw_unknown){key->key.name, key->key.len, p->unknown_at[part][i],
                                 key->is_list, u->has_more && i + 1 == u->count};
            status = TFW_OK;
        }
        i -= count;
    }
    tfwi_pipeline_leave(p);
    return status;
}

/* ---- The end -------------------------------------------------------------------------------- */

void tfw_pipeline_cancel(tfw_pipeline *p) {
    if (!is_of_parent(p)) {
        tfwi_mutex_lock(&p->lock);
        p->is_cancelled = true;
        tfwi_condition_broadcast(&p->work);
        tfwi_condition_broadcast(&p->ready);
        tfwi_mutex_unlock(&p->lock);
    }
}

void tfw_pipeline_free(tfw_pipeline *p) {
    if (p == NULL || is_of_parent(p)) {
        return;
    }
    tfw_pipeline_cancel(p);
    for (size_t i = 0; i < p->started; i++) {
        tfwi_thread_join(&p->workers[i + 1].thread);
    }
    for (size_t i = 0; i < p->ring; i++) {
        tfwi_range_free(&p->ranges[i]);
    }
    for (size_t i = 0; i < p->num_threads; i++) {
        tfw_free(p->workers[i].stretch.buffer);
        tfw_free(p->workers[i].offsets.of);
        tfw_free(p->workers[i].wanted.of);
        tfw_free(p->workers[i].keys.of);
        tfw_free(p->workers[i].records.of);
        tfw_free(p->workers[i].spans.of);
    }
    for (tfw_chunk *chunk = p->first_chunk, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        tfw_chunk_release(chunk);
    }
    for (size_t i = 0; i < p->rest.count; i++) {
        tfwi_block_release(p->rest.of[i].block);
    }
    tfw_free(p->rest.of);
    tfw_free(p->misfit.of);
    tfwi_source_release(p->source);
    tfwi_condition_destroy(&p->work);
    tfwi_condition_destroy(&p->ready);
    tfwi_mutex_destroy(&p->lock);
    free_parts(p);
}
