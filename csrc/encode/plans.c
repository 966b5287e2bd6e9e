/* SPDX-License-Identifier: Apache-2.0 */
/* Columns prepared for encoding. */
#include "encode/plans.h"

#include "base/memory.h"

#include <limits.h>

/* From this many records on it pays to prepare templates. */
#define TEMPLATE_RECORDS 8

/* ---- Checks --------------------------------------------------------------------------------- */

/* Checks an input as far as that needs no look at the records. */
static int check_input(const tfw_input *in, uint64_t records, bool is_list, tfw_error *error) {
    uint64_t cells = in->splits != NULL || is_list ? in->cell_count : records;
    if (in->kind < TFW_BYTES || in->kind > TFW_INT64 || in->reserved != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no such kind, or reserved is not 0");
    }
    if (in->name_len >= INT_MAX || (in->name == NULL && in->name_len != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no name, or one that is too long");
    }
    if (in->value_count > SIZE_MAX / 16 || in->byte_count > SIZE_MAX / 4) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more values than memory can hold");
    }
    if (in->value_count != 0 &&
        (in->kind == TFW_BYTES ? in->offsets == NULL : in->values == NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "values without memory");
    }
    if (in->byte_count != 0 && in->values == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "strings without memory");
    }
    if (is_list != (in->steps != NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "steps belong to feature lists, and only to them");
    }
    if (!is_list && cells < records) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "splits end before the records");
    }
    if (in->splits == NULL && in->count != 0 && cells > in->value_count / in->count) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more records than values");
    }
    return TFW_OK;
}

int tfwi_check_inputs(const tfwi_section sections[2], const tfw_input *const inputs[2],
                      uint64_t records, tfw_error *error) {
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sections[s].count; i++) {
            int status = check_input(&inputs[s][i], records, sections[s].is_lists, error);
            if (status != TFW_OK) {
                TFWI_SET(error, feature, (int32_t)i);
                TFWI_SET(error, list, sections[s].is_lists);
                return status;
            }
        }
    }
    return TFW_OK;
}

/* ---- Plans ---------------------------------------------------------------------------------- */

/* Words of memory that the prefixes of one plan take. */
static size_t plan_words(const tfw_input *in, bool templates) {
    size_t name_len = (size_t)in->name_len;
    return tfwi_prefix_text_words(name_len) + tfwi_prefix_text_words(0) +
           (templates ? tfwi_prefix_template_words(name_len) : 0);
}

static void make_plan(tfwi_plan *p, const tfw_input *in, bool templates, uint64_t *memory) {
    static const uint64_t nothing;
    size_t name_len = (size_t)in->name_len;
    p->in = *in;
    p->in.values = in->values != NULL ? in->values : &nothing; /* offsets are added to it */
    tfwi_prefix_init(&p->entry, in->name, name_len, in->kind, memory);
    memory += tfwi_prefix_text_words(name_len);
    tfwi_prefix_init_step(&p->step, in->kind, memory);
    memory += tfwi_prefix_text_words(0);
    if (templates) {
        tfwi_prefix_prepare(in->steps != NULL ? &p->step : &p->entry, memory);
    }
}

static bool is_scalar_input(const tfw_input *in) {
    return in->splits == NULL && in->steps == NULL && in->presence == NULL && in->count == 1 &&
           in->kind != TFW_BYTES;
}

/* Finds the runs of scalars. */
static void find_runs(tfwi_section *s) {
    size_t run = 0;
    size_t bound = TFWI_SLACK;
    for (size_t i = s->count; i-- > 0;) {
        tfwi_plan *p = &s->plans[i];
        tfwi_scalar *scalar = &s->scalars[i];
        s->runs[i] = scalar;
        if (is_scalar_input(&p->in) &&
            tfwi_scalar_init(scalar, &p->entry, p->in.kind, p->in.values)) {
            run++;
            bound += tfwi_scalar_bound(scalar);
        } else {
            run = 0;
            bound = TFWI_SLACK;
        }
        p->run = run;
        p->run_bound = bound;
    }
}

void *tfwi_make_plans(tfwi_section sections[2], const tfw_input *const inputs[2],
                      uint64_t records) {
    bool templates = records >= TEMPLATE_RECORDS;
    uint64_t plans = 0, words = 0; /* a size_t of 32 bits might not hold their sizes */
    for (size_t s = 0; s < 2; s++) {
        plans += sections[s].count;
        for (size_t i = 0; i < sections[s].count; i++) {
            words += plan_words(&inputs[s][i], templates);
        }
    }
    uint64_t size = plans * (sizeof(tfwi_plan) + sizeof(tfwi_scalar) + sizeof(tfwi_scalar *)) +
                    words * sizeof(uint64_t);
    tfwi_plan *next = size <= SIZE_MAX ? tfwi_calloc(1, (size_t)size) : NULL;
    if (next == NULL) {
        return NULL;
    }
    void *memory = next;
    tfwi_scalar *scalars = (tfwi_scalar *)(void *)(next + plans);
    uint64_t *words_left = (uint64_t *)(void *)(scalars + plans);
    const tfwi_scalar **runs = (const tfwi_scalar **)(void *)(words_left + words);
    for (tfwi_section *s = sections; s < sections + 2; s++) {
        const tfw_input *in = inputs[s - sections];
        s->plans = next;
        s->scalars = scalars;
        s->runs = runs;
        for (size_t i = 0; i < s->count; i++) {
            make_plan(next++, &in[i], templates, words_left);
            words_left += plan_words(&in[i], templates);
        }
        scalars += s->count;
        runs += s->count;
        find_runs(s);
        s->writer = tfwi_writer_best();
    }
    return memory;
}
