/* Columns to messages.
 *
 * Bounds: before a feature is written, the room left is compared with the most that it can take.
 * Counts and offsets are loaded once and the loaded numbers checked, so a caller's thread that
 * changes the columns meanwhile can spoil a message, but never cause a wrong access. */
#include "numbers.h"

#include <limits.h>

/* From this many records on it pays to prepare templates. */
#define TEMPLATE_RECORDS 8

/* ---- Plans ---------------------------------------------------------------------------------- */

typedef struct plan {
    tfw_input in;
    tfwi_prefix entry;
    tfwi_prefix step; /* feature lists only */
    /* So many features from this one on are one number in every record. */
    size_t run;
    size_t run_bound; /* room that they take at most */
} plan;

/* Words of memory that the prefixes of one plan take. */
static size_t plan_words(const tfw_input *in, bool templates) {
    size_t name_len = (size_t)in->name_len;
    return tfwi_prefix_text_words(name_len) + tfwi_prefix_text_words(0) +
           (templates ? tfwi_prefix_template_words(name_len) : 0);
}

static void make_plan(plan *p, const tfw_input *in, bool templates, uint64_t *memory) {
    size_t name_len = (size_t)in->name_len;
    p->in = *in;
    tfwi_prefix_init(&p->entry, in->name, name_len, in->kind, memory);
    memory += tfwi_prefix_text_words(name_len);
    tfwi_prefix_init_step(&p->step, in->kind, memory);
    memory += tfwi_prefix_text_words(0);
    if (templates) {
        tfwi_prefix_prepare(in->steps != NULL ? &p->step : &p->entry, memory);
    }
}

/* What is wrong with an input as far as that shows without looking at the records, or NULL. */
static const char *input_fault(const tfw_input *in, uint64_t records, bool is_list) {
    uint64_t cells = in->splits != NULL || is_list ? in->cell_count : records;
    size_t values;
    if (in->kind < TFW_BYTES || in->kind > TFW_INT64) {
        return "no such kind";
    }
    if (in->gap < 0) {
        return "a negative gap";
    }
    if (in->name_len >= INT_MAX || (in->name == NULL && in->name_len != 0)) {
        return "no name, or one that is too long";
    }
    if (in->value_count > SIZE_MAX / 16 || in->byte_count > SIZE_MAX / 2) {
        return "more values than memory can hold";
    }
    if (in->value_count != 0 &&
        (in->kind == TFW_BYTES ? in->offsets == NULL : in->values == NULL)) {
        return "values without memory";
    }
    if (in->byte_count != 0 && in->values == NULL) {
        return "strings without memory";
    }
    if (is_list != (in->steps != NULL)) {
        return "steps belong to feature lists, and only to them";
    }
    if (!is_list && cells < records) {
        return "splits end before the records";
    }
    if (in->splits == NULL && (tfwi_mul_overflows((size_t)cells, (size_t)in->count, &values) ||
                               values > in->value_count)) {
        return "more records than values";
    }
    return NULL;
}

/* ---- Values --------------------------------------------------------------------------------- */

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

/* Entries i and i + 1 of offsets that must not decrease, be negative or exceed limit. */
TFWI_INLINE bool load_range(const int64_t *offsets, uint64_t i, uint64_t limit, range *out) {
    const volatile int64_t *once = offsets + i;
    int64_t begin = once[0];
    int64_t end = once[1];
    *out = (range){(uint64_t)begin, (uint64_t)end};
    return begin >= 0 && begin <= end && (uint64_t)end <= limit;
}

TFWI_INLINE void put_int64s(const tfwi_writer *writer, tfwi_prefix *f, const int64_t *values,
                            size_t count, tfwi_output *out) {
    if (count == 1) {
        tfwi_put_int64(f, values[0], out);
    } else {
        tfwi_put_int64s(writer, f, values, count, out);
    }
}

TFWI_INLINE uint8_t *put_string(const tfw_input *in, range s, uint8_t *p) {
    const uint8_t *from = (const uint8_t *)in->values + s.begin;
    return tfwi_put_text(from, (size_t)(s.end - s.begin), (size_t)(in->byte_count - s.begin), p);
}

