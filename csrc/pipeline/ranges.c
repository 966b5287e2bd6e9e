/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a range: it is made new, gets a block to read to, and is emptied. */
#include "pipeline/pipeline.h"

void tfwi_range_begin(tfwi_range *r) {
    tfwi_range_clear(r);
    r->state = RANGE_BUSY;
    r->is_chained = r->is_found = r->was_linked = r->has_stopped = false;
    r->is_known = true;
    r->segment = 0;
    r->delivered = 0;
    r->status = TFW_OK;
    r->rows = 0;
}

bool tfwi_range_has_block(tfw_pipeline *p, tfwi_range *r) {
    if (r->block == NULL) {
        r->block = tfwi_block_take(p->pools[0]);
    }
    if (r->block == NULL) {
        r->status = tfwi_fail(&r->error, TFW_E_MEMORY, "out of memory");
        r->error.record = tfwi_saturated(r->at.record);
    }
    return r->block != NULL;
}

void tfwi_range_finish(tfwi_range *r, int status) {
    tfw_error error;
    const int finished = tfwi_block_finish(r->block, &error);
    if (finished != TFW_OK) {
        status = finished;
        r->error = error;
    }
    r->has_stopped = !r->is_known && status != TFW_OK;
    r->status = r->is_known && status < 0 ? status : TFW_OK;
}

void tfwi_range_keep_misfit(tfwi_range *r, const uint8_t *message, uint64_t len) {
    if (!TFWI_RESERVE(r->misfit, len + 1)) { /* so that it is not NULL when it is empty */
        tfw_free(r->misfit.of);
        r->misfit = (tfwi_bytes){0};
        return;
    }
    memcpy(r->misfit.of, message, (size_t)len);
    r->misfit.count = (size_t)len;
}

void tfwi_range_clear(tfwi_range *r) {
    for (size_t i = 0; i < r->segments.count; i++) {
        tfwi_source_release(r->segments.of[i].source);
    }
    r->segments.count = 0;
    tfwi_block_release(r->block);
    r->block = NULL;
    tfw_free(r->misfit.of);
    r->misfit = (tfwi_bytes){0};
    tfwi_pushed *q = &r->pushed;
    if (q->copied.capacity > TFWI_MOST_PUSHED_KEPT) {
        tfw_free(q->copied.of);
        q->copied = (tfwi_bytes){0};
    }
    r->is_pushed = false;
    q->count = q->len = q->done = 0;
    q->runs.count = q->copied.count = q->copied_spans.count = 0;
}

void tfwi_range_free(tfwi_range *r) {
    tfwi_range_clear(r);
    tfw_free(r->segments.of);
    tfw_free(r->order.of);
    tfw_free(r->given.of);
    tfw_free(r->pushed.runs.of);
    tfw_free(r->pushed.copied.of);
    tfw_free(r->pushed.copied_spans.of);
}
