/* SPDX-License-Identifier: Apache-2.0 */
/* What is ordered of a pipeline of records by number, or of records that are given: each order
 * becomes a range of the ring. Orders are checked here, in turn, so little is done for one: numbers
 * that are drawn are computed by the thread that fetches their records. */
#include "pipeline/pipeline.h"

#include "records/cache.h"

enum { MOST_ORDERED = 1 << 24 };

#define MOST_RECORDS (UINT64_C(1) << 39) /* so that number and row fit into 64 bits */

/* What is ordered by one call: one of these three. */
typedef struct ordered {
    const int64_t *numbers;
    const tfw_span *given;
    tfw_draw draw;
    uint64_t count;
} ordered;

int tfwi_orders_init(tfw_pipeline *p, const tfw_pipeline_options *o, tfw_error *error) {
    uint64_t end = 0;
    p->is_ordered = o->indexed_count != 0 || (o->flags & TFW_PIPELINE_GIVEN) != 0;
    if (!p->is_ordered) {
        return TFW_OK;
    }
    if (o->path_count != 0 || o->indexed_count > UINT32_MAX ||
        (o->mode != TFW_PIPELINE_PARSE && o->mode != TFW_PIPELINE_SPANS) ||
        (o->flags & (TFW_PIPELINE_NO_DATA_CRC | TFW_PIPELINE_KEEP_REST)) != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "not for records by number");
    }
    if (!TFWI_RESERVE(p->indexed, o->indexed_count)) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a pipeline");
    }
    for (size_t i = 0; i < o->indexed_count; i++) {
        const tfw_indexed_file *file = &o->indexed[i];
        if (file->count > MOST_RECORDS - end || file->reserved != 0) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "too many records, or reserved is not 0");
        }
        end += file->count;
        p->indexed.of[i] = (tfwi_indexed){*file, end};
        tfwi_cache_share(file->cache);
        p->indexed.count = i + 1;
    }
    p->has_ended = true; /* but for what is ordered */
    return TFW_OK;
}

/* Whether first, first + step, ..., so many, lie in [0, end). */
static bool are_within(int64_t first, int64_t step, uint64_t count, uint64_t end) {
    const uint64_t begin = (uint64_t)first, steps = count - 1;
    if (count == 0 || begin >= end) {
        return false;
    }
    return steps == 0 || (step >= 0 ? (uint64_t)step <= (end - 1 - begin) / steps
                                    : 0 - (uint64_t)step <= begin / steps);
}

/* Whether these are records, and some. */
static bool are_records(const tfw_pipeline *p, const ordered *o) {
    const uint64_t total = p->indexed.count != 0 ? p->indexed.of[p->indexed.count - 1].end : 0;
    const tfw_draw *d = &o->draw;
    if (o->count == 0 || o->count > MOST_ORDERED) {
        return false;
    }
    if (d->count != 0) {
        return d->size == 0 ? are_within(d->first, d->step, d->count, total)
                            : d->size <= MOST_RECORDS &&
                                  are_within(d->first, d->step, d->count, d->size) &&
                                  are_within(d->begin, d->stride, d->size, total);
    }
    for (size_t i = 0; o->numbers != NULL && i < o->count; i++) {
        if ((uint64_t)o->numbers[i] >= total) {
            return false;
        }
    }
    return o->numbers != NULL || (o->given != NULL && (p->flags & TFW_PIPELINE_GIVEN) != 0);
}

/* With the lock. */
static int add_order(tfw_pipeline *p, const ordered *o, tfw_error *error) {
    tfwi_range *r = &p->ranges[p->opened % p->ring];
    const size_t count = (size_t)o->count;
    const size_t numbers = o->numbers != NULL ? count : 0, given = o->given != NULL ? count : 0;
    if (p->has_failed || p->is_cancelled) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the pipeline has failed, or was cancelled");
    }
    if (!tfwi_plan_has_room(p)) {
        return TFW_NEED_SPACE;
    }
    if (!TFWI_RESERVE(r->order, numbers) || !TFWI_RESERVE(r->given, given)) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for an order");
    }
    tfwi_range_begin(r);
    if (numbers != 0) {
        memcpy(r->order.of, o->numbers, numbers * sizeof *o->numbers);
    }
    if (given != 0) {
        memcpy(r->given.of, o->given, given * sizeof *o->given);
    }
    r->draw = o->draw;
    r->order.count = numbers;
    r->given.count = given;
    r->first_row = p->next_row;
    r->state = RANGE_READY;
    p->next_row += count;
    p->opened++;
    p->was_told = false;
    tfwi_condition_broadcast(&p->work);
    return TFW_OK;
}

static int order_records(tfw_pipeline *p, const ordered *o, tfw_error *error) {
    int status = tfwi_pipeline_enter(p, error);
    if (status == TFW_OK) {
        status = are_records(p, o)
                     ? add_order(p, o, error)
                     : tfwi_fail(error, TFW_E_ARGUMENT, "no records, or not of this pipeline");
        tfwi_pipeline_leave(p);
    }
    return status;
}

int tfw_pipeline_fetch(tfw_pipeline *p, const int64_t *numbers, size_t count, tfw_error *error) {
    return order_records(p, &(ordered){.numbers = numbers, .count = count}, error);
}

int tfw_pipeline_draw(tfw_pipeline *p, const tfw_draw *draw, tfw_error *error) {
    return order_records(p, &(ordered){.draw = *draw, .count = draw->count}, error);
}

int tfw_pipeline_give(tfw_pipeline *p, const tfw_span *records, size_t count, tfw_error *error) {
    return order_records(p, &(ordered){.given = records, .count = count}, error);
}

bool tfwi_order_draw(tfwi_range *r) {
    const tfw_draw *d = &r->draw;
    const size_t count = (size_t)d->count;
    if (!TFWI_RESERVE(r->order, count)) {
        return false;
    }
    int64_t *numbers = r->order.of;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = d->first + (int64_t)i * d->step;
    }
    if (d->size != 0) {
        tfw_permute(d->key, d->size, numbers, count, NULL); /* all are in its range */
        for (size_t i = 0; i < count; i++) {
            numbers[i] = d->begin + numbers[i] * d->stride;
        }
    }
    r->order.count = count;
    return true;
}