/* Strings [v.begin, v.end), whose bytes lie in [all.begin, all.end). */
static int put_strings(tfwi_prefix *f, const tfw_input *in, range v, range all, tfwi_output *out) {
    if (v.end - v.begin == 1) {
        uint8_t *p = tfwi_prefix_put_packed(f, (size_t)(all.end - all.begin), out->at);
        out->at = put_string(in, all, p);
        return TFW_OK;
    }
    uint64_t gap = (uint64_t)in->gap;
    uint8_t *p = out->at + f->guess;
    range s = {all.begin, all.begin};
    for (uint64_t i = v.begin + 1; i <= v.end; i++) {
        const volatile int64_t *once = in->offsets + i;
        s.end = i < v.end ? (uint64_t)*once - gap : all.end;
        if (s.begin > s.end || s.end > all.end) {
            return TFW_E_ARGUMENT;
        }
        *p++ = 0x0a;
        p = put_string(in, s, tfwi_put_length(p, s.end - s.begin));
        s.begin = s.end + gap;
    }
    out->at = tfwi_prefix_place(f, TFWI_LIST(f), out->at, p);
    return TFW_OK;
}

/* Where the values of a cell lie; bytes: their bytes too. */
TFWI_INLINE bool load_cell(const tfw_input *in, uint64_t cell, range *v, range *bytes) {
    *v = (range){cell * in->count, (cell + 1) * in->count};
    if (in->splits != NULL && !load_range(in->splits, cell, in->value_count, v)) {
        return false;
    }
    *bytes = (range){0, 0};
    if (in->kind != TFW_BYTES || v->begin == v->end) {
        return true;
    }
    const volatile int64_t *once = in->offsets;
    bytes->begin = (uint64_t)once[v->begin];
    bytes->end = (uint64_t)once[v->end] - (uint64_t)in->gap;
    return bytes->begin <= bytes->end && bytes->end <= in->byte_count; /* negative ones are large */
}

TFWI_INLINE size_t bound_of(const tfwi_prefix *f, int32_t kind, range v, range bytes) {
    size_t text_len = (size_t)(bytes.end - bytes.begin);
    return tfwi_feature_bound(f, kind, (size_t)(v.end - v.begin), text_len);
}

/* Writes one Feature: the values of a cell. TFW_NEED_SPACE, TFW_E_ARGUMENT: nothing is written
 * that counts. */
TFWI_INLINE int put_feature(const tfwi_writer *writer, tfwi_prefix *f, const tfw_input *in,
                            uint64_t cell, int presence, tfwi_output *out) {
    range v = {0, 0};
    range bytes = {0, 0};
    if (TFWI_LIKELY(presence == TFW_PRESENT) && TFWI_UNLIKELY(!load_cell(in, cell, &v, &bytes))) {
        return TFW_E_ARGUMENT;
    }
    if (TFWI_UNLIKELY(!tfwi_has_room(out, bound_of(f, in->kind, v, bytes)))) {
        return TFW_NEED_SPACE;
    }
    if (TFWI_UNLIKELY(v.begin == v.end)) {
        out->at = tfwi_prefix_put(f, presence == TFW_PRESENT ? TFWI_LIST(f) : f->outer, 0, out->at);
        return TFW_OK;
    }
    size_t count = (size_t)(v.end - v.begin);
    switch (in->kind) {
    case TFW_FLOAT:
        tfwi_put_floats(f, (const float *)in->values + v.begin, count, out);
        return TFW_OK;
    case TFW_INT64:
        put_int64s(writer, f, (const int64_t *)in->values + v.begin, count, out);
        return TFW_OK;
    default: return put_strings(f, in, v, bytes, out);
    }
}

/* ---- Records -------------------------------------------------------------------------------- */

/* The features of an Example, the context or the feature lists of a SequenceExample. */
typedef struct section {
    uint8_t tag;
    bool is_lists;
    const tfwi_writer *writer;
    plan *plans;
    tfwi_scalar *scalars; /* of the plans that are part of a run */
    const tfwi_scalar **runs; /* the same */
    size_t count;
    size_t guess; /* bytes of the last record's length of this section */
    size_t at_fault;
} section;

TFWI_INLINE int presence_of(const tfw_input *in, uint64_t record) {
    return in->presence == NULL ? TFW_PRESENT : *(const volatile uint8_t *)(in->presence + record);
}

static int put_list(const tfwi_writer *writer, plan *p, uint64_t record, int presence,
                    tfwi_output *out) {
    range steps;
    if (!load_range(p->in.steps, record, p->in.cell_count, &steps)) {
        return TFW_E_ARGUMENT;
    }
    if (!tfwi_has_room(out, 2 * p->entry.max_size)) {
        return TFW_NEED_SPACE;
    }
    tfwi_output inner = {out->at + p->entry.guess, out->end - p->entry.max_size};
    for (uint64_t cell = steps.begin; cell < steps.end; cell++) {
        int status = put_feature(writer, &p->step, &p->in, cell, presence, &inner);
        if (status != TFW_OK) {
            return status;
        }
    }
    out->at = tfwi_prefix_place(&p->entry, p->entry.outer, out->at, inner.at);
    return TFW_OK;
}

