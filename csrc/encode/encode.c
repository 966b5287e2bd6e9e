/* SPDX-License-Identifier: Apache-2.0 */
/* Columns to messages.
 *
 * Bounds: before a feature is written, the room left is compared with the most that it can take.
 * Counts and offsets are loaded once, and the loaded numbers are checked: a thread that changes the
 * columns during the call can spoil a message, but never cause a wrong access. */
#include "encode/encode.h"

#include <limits.h>

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

TFWI_INLINE void put_packed_int64s(const tfwi_writer *writer, tfwi_prefix *f, const int64_t *values,
                                   size_t count, tfwi_output *out) {
    if (count == 1) {
        tfwi_put_int64(f, values[0], out);
    } else {
        tfwi_put_int64s(writer, f, values, count, out);
    }
}

TFWI_INLINE uint8_t *put_column_string(const tfw_input *in, range s, uint8_t *p) {
    const uint8_t *from = (const uint8_t *)in->values + s.begin;
    return tfwi_put_text(from, (size_t)(s.end - s.begin), (size_t)(in->byte_count - s.begin), p);
}

/* Strings [v.begin, v.end), whose bytes lie in [all.begin, all.end). */
static int put_strings(tfwi_prefix *f, const tfw_input *in, range v, range all, tfwi_output *out) {
    if (v.end - v.begin == 1) {
        uint8_t *p = tfwi_prefix_put_packed(f, (size_t)(all.end - all.begin), out->at);
        out->at = put_column_string(in, all, p);
        return TFW_OK;
    }
    uint8_t *p = out->at + f->guess;
    range s = {all.begin, all.begin};
    for (uint64_t i = v.begin + 1; i <= v.end; i++) {
        const volatile int64_t *once = in->offsets + i;
        s.end = i < v.end ? (uint64_t)*once : all.end;
        if (s.begin > s.end || s.end > all.end) {
            return TFW_E_ARGUMENT;
        }
        *p++ = TFWI_TAG(1, TFWI_WIRE_LEN);
        p = put_column_string(in, s, tfwi_put_length(p, s.end - s.begin));
        s.begin = s.end;
    }
    out->at = tfwi_prefix_place(f, TFWI_LIST_LENGTHS(f), out->at, p);
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
    bytes->end = (uint64_t)once[v->end];
    return bytes->begin <= bytes->end && bytes->end <= in->byte_count; /* negative ones are large */
}

TFWI_INLINE uint64_t bound_of(const tfwi_prefix *f, int32_t kind, range v, range bytes) {
    return tfwi_feature_bound(f, kind, v.end - v.begin, bytes.end - bytes.begin);
}

/* Writes one Feature: the values of a cell. On failure out->at stays. */
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
        unsigned lengths = presence == TFW_PRESENT ? TFWI_LIST_LENGTHS(f) : f->outer;
        out->at = tfwi_prefix_put(f, lengths, 0, out->at);
        return TFW_OK;
    }
    size_t count = (size_t)(v.end - v.begin);
    switch (in->kind) {
    case TFW_FLOAT:
        tfwi_put_floats(f, (const float *)in->values + v.begin, count, out);
        return TFW_OK;
    case TFW_INT64:
        put_packed_int64s(writer, f, (const int64_t *)in->values + v.begin, count, out);
        return TFW_OK;
    default: return put_strings(f, in, v, bytes, out);
    }
}

/* ---- Records -------------------------------------------------------------------------------- */

TFWI_INLINE int presence_of(const tfw_input *in, uint64_t record) {
    return in->presence == NULL ? TFW_PRESENT : *(const volatile uint8_t *)(in->presence + record);
}

static int put_steps(const tfwi_writer *writer, tfwi_plan *p, uint64_t record, int presence,
                     tfwi_output *out) {
    range steps;
    if (!load_range(p->in.steps, record, p->in.cell_count, &steps)) {
        return TFW_E_ARGUMENT;
    }
    if (!tfwi_has_room(out, 2 * (uint64_t)p->entry.max_size)) {
        return TFW_NEED_SPACE;
    }
    tfwi_output inner = {out->at + p->entry.guess, out->end - p->entry.max_size};
    for (uint64_t cell = steps.begin; cell < steps.end; cell++) {
        int of_step = presence;
        if (TFWI_UNLIKELY(p->in.step_presence != NULL) && presence == TFW_PRESENT) {
            of_step = *(const volatile uint8_t *)(p->in.step_presence + cell);
            if (of_step != TFW_PRESENT && of_step != TFW_KINDLESS) {
                return TFW_E_ARGUMENT;
            }
        }
        int status = put_feature(writer, &p->step, &p->in, cell, of_step, &inner);
        if (status != TFW_OK) {
            return status;
        }
    }
    out->at = tfwi_prefix_place(&p->entry, p->entry.outer, out->at, inner.at);
    return TFW_OK;
}

