/* SPDX-License-Identifier: Apache-2.0 */
/* What comes after a stop, or after the end: another place to read on from, records that somebody
 * else has read (push.c has them), more files. */
#include "pipeline/pipeline.h"

/* ---- Stops ---------------------------------------------------------------------------------- */

void tfw_pipeline_stopped(const tfw_pipeline *p, tfw_place *out_place, tfw_place *out_next) {
    *out_place = p->place;
    *out_next = p->after;
}

void tfw_pipeline_misfit(const tfw_pipeline *p, const uint8_t **out_data, uint64_t *out_len) {
    const bool has_one = p->has_failed && p->status <= TFW_E_WIRE && p->misfit.of != NULL;
    *out_data = has_one ? p->misfit.of : NULL;
    *out_len = has_one ? p->misfit.count : 0;
}

void tfw_pipeline_tally(tfw_pipeline *p, tfw_tally *out_tally) {
    *out_tally = (tfw_tally){0};
    if (tfwi_pipeline_enter(p, NULL) == TFW_OK) {
        *out_tally = p->tally;
        tfwi_pipeline_leave(p);
    }
}

/* ---- Seeking -------------------------------------------------------------------------------- */

static bool is_place(const tfw_place *place) {
    return place->offset <= INT64_MAX && place->record <= SIZE_MAX / 2;
}

static bool is_before(const tfw_place *a, const tfw_place *b) {
    return a->file < b->file || (a->file == b->file && a->offset < b->offset);
}

/* Reads on from a place that no range was opened for. */
static void plan_from(tfw_pipeline *p, const tfw_place *place) {
    if (p->source != NULL && p->source->number != place->file) {
        tfwi_source_release(p->source);
        p->source = NULL;
    }
    p->next = *place;
    p->is_next_known = true;
    p->is_row_known = p->has_ended = p->is_unusual = false;
    p->pushing = NOT_PUSHING;
}

bool tfwi_pipeline_is_pushing(const tfw_pipeline *p) {
    return p->pushing != NOT_PUSHING && !p->is_final && !(p->has_failed && p->was_told);
}

void tfwi_pipeline_drop_ranges(tfw_pipeline *p) {
    while (p->busy != 0) {
        tfwi_condition_wait(&p->ready, &p->lock);
    }
    for (; p->linked < p->opened; p->linked++) {
        tfwi_range_clear(&p->ranges[p->linked % p->ring]);
    }
}

/* Goes on in the range that has failed; false: the place is not in it. */
static bool go_on_in_range(tfw_pipeline *p, const tfw_place *place) {
    tfwi_range *r = &p->ranges[p->linked % p->ring];
    if (p->linked == p->opened || place->file != p->place.file ||
        (r->is_pushed ? !tfwi_push_find(r, place, &r->pushed.done) : r->segments.count == 0)) {
        return false;
    }
    r->at = *place;
    r->status = TFW_OK;
    r->state = RANGE_READY;
    return true;
}

static void go_on_after_error(tfw_pipeline *p, const tfw_place *place) {
    if (!go_on_in_range(p, place)) {
        tfwi_pipeline_drop_ranges(p);
        plan_from(p, place);
    }
    p->place = *place;
    p->has_failed = false;
}

/* Goes on with files while what was pushed is parsed. */
static void go_on_after_push(tfw_pipeline *p, const tfw_place *place) {
    tfwi_push_end_range(p);
    if (p->opened != p->linked) {
        p->ranges[(p->opened - 1) % p->ring].pushed.end = *place;
    } else {
        p->place = *place;
    }
    plan_from(p, place);
}

int tfw_pipeline_seek(tfw_pipeline *p, const tfw_place *place, tfw_error *error) {
    int status = tfwi_pipeline_enter(p, error);
    if (status != TFW_OK) {
        return status;
    }
    const bool is_pushing = tfwi_pipeline_is_pushing(p);
    const bool has_stopped = p->has_failed && !p->is_final && p->first_chunk == NULL;
    const bool can = (is_pushing || has_stopped) && !p->is_cancelled && !p->is_ordered;
    const bool fits = is_place(place) && !is_before(place, is_pushing ? &p->next : &p->place);
    if (can && fits) {
        if (is_pushing) {
            go_on_after_push(p, place);
        } else {
            go_on_after_error(p, place);
        }
        p->was_told = false;
        tfwi_condition_broadcast(&p->work);
    }
    tfwi_pipeline_leave(p);
    return can && fits ? TFW_OK
                       : tfwi_fail(error, TFW_E_ARGUMENT,
                                   can ? "a place before the end of reading"
                                       : "reading has not stopped at an error");
}

/* ---- More files ----------------------------------------------------------------------------- */

static char *copy_path(const char *path) {
    const size_t size = strlen(path) + 1;
    char *copy = tfwi_realloc(NULL, size);
    return copy != NULL ? memcpy(copy, path, size) : NULL;
}

bool tfwi_pipeline_add_paths(tfw_pipeline *p, const char *const *paths, uint64_t count) {
    const size_t before = p->paths.count;
    bool done = TFWI_RESERVE_MORE(p->paths, count);
    for (uint64_t i = 0; i < count && done; i++) {
        char *copy = paths[i] != NULL ? copy_path(paths[i]) : NULL;
        done = paths[i] == NULL || copy != NULL;
        p->paths.of[p->paths.count] = copy;
        p->paths.count += done;
    }
    while (!done && p->paths.count > before) {
        tfw_free(p->paths.of[--p->paths.count]);
    }
    return done;
}

int tfw_pipeline_add(tfw_pipeline *p, const char *const *paths, uint64_t count,
                     tfw_error *error) {
    int status = tfwi_pipeline_enter(p, error);
    if (status != TFW_OK) {
        return status;
    }
    const bool fits = count <= TFWI_MOST_PATHS - p->paths.count && !p->is_ordered;
    const bool done = fits && tfwi_pipeline_add_paths(p, paths, count);
    if (done && count != 0 && p->has_ended) {
        const tfw_place first = {.file = p->paths.count - (size_t)count};
        if (p->pushing == PUSHING_AT_END) {
            go_on_after_push(p, &first);
        }
        p->has_ended = false;
        p->was_told = p->was_told && p->has_failed;
        tfwi_condition_broadcast(&p->work);
    }
    tfwi_pipeline_leave(p);
    return done   ? TFW_OK
           : fits ? tfwi_fail(error, TFW_E_MEMORY, "no memory for paths")
                  : tfwi_fail(error, TFW_E_ARGUMENT, "too many paths");
}