/* Writes the entries of a section; on failure s->at_fault is the feature that could not be. */
static int put_entries(section *s, uint64_t record, tfwi_output *out) {
    for (size_t i = 0; i < s->count; i++) {
        plan *p = &s->plans[i];
        if (p->run != 0 && TFWI_LIKELY(tfwi_has_room(out, p->run_bound))) {
            out->at = s->writer->scalars(&s->runs[i], p->run, record, out->at);
            i += p->run - 1;
            continue;
        }
        int presence = presence_of(&p->in, record);
        if (presence == TFW_ABSENT) {
            continue;
        }
        int status = s->is_lists
                         ? put_list(s->writer, p, record, presence, out)
                         : put_feature(s->writer, &p->entry, &p->in, record, presence, out);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            s->at_fault = i;
            return status;
        }
    }
    return TFW_OK;
}

/* Writes a section: its tag, its length, its entries. */
static int put_section(section *s, uint64_t record, tfwi_output *out) {
    if (!tfwi_has_room(out, TFWI_SECTION_BOUND)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *start = out->at;
    tfwi_output inner = {start + 1 + s->guess, out->end - TFWI_MAX_VARINT}; /* guesses fall short */
    int status = put_entries(s, record, &inner);
    if (TFWI_UNLIKELY(status != TFW_OK)) {
        return status;
    }
    out->at = tfwi_close_section(start, s->tag, &s->guess, inner.at);
    return TFW_OK;
}

/* The most bytes that a record can take, for the caller to make room. */
static size_t record_bound(const section *sections, size_t count, uint64_t record) {
    size_t bound = 0;
    for (const section *s = sections; s < sections + count; s++) {
        bound += TFWI_SECTION_BOUND;
        for (const plan *p = s->plans; p < s->plans + s->count; p++) {
            const tfwi_prefix *f = s->is_lists ? &p->step : &p->entry;
            range cells = {record, record + 1};
            if (s->is_lists && !load_range(p->in.steps, record, p->in.cell_count, &cells)) {
                continue;
            }
            bound += 2 * p->entry.max_size;
            for (uint64_t cell = cells.begin; cell < cells.end; cell++) {
                range v, bytes;
                if (!load_cell(&p->in, cell, &v, &bytes)) {
                    v = bytes = (range){0, 0}; /* it may be one that is not looked at */
                }
                bound += bound_of(f, p->in.kind, v, bytes);
            }
        }
    }
    return bound;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

typedef struct batch {
    section sections[2];
    size_t section_count;
    uint64_t first;
    uint64_t count;
    size_t headroom;
    size_t tailroom;
    uint8_t *out;
    size_t capacity;
    tfw_span *spans;
} batch;

static int put_record(batch *b, uint64_t record, tfwi_output *out, size_t *out_section) {
    uint8_t *start = out->at;
    for (size_t i = 0; i < b->section_count; i++) {
        *out_section = i;
        int status = put_section(&b->sections[i], record, out);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            return status;
        }
    }
    return (size_t)(out->at - start) > INT32_MAX ? TFW_E_TOO_LARGE : TFW_OK;
}

/* Says why a record could not be written. */
static int fail_record(int status, const batch *b, size_t at_section, uint64_t record,
                       tfw_error *error) {
    const section *s = &b->sections[at_section];
    if (status == TFW_NEED_SPACE) {
        tfwi_fail(error, status, "the output is full");
    } else if (status == TFW_E_TOO_LARGE) {
        status = tfwi_fail(error, TFW_E_ARGUMENT, "a message above 2 GiB, the limit of protobuf");
    } else {
        tfwi_fail(error, status, "splits, steps or offsets decrease or leave their values");
    }
    if (error == NULL) {
        return status;
    }
    error->record = (int64_t)record;
    if (status == TFW_NEED_SPACE) {
        size_t bound = record_bound(b->sections, b->section_count, record);
        error->expected = (int64_t)(b->headroom + bound + b->tailroom);
    } else {
        error->feature = (int32_t)s->at_fault;
        error->list = s->is_lists;
    }
    return status;
}

/* Writes records until all are written or one cannot be. */
static int put_records(batch *b, uint64_t *out_done, size_t *out_len, tfw_error *error) {
    size_t frame = b->headroom + b->tailroom;
    size_t at_section = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        if (b->capacity - *out_len < frame) {
            return fail_record(TFW_NEED_SPACE, b, 0, b->first + i, error);
        }
        uint8_t *start = b->out + *out_len + b->headroom;
        tfwi_output out = {start, b->out + b->capacity - b->tailroom};
        int status = put_record(b, b->first + i, &out, &at_section);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            return fail_record(status, b, at_section, b->first + i, error);
        }
        size_t size = (size_t)(out.at - start);
        b->spans[i] = (tfw_span){*out_len + b->headroom, size};
        *out_len += frame + size;
        *out_done = i + 1;
    }
    return TFW_OK;
}