/* Writes the entries of a section; on failure s->at_fault is the feature that could not be. */
static int put_entries(tfwi_section *s, uint64_t record, tfwi_output *out) {
    for (size_t i = 0; i < s->count; i++) {
        tfwi_plan *p = &s->plans[i];
        if (p->run != 0 && TFWI_LIKELY(tfwi_has_room(out, p->run_bound))) {
            out->at = s->writer->scalars(&s->runs[i], p->run, record, out->at);
            i += p->run - 1;
            continue;
        }
        int presence = presence_of(&p->in, record);
        if (presence == TFW_ABSENT) {
            continue;
        }
        int status = TFWI_UNLIKELY(presence > TFW_KINDLESS) ? TFW_E_ARGUMENT
                     : s->is_lists
                         ? put_steps(s->writer, p, record, presence, out)
                         : put_feature(s->writer, &p->entry, &p->in, record, presence, out);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            s->at_fault = i;
            return status;
        }
    }
    return TFW_OK;
}

/* Writes a section: its tag, its length, its entries. */
static int put_section(tfwi_section *s, uint64_t record, tfwi_output *out) {
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
static uint64_t record_bound(const tfwi_section *sections, size_t count, uint64_t record) {
    uint64_t bound = 0;
    for (const tfwi_section *s = sections; s < sections + count; s++) {
        bound += TFWI_SECTION_BOUND;
        for (const tfwi_plan *p = s->plans; p < s->plans + s->count; p++) {
            const tfwi_prefix *f = s->is_lists ? &p->step : &p->entry;
            range cells = {record, record + 1};
            if (s->is_lists && !load_range(p->in.steps, record, p->in.cell_count, &cells)) {
                continue;
            }
            bound += 2 * (uint64_t)p->entry.max_size;
            for (uint64_t cell = cells.begin; cell < cells.end; cell++) {
                range v, bytes;
                if (!load_cell(&p->in, cell, &v, &bytes)) {
                    v = bytes = (range){0, 0}; /* absent, or bad: encoding reports it */
                }
                bound += bound_of(f, p->in.kind, v, bytes);
            }
        }
    }
    return bound;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

static int put_record(tfwi_encoding *e, uint64_t record, tfwi_output *out, size_t *out_section) {
    uint8_t *start = out->at;
    for (size_t i = 0; i < e->section_count; i++) {
        *out_section = i;
        int status = put_section(&e->sections[i], record, out);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            return status;
        }
    }
    return (size_t)(out->at - start) > INT32_MAX ? TFW_E_TOO_LARGE : TFW_OK;
}

/* Says why a record could not be written, which has frame bytes around it. */
static TFWI_NOINLINE int fail_record(int status, const tfwi_encoding *e, size_t at_section,
                                     uint64_t record, size_t frame, tfw_error *error) {
    const tfwi_section *s = &e->sections[at_section];
    if (status == TFW_NEED_SPACE) {
        tfwi_fail(error, status, "the output is full");
    } else if (status == TFW_E_TOO_LARGE) {
        status = tfwi_fail(error, TFW_E_ARGUMENT, "a message above 2 GiB, the limit of protobuf");
    } else {
        tfwi_fail(error, status, "splits, steps or offsets decrease or exceed their values");
    }
    TFWI_SET(error, record, (int64_t)record);
    if (status == TFW_NEED_SPACE) {
        const uint64_t need = record_bound(e->sections, e->section_count, record);
        TFWI_SET(error, expected, tfwi_saturated(need + frame < need ? UINT64_MAX : need + frame));
    } else {
        TFWI_SET(error, feature, (int32_t)s->at_fault);
        TFWI_SET(error, list, s->is_lists);
    }
    return status;
}

/* Columns of which not every record is wanted are prefetched so many records ahead: a CPU does not
 * foresee steps so long. Scalars prefetch by themselves, some hundred bytes ahead: that is enough
 * where they are many and steps short. */
enum { RECORDS_AHEAD = 4, MANY_SCALARS = 16, SHORT_STEPS = 16 };

/* Prefetches where the values of record far lie, and the strings of one that is nearer. */
static void prefetch_values(const tfwi_section *s, size_t far, size_t near,
                            bool scalars) {
    for (const tfwi_plan *p = s->plans; p < s->plans + s->count; p++) {
        const tfw_input *in = &p->in;
        const size_t cell = far * (size_t)in->count;
        if (in->splits != NULL) {
            TFWI_PREFETCH(in->splits + far);
        } else if (in->kind == TFW_BYTES && in->count != 0) {
            const volatile int64_t *once = in->offsets + near * (size_t)in->count;
            TFWI_PREFETCH(in->offsets + cell);
            TFWI_PREFETCH((uintptr_t)in->values + (uintptr_t)*once);
        } else if (in->kind != TFW_BYTES && (scalars || p->run == 0)) {
            TFWI_PREFETCH((uintptr_t)in->values + cell * (in->kind == TFW_INT64 ? 8 : 4));
        }
    }
}

int tfwi_encode(tfwi_encoding *e, const tfwi_messages *m, size_t *out_done, size_t *out_len,
                tfw_error *error) {
    size_t frame;
    size_t at_section = 0;
    *out_done = 0;
    *out_len = 0;
    if (tfwi_add_overflows(m->headroom, m->tailroom, &frame)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "headroom and tailroom overflow");
    }
    for (size_t i = 0, record = m->first; i < m->count; i++, record += m->stride) {
        if (m->capacity - *out_len < frame) {
            return fail_record(TFW_NEED_SPACE, e, 0, record, frame, error);
        }
        if (m->stride > 1 && m->count - i > RECORDS_AHEAD) {
            const tfwi_section *s = &e->sections[0];
            prefetch_values(s, record + RECORDS_AHEAD * m->stride, record + m->stride,
                            s->count <= MANY_SCALARS || m->stride > SHORT_STEPS);
        }
        uint8_t *start = m->out + *out_len + m->headroom;
        tfwi_output out = {start, m->out + m->capacity - m->tailroom};
        int status = put_record(e, record, &out, &at_section);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            return fail_record(status, e, at_section, record, frame, error);
        }
        size_t size = (size_t)(out.at - start);
        m->spans[i] = (tfw_span){*out_len + m->headroom, size};
        *out_len += frame + size;
        *out_done = i + 1;
    }
    return TFW_OK;
}

