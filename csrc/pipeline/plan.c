/* SPDX-License-Identifier: Apache-2.0 */
/* Which range is read next. One thread at a time decides that, and opens the files.
 *
 * A range is one of three. Chained: it begins where all before it have ended, and nothing else is
 * read meanwhile. The first range is, so that small files need no threads; all are with one thread,
 * and where guesses have failed. Walked: records are so long that reading all headers costs little;
 * so ranges of whole batches are known. Guessed: a part of a file, or several small files. */
#include "pipeline/pipeline.h"

#include "base/system.h"
#include "records/frame.h"
#include "records/read_at.h"
#include "records/walk.h"

enum {
    /* Bytes of a range: its columns stay in the second cache. Larger ones copy fewer rows of
     * batches that span two, but take longer. */
    RANGE = 1 << 20,
    COLUMN = 1 << 15,  /* more for each column: taking it takes as long as reading so much */
    MOST_COLUMNS = 96, /* that count */
    LONG_RECORD = 1 << 13, /* bytes from which on headers are walked over */
    MOST_WALKED = 1 << 24, /* bytes of a range of one batch */
    MOST_ROUNDED = 8,      /* times the bytes of a range: for one batch at most */
    MOST_SEGMENTS = 256,
    HEADERS = 256, /* walked over at a time */
    LEAPS = 256    /* records of a range where only headers are read: more than a guess costs */
};

/* What a range is planned by, as it is while the pipeline is locked. */
typedef struct target {
    uint64_t bytes;
    double mean;
    double margin; /* rows before the end of a batch to aim at */
    bool is_chained;
    bool is_walked;
} target;

/* ---- Files ---------------------------------------------------------------------------------- */

void tfwi_source_use(tfwi_source *source) { source->uses++; }

void tfwi_source_release(tfwi_source *source) {
    if (source != NULL && --source->uses == 0) {
        tfwi_system_close(source->fd);
        tfw_free(source);
    }
}

/* The path of the next file, for files may be added meanwhile; false: there is none. */
static bool next_path(tfw_pipeline *p, const char **out_path) {
    tfwi_mutex_lock(&p->lock);
    const bool is_there = p->next.file < p->paths.count;
    *out_path = is_there ? p->paths.of[p->next.file] : NULL;
    tfwi_mutex_unlock(&p->lock);
    return is_there;
}

static int open_source(tfw_pipeline *p, tfw_error *error) {
    const char *path;
    if (!next_path(p, &path)) {
        return TFW_END;
    }
    if (path == NULL) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED, "a file without a path");
    }
    tfwi_source *source = tfwi_calloc(1, sizeof *source);
    if (source == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    int status = tfwi_open_file(path, &source->fd, error);
    if (status == TFW_OK && !tfwi_system_size(source->fd, &source->size)) {
        tfwi_system_close(source->fd);
        status = tfwi_fail(error, TFW_E_UNSUPPORTED, "not a regular file");
    }
    if (status != TFW_OK) {
        tfw_free(source);
        return status;
    }
    source->number = p->next.file;
    source->serial = ++p->last_serial;
    source->uses = 1;
    p->source = source;
    return TFW_OK;
}

/* Whether the file whose end has been reached has got longer since. */
static bool has_grown(const tfw_pipeline *p) {
    uint64_t size = 0;
    if (!tfwi_system_size(p->source->fd, &size) || size <= p->next.offset) {
        return false;
    }
    p->source->size = size;
    return true;
}

int tfwi_plan_source(tfw_pipeline *p, tfw_error *error) {
    for (;;) {
        const int status = p->source != NULL ? TFW_OK : open_source(p, error);
        if (status != TFW_OK || p->next.offset < p->source->size || has_grown(p)) {
            return status;
        }
        tfwi_mutex_lock(&p->lock);
        tfwi_source_release(p->source);
        tfwi_mutex_unlock(&p->lock);
        p->source = NULL;
        p->next = (tfw_place){.file = p->next.file + 1};
        p->is_next_known = true;
    }
}

/* ---- Segments ------------------------------------------------------------------------------- */

/* Adds what lies between next and an offset of its file. */
static bool add_segment(tfw_pipeline *p, tfwi_range *r, uint64_t limit) {
    if (!TFWI_RESERVE_MORE(r->segments, 1)) {
        return false;
    }
    tfwi_mutex_lock(&p->lock);
    tfwi_source_use(p->source);
    tfwi_mutex_unlock(&p->lock);
    if (r->segments.count == 0) {
        r->is_known = p->is_next_known;
        r->at = p->next;
    }
    r->segments.of[r->segments.count++] =
        (tfwi_segment){p->source, p->next.offset, limit, p->source->size, p->next.record};
    return true;
}