static int check_inputs(const batch *b, const tfw_input *const inputs[2], tfw_error *error) {
    uint64_t records = b->first + b->count;
    if (records < b->first) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "first + count overflows");
    }
    for (size_t s = 0; s < b->section_count; s++) {
        for (size_t i = 0; i < b->sections[s].count; i++) {
            const char *fault = input_fault(&inputs[s][i], records, b->sections[s].is_lists);
            if (fault == NULL) {
                continue;
            }
            tfwi_fail(error, TFW_E_ARGUMENT, fault);
            if (error != NULL) {
                error->feature = (int32_t)i;
                error->list = b->sections[s].is_lists;
            }
            return TFW_E_ARGUMENT;
        }
    }
    return TFW_OK;
}

static bool is_scalar(const tfw_input *in) {
    return in->splits == NULL && in->steps == NULL && in->presence == NULL && in->count == 1 &&
           in->kind != TFW_BYTES;
}

/* Finds the runs of scalars. */
static void find_runs(section *s) {
    size_t run = 0;
    size_t bound = TFWI_SLACK;
    for (size_t i = s->count; i-- > 0;) {
        plan *p = &s->plans[i];
        tfwi_scalar *scalar = &s->scalars[i];
        s->runs[i] = scalar;
        if (is_scalar(&p->in) &&
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

/* One block of memory for all plans and what they point to. */
static void *make_plans(batch *b, const tfw_input *const inputs[2]) {
    bool templates = b->count >= TEMPLATE_RECORDS;
    size_t plans = 0;
    size_t words = 0;
    for (size_t s = 0; s < b->section_count; s++) {
        plans += b->sections[s].count;
        for (size_t i = 0; i < b->sections[s].count; i++) {
            words += plan_words(&inputs[s][i], templates);
        }
    }
    size_t size = plans * (sizeof(plan) + sizeof(tfwi_scalar) + sizeof(tfwi_scalar *)) +
                  words * sizeof(uint64_t);
    plan *next = tfwi_calloc(1, size);
    if (next == NULL) {
        return NULL;
    }
    void *memory = next;
    tfwi_scalar *scalars = (tfwi_scalar *)(void *)(next + plans);
    uint64_t *words_left = (uint64_t *)(void *)(scalars + plans);
    const tfwi_scalar **runs = (const tfwi_scalar **)(void *)(words_left + words);
    for (section *s = b->sections; s < b->sections + b->section_count; s++) {
        const tfw_input *in = inputs[s - b->sections];
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
    }
    return memory;
}

static int encode(batch *b, const tfw_input *const inputs[2], uint64_t *out_done, size_t *out_len,
                  tfw_error *error) {
    *out_done = 0;
    *out_len = 0;
    int status = check_inputs(b, inputs, error);
    if (status != TFW_OK) {
        return status;
    }
    size_t frame;
    if (tfwi_add_overflows(b->headroom, b->tailroom, &frame)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "headroom and tailroom overflow");
    }
    void *memory = make_plans(b, inputs);
    if (memory == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for the plans of the columns");
    }
    b->sections[0].writer = b->sections[1].writer = tfwi_writer_best();
    status = put_records(b, out_done, out_len, error);
    tfw_free(memory);
    return status;
}

int tfw_encode(const tfw_input *inputs, size_t input_count, uint64_t first, uint64_t count,
               size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
               tfw_span *out_spans, uint64_t *out_done, size_t *out_len, tfw_error *error) {
    const tfw_input *const all[2] = {inputs, NULL};
    batch b = {.sections = {{.tag = 0x0a, .count = input_count, .guess = 1}},
               .section_count = 1, .first = first, .count = count, .headroom = headroom,
               .tailroom = tailroom, .out = out, .capacity = capacity, .spans = out_spans};
    return encode(&b, all, out_done, out_len, error);
}

int tfw_encode_sequence(const tfw_input *context, size_t context_count, const tfw_input *lists,
                        size_t list_count, uint64_t first, uint64_t count, size_t headroom,
                        size_t tailroom, uint8_t *out, size_t capacity, tfw_span *out_spans,
                        uint64_t *out_done, size_t *out_len, tfw_error *error) {
    const tfw_input *const all[2] = {context, lists};
    batch b = {.sections = {{.tag = 0x0a, .count = context_count, .guess = 1},
                            {.tag = 0x12, .is_lists = true, .count = list_count, .guess = 1}},
               .section_count = 2, .first = first, .count = count, .headroom = headroom,
               .tailroom = tailroom, .out = out, .capacity = capacity, .spans = out_spans};
    return encode(&b, all, out_done, out_len, error);
}