static int begin(tfwi_encoding *e, const tfw_input *const inputs[2], size_t records, size_t count,
                 tfw_error *error) {
    int status = tfwi_check_inputs(e->sections, inputs, records, error);
    if (status == TFW_OK && (e->memory = tfwi_make_plans(e->sections, inputs, count)) == NULL) {
        status = tfwi_fail(error, TFW_E_MEMORY, "no memory for the plans of the columns");
    }
    return status;
}

static tfwi_encoding of_examples(size_t input_count) {
    return (tfwi_encoding){
        .sections = {{.tag = TFWI_TAG(1, TFWI_WIRE_LEN), .count = input_count, .guess = 1}},
        .section_count = 1};
}

int tfwi_encoding_begin(tfwi_encoding *e, const tfw_input *inputs, size_t input_count,
                        size_t records, size_t count, tfw_error *error) {
    const tfw_input *const all[2] = {inputs, NULL};
    *e = of_examples(input_count);
    return begin(e, all, records, count, error);
}

void tfwi_encoding_end(tfwi_encoding *e) {
    tfw_free(e->memory);
    e->memory = NULL;
}

static int encode_once(tfwi_encoding *e, const tfw_input *const inputs[2], const tfwi_messages *m,
                       size_t *out_done, size_t *out_len, tfw_error *error) {
    size_t end;
    *out_done = 0;
    *out_len = 0;
    if (tfwi_add_overflows(m->first, m->count, &end)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "first + count overflows");
    }
    int status = begin(e, inputs, end, m->count, error);
    if (status == TFW_OK) {
        status = tfwi_encode(e, m, out_done, out_len, error);
    }
    tfwi_encoding_end(e);
    return status;
}

int tfw_encode(const tfw_input *inputs, size_t input_count, size_t first, size_t count,
               size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
               tfw_span *out_spans, size_t *out_done, size_t *out_len, tfw_error *error) {
    const tfw_input *const all[2] = {inputs, NULL};
    tfwi_encoding e = of_examples(input_count);
    const tfwi_messages m = {first, 1, count, headroom, tailroom, out, capacity, out_spans};
    return encode_once(&e, all, &m, out_done, out_len, error);
}

int tfw_encode_sequence(const tfw_input *context, size_t context_count, const tfw_input *lists,
                        size_t list_count, size_t first, size_t count, size_t headroom,
                        size_t tailroom, uint8_t *out, size_t capacity, tfw_span *out_spans,
                        size_t *out_done, size_t *out_len, tfw_error *error) {
    const tfw_input *const all[2] = {context, lists};
    tfwi_encoding e = of_examples(context_count);
    const tfwi_messages m = {first, 1, count, headroom, tailroom, out, capacity, out_spans};
    e.sections[1] = (tfwi_section){.tag = TFWI_TAG(2, TFWI_WIRE_LEN), .is_lists = true,
                                   .count = list_count, .guess = 1};
    e.section_count = 2;
    return encode_once(&e, all, &m, out_done, out_len, error);
}