/* How many bytes to plan, about as many as are wanted: up to where a batch is foreseen to end. Few
 * rows are copied when a range begins just before that, and all of a batch when it begins after. */
static uint64_t bytes_to_batch(const tfw_pipeline *p, const target *aim) {
    if (p->batch_size == 0 || aim->mean == 0) {
        return aim->bytes;
    }
    const double batch = (double)p->batch_size, wanted = (double)aim->bytes;
    const double row = (double)(p->next_row % p->batch_size) + aim->margin;
    double batches = (double)(uint64_t)((row + wanted / aim->mean) / batch + 0.5);
    if ((batches * batch - row) * aim->mean < wanted / 2) {
        batches += 1;
    }
    const double bytes = (batches * batch - row) * aim->mean;
    return bytes < wanted * MOST_ROUNDED ? (uint64_t)bytes : aim->bytes;
}

/* A part of a file, or several files. */
static int plan_guess(tfw_pipeline *p, tfwi_range *r, const target *aim, tfw_error *error) {
    const uint64_t wanted = bytes_to_batch(p, aim);
    uint64_t bytes = 0;
    int status = TFW_OK;
    while (bytes < wanted && r->segments.count < MOST_SEGMENTS &&
           (status = tfwi_plan_source(p, error)) == TFW_OK) {
        const uint64_t left = p->source->size - p->next.offset, room = wanted - bytes;
        const uint64_t taken = left <= room + room / 2 ? left : room;
        if (!add_segment(p, r, p->next.offset + taken)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
        p->next.offset += taken;
        p->is_next_known = false; /* until the file ends there */
        p->is_row_known = false;
        bytes += taken;
        if (!r->is_known) {
            break;
        }
    }
    p->next_row += aim->mean != 0 ? (uint64_t)((double)bytes / aim->mean + 0.5) : 0;
    return status;
}

/* Walks over headers until a batch ends, or where there are none, over most bytes or one record
 * more; *out_bytes are those of the records. False: no further than the damage there. */
static bool walk(tfw_pipeline *p, tfwi_worker *w, uint64_t most, uint64_t mean,
                 uint64_t *out_bytes) {
    const uint64_t from = p->next.offset;
    size_t count = 0;
    int status = TFW_OK;
    *out_bytes = 0;
    while (status == TFW_OK && *out_bytes < most && !p->is_cancelled) {
        const uint64_t missing = p->batch_size != 0
                                     ? p->batch_size - p->next_row % p->batch_size
                                     : (most - *out_bytes) / mean + 1;
        status = tfw_walk(p->source->fd, p->source->size, &p->next.offset, w->stretch.buffer,
                          w->stretch.capacity, w->offsets.of,
                          missing < HEADERS ? (size_t)missing : HEADERS, &count, NULL);
        p->next.record += count;
        p->next_row += count;
        *out_bytes = p->next.offset - from;
        if (p->batch_size != 0 && p->next_row % p->batch_size == 0 && count == missing) {
            break;
        }
    }
    return status >= 0;
}

/* Whole batches, of records found by their headers. */
static int plan_walk(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r, const target *aim,
                     tfw_error *error) {
    uint64_t bytes = 0;
    int status = TFW_OK;
    tfwi_bytes buffer = {.of = w->stretch.buffer, .capacity = w->stretch.capacity};
    w->serial = 0;
    if (!TFWI_RESERVE(buffer, 1 << 17) || !TFWI_RESERVE(w->offsets, HEADERS)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    w->stretch.buffer = buffer.of;
    w->stretch.capacity = buffer.capacity;
    const uint64_t most = p->batch_size != 0 && aim->bytes < MOST_WALKED ? MOST_WALKED
                                                                          : aim->bytes;
    do {
        status = tfwi_plan_source(p, error);
        if (status != TFW_OK) {
            return status;
        }
        const tfw_place from = p->next;
        uint64_t more = 0;
        p->is_unusual = !walk(p, w, most - bytes, (uint64_t)aim->mean, &more);
        const tfw_place to = p->next;
        p->next = from;
        if (more != 0 && !add_segment(p, r, to.offset)) {
            return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
        }
        p->next = to;
        bytes += more;
    } while (!p->is_unusual && !p->is_cancelled && r->segments.count < MOST_SEGMENTS &&
             bytes < most &&
             (bytes < aim->bytes || (p->batch_size != 0 && p->next_row % p->batch_size != 0)));
    return TFW_OK;
}

/* ---- Opening -------------------------------------------------------------------------------- */

static bool is_chained(const tfw_pipeline *p) {
    return p->num_threads == 1 || p->opened == 0 || p->is_unusual ||
           p->chained_file == p->next.file;
}

static bool is_walked(const tfw_pipeline *p) {
    return p->mode != TFW_PIPELINE_OFFSETS && p->mean >= LONG_RECORD;
}

/* Whether all before must be known first. */
static bool must_be_known(const tfw_pipeline *p) {
    return is_chained(p) || (is_walked(p) && !(p->is_next_known && p->is_row_known));
}

bool tfwi_plan_has_room(const tfw_pipeline *p) {
    const uint64_t first = p->first_chunk != NULL ? p->first_chunk->range : p->linked;
    return p->opened - first < p->ring;
}

bool tfwi_plan_may_open(const tfw_pipeline *p) {
    return !p->is_opening && p->pushing == NOT_PUSHING && !p->has_ended && !p->has_failed &&
           tfwi_plan_has_room(p) && (p->opened == p->linked || !must_be_known(p));
}

/* The bytes of a range, unless something else was asked for. */
static uint64_t usual_range(const tfw_pipeline *p) {
    uint64_t columns = 0;
    for (int i = 0; i < 2; i++) {
        columns += p->pools[0]->schemas[i] != NULL ? p->pools[0]->schemas[i]->count : 0;
    }
    return RANGE + COLUMN * (columns < MOST_COLUMNS ? columns : MOST_COLUMNS);
}

static target make_target(const tfw_pipeline *p) {
    uint64_t bytes = p->range_bytes != 0 ? p->range_bytes : usual_range(p);
    if (p->mode == TFW_PIPELINE_OFFSETS && p->mean >= TFWI_LEAPT_RECORD &&
        (double)bytes < p->mean * LEAPS) {
        bytes = (uint64_t)(p->mean * LEAPS);
    }
    const double most = (double)p->batch_size / 2, margin = 2 + 2 * p->deviation;
    return (target){bytes, p->mean, margin < most ? margin : most, is_chained(p), is_walked(p)};
}

/* Begins to open a range where all before it have ended. */
static void go_to_end(tfw_pipeline *p) {
    if (p->place.file == p->next.file) {
        p->next = p->place;
    }
    p->is_next_known = p->is_row_known = true;
    p->next_row = p->rest_rows;
    p->row_error = 0;
}

/* Takes into account what became of the ranges before. */
static void correct_row(tfw_pipeline *p) {
    if (p->batch_size != 0) {
        const int64_t batch = (int64_t)p->batch_size;
        p->next_row += (uint64_t)(p->row_error % batch + batch);
        p->row_error = 0;
    }
}

static void plan_range(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r, const target *aim) {
    r->row = p->next_row;
    int status = aim->is_walked && p->is_row_known ? plan_walk(p, w, r, aim, &r->error)
                                                     : plan_guess(p, r, aim, &r->error);
    r->rows = p->next_row - r->row;
    if (status < 0 && r->segments.count == 0) {
        r->at = p->next;
        r->status = status;
        r->next = (tfw_place){.file = p->next.file};
    }
}

void tfwi_plan_open(tfw_pipeline *p, tfwi_worker *w) {
    if (p->opened == p->linked) {
        go_to_end(p);
    } else {
        correct_row(p);
    }
    tfwi_range *r = &p->ranges[p->opened % p->ring];
    const target aim = make_target(p);
    const bool notes_offsets = /* files may be added while several threads read the last one */
        p->num_threads != 1 || p->rest_rows != 0 ||
        (p->flags & (TFW_PIPELINE_KEEP_REST | TFW_PIPELINE_POSITIONS)) != 0;
    tfwi_range_begin(r);
    r->is_chained = aim.is_chained;
    p->is_opening = true;
    p->is_unusual = false;
    if (aim.is_chained) {
        p->opened++;
    }
    tfwi_mutex_unlock(&p->lock);
    if (aim.is_chained) {
        tfwi_range_read_chained(p, w, r, aim.bytes, aim.mean, notes_offsets);
    } else {
        plan_range(p, w, r, &aim);
    }
    const bool is_empty = !aim.is_chained && r->segments.count == 0 && r->status == TFW_OK;
    tfw_error ignored;
    const bool has_ended = r->status == TFW_OK && (aim.is_chained || is_empty) && !p->is_unusual &&
                           tfwi_plan_source(p, &ignored) == TFW_END;
    tfwi_mutex_lock(&p->lock);
    p->is_opening = false;
    p->has_ended = has_ended && p->next.file >= p->paths.count;
    if (!aim.is_chained && !is_empty) {
        p->opened++;
    }
    r->state = RANGE_READ;
    if (r->segments.count != 0) {
        r->state = RANGE_BUSY;
        tfwi_condition_signal(&p->work);
        tfwi_mutex_unlock(&p->lock);
        tfwi_range_read(p, w, r);
        tfwi_mutex_lock(&p->lock);
        r->state = RANGE_READ;
    }
}
