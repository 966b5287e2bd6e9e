/* Columns to messages.
 *
 * In a message a length stands before what it counts, four of them around the values of a
 * feature. All that stands before the values (tags, key, lengths) is called the prefix here: its
 * bytes are known when the columns are, except for the lengths, and these follow from the length
 * of the values. So every feature is written in one pass, as prefix and values. Where the length
 * of the values is known beforehand, the prefix comes first. Where it is not, the values are
 * written behind room for a prefix as long as the last one, and moved when that was wrong.
 *
 * Bounds: before a feature is written, the room left is compared with the most that it can take.
 * Counts and offsets are loaded once and the loaded numbers checked, so a caller's thread that
 * changes the columns meanwhile can spoil a message, but never cause a wrong access. */
#include "common.h"

#include <limits.h>

#define MAX_LENGTHS 4
#define MAX_VARINT 10
#define SLACK 32 /* bytes that copies by whole words may touch behind what they mean to write */

/* From this many records on it pays to prepare templates. */
#define TEMPLATE_RECORDS 8

/* ---- Varints -------------------------------------------------------------------------------- */

TFWI_INLINE size_t varint_size(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    return (bits * 9 + 64) >> 6; /* ceil(bits / 7) for 1..64 bits */
#else
    size_t size = 1;
    while (v >>= 7) {
        size++;
    }
    return size;
#endif
}

/* Writes exactly the varint. */
TFWI_INLINE uint8_t *put_length(uint8_t *p, uint64_t v) {
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* The low 56 bits, seven to a byte, by halves: no loop, no branch that could be mispredicted. */
TFWI_INLINE uint64_t spread_sevens(uint64_t v) {
    v = (v & UINT64_C(0x000000000fffffff)) | (v & UINT64_C(0x00fffffff0000000)) << 4;
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x0fffc0000fffc000)) << 2;
    return (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x3f803f803f803f80)) << 1;
}

/* Writes the varint of the given size; touches MAX_VARINT bytes. */
TFWI_INLINE uint8_t *put_varint(uint8_t *p, uint64_t v, size_t size) {
    const uint64_t more = UINT64_C(0x8080808080808080);
    uint64_t inner = size > 8 ? ~UINT64_C(0) : (UINT64_C(1) << (8 * (size - 1))) - 1;
    tfwi_store64(p, spread_sevens(v) | (more & inner));
    p[8] = (uint8_t)(v >> 56 | (size > 9 ? 0x80 : 0));
    p[9] = (uint8_t)(v >> 63);
    return p + size;
}

/* ---- Prefixes ------------------------------------------------------------------------------- */

/* A prefix without its lengths: lengths is how many there are, and run[i] bytes of text stand
 * before length i. Nested as the message is:
 *   entry   0a <entry> 0a <key's length, constant> key 12 <feature>
 *   list    ... kind's tag <list>
 *   packed  ... 0a <packed values, or the only string>
 * The steps of a feature list have 0a <feature> in place of the entry's part. */
typedef struct prefix {
    uint8_t *text;
    size_t run[MAX_LENGTHS];
    unsigned outer; /* lengths of the entry's part */
    size_t guess;   /* size of the prefix last placed in front of values */
    size_t max_size;
    /* The whole packed prefix for values of length 0, while every length is one byte; to_add is
     * 0xff where a length stands. */
    uint64_t *template;
    uint64_t *to_add;
    size_t template_size;
    size_t template_limit; /* values must be shorter than this; 0: no template */
} prefix;

#define LIST(prefix) ((prefix)->outer + 1)
#define PACKED(prefix) ((prefix)->outer + 2)

/* The lengths in front of values of len bytes; returns the size of the prefix. */
TFWI_INLINE size_t prefix_lengths(const prefix *f, unsigned lengths, size_t len,
                                  size_t *out_lengths) {
    size_t total = len;
    for (unsigned i = lengths; i-- > 0;) {
        out_lengths[i] = total;
        total += varint_size(total) + f->run[i];
    }
    return total - len;
}

TFWI_INLINE uint8_t *put_prefix_lengths(const prefix *f, unsigned lengths, const size_t *values,
                                        uint8_t *p) {
    const uint8_t *text = f->text;
    for (unsigned i = 0; i < lengths; i++) {
        memcpy(p, text, f->run[i]);
        p = put_length(p + f->run[i], values[i]);
        text += f->run[i];
    }
    return p;
}

static TFWI_NOINLINE uint8_t *put_prefix(const prefix *f, unsigned lengths, size_t len,
                                         uint8_t *p) {
    size_t values[MAX_LENGTHS];
    prefix_lengths(f, lengths, len, values);
    return put_prefix_lengths(f, lengths, values, p);
}

/* The packed prefix; touches up to SLACK bytes behind it. */
TFWI_INLINE uint8_t *put_packed_prefix(const prefix *f, size_t len, uint8_t *p) {
    if (TFWI_LIKELY(len < f->template_limit)) {
        uint64_t add = len * UINT64_C(0x0101010101010101);
        for (size_t i = 0; 8 * i < f->template_size; i++) {
            uint64_t word = f->template[i] + (f->to_add[i] & add); /* bytes below 128: no carry */
            memcpy(p + 8 * i, &word, 8);
        }
        return p + f->template_size;
    }
    return put_prefix(f, PACKED(f), len, p);
}

/* Puts the prefix at start, in front of the values in [values, end), which begin guess bytes
 * behind start and move if need be. Returns their new end. */
static uint8_t *place_prefix(prefix *f, unsigned lengths, uint8_t *start, const uint8_t *end) {
    const uint8_t *values = start + f->guess;
    size_t len = (size_t)(end - values);
    size_t in_front[MAX_LENGTHS];
    size_t size = prefix_lengths(f, lengths, len, in_front);
    if (TFWI_UNLIKELY(size != f->guess)) {
        memmove(start + size, values, len);
        f->guess = size;
    }
    put_prefix_lengths(f, lengths, in_front, start);
    return start + size + len;
}

/* ---- Plans ---------------------------------------------------------------------------------- */

typedef struct plan {
    tfw_input in;
    prefix entry;
    prefix step; /* feature lists only */
} plan;

static size_t words_of(size_t bytes) { return (bytes + 7) / 8; }

/* The most text that an entry's prefix has. */
static size_t entry_text(const tfw_input *in) { return (size_t)in->name_len + MAX_VARINT + 8; }

/* Bytes of the arena for one plan, in words. */
static size_t plan_words(const tfw_input *in, bool templates) {
    size_t text = words_of(entry_text(in)) + words_of(8);
    size_t whole = 1 + words_of(entry_text(in) + MAX_LENGTHS);
    return text + (templates ? 2 * (whole + 2) : 0);
}

static uint64_t *make_template(prefix *f, uint64_t *arena) {
    size_t in_front[MAX_LENGTHS] = {0};
    size_t size = prefix_lengths(f, PACKED(f), 0, in_front);
    if (in_front[0] >= 0x80) {
        return arena;
    }
    f->template = arena;
    f->to_add = arena + words_of(size);
    f->template_size = size;
    f->template_limit = 0x80 - in_front[0];
    uint8_t *at = (uint8_t *)f->template;
    uint8_t *mark = (uint8_t *)f->to_add;
    put_prefix_lengths(f, PACKED(f), in_front, at);
    for (unsigned i = 0; i < PACKED(f); i++) {
        mark += f->run[i];
        *mark++ = 0xff;
    }
    return f->to_add + words_of(size);
}

/* Completes a prefix whose entry's part is text[0, len), ending before its last length. */
static void end_prefix(prefix *f, uint8_t *text, size_t len, int32_t kind) {
    text[len] = (uint8_t)(kind << 3 | 2);
    text[len + 1] = 0x0a;
    f->text = text;
    f->run[f->outer] = 1;
    f->run[f->outer + 1] = 1;
    f->max_size = len + 2 + MAX_LENGTHS * MAX_VARINT;
    f->guess = len + 2 + PACKED(f);
}

static uint64_t *make_plan(plan *p, const tfw_input *in, bool templates, uint64_t *arena) {
    *p = (plan){.in = *in};
    uint8_t *text = (uint8_t *)arena;
    text[0] = 0x0a;
    text[1] = 0x0a;
    uint8_t *end = put_length(text + 2, in->name_len);
    if (in->name_len != 0) {
        memcpy(end, in->name, (size_t)in->name_len);
    }
    end += in->name_len;
    *end++ = 0x12;
    p->entry.outer = 2;
    p->entry.run[0] = 1;
    p->entry.run[1] = (size_t)(end - text) - 1;
    end_prefix(&p->entry, text, (size_t)(end - text), in->kind);
    arena += words_of(entry_text(in));

    text = (uint8_t *)arena;
    text[0] = 0x0a;
    p->step.outer = 1;
    p->step.run[0] = 1;
    end_prefix(&p->step, text, 1, in->kind);
    arena += words_of(8);
    if (templates) {
        arena = make_template(in->steps != NULL ? &p->step : &p->entry, arena);
    }
    return arena;
}

/* What is wrong with an input as far as that shows without looking at the records, or NULL. */
static const char *input_fault(const tfw_input *in, uint64_t records, bool is_list) {
    uint64_t cells = in->splits != NULL || is_list ? in->cell_count : records;
    size_t values;
    if (in->kind < TFW_BYTES || in->kind > TFW_INT64) {
        return "no such kind";
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

typedef struct output {
    uint8_t *at;
    uint8_t *end;
} output;

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

TFWI_INLINE bool has_room(const output *out, size_t need) {
    return (size_t)(out->end - out->at) >= need;
}

static void put_floats(prefix *f, const float *values, size_t count, output *out) {
    uint8_t *p = put_packed_prefix(f, 4 * count, out->at);
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        tfwi_store32(p + 4 * i, bits);
    }
#else
    memcpy(p, values, 4 * count);
#endif
    out->at = p + 4 * count;
}

static void put_int64s(prefix *f, const int64_t *values, size_t count, output *out) {
    if (count == 1) {
        uint64_t v = (uint64_t)values[0];
        size_t size = varint_size(v);
        out->at = put_varint(put_packed_prefix(f, size, out->at), v, size);
        return;
    }
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        uint64_t v = (uint64_t)values[i];
        p = put_varint(p, v, varint_size(v));
    }
    out->at = place_prefix(f, PACKED(f), out->at, p);
}

/* Short strings are copied as one word of 16 bytes where that many can be read. */
TFWI_INLINE uint8_t *put_string(const tfw_input *in, range s, uint8_t *p) {
    const uint8_t *from = (const uint8_t *)in->values + s.begin;
    size_t len = (size_t)(s.end - s.begin);
    if (len <= 16 && in->byte_count - s.begin >= 16) {
        memcpy(p, from, 16);
    } else if (len != 0) {
        memcpy(p, from, len);
    }
    return p + len;
}

/* Strings [v.begin, v.end), whose bytes lie in [all.begin, all.end). */
static int put_strings(prefix *f, const tfw_input *in, range v, range all, output *out) {
    if (v.end - v.begin == 1) {
        uint8_t *p = put_packed_prefix(f, (size_t)(all.end - all.begin), out->at);
        out->at = put_string(in, all, p);
        return TFW_OK;
    }
    uint8_t *p = out->at + f->guess;
    range s = {all.begin, all.begin};
    for (uint64_t i = v.begin + 1; i <= v.end; i++) {
        const volatile int64_t *once = in->offsets + i;
        s = (range){s.end, i < v.end ? (uint64_t)*once : all.end};
        if (s.end < s.begin || s.end > all.end) {
            return TFW_E_ARGUMENT;
        }
        *p++ = 0x0a;
        p = put_string(in, s, put_length(p, s.end - s.begin));
    }
    out->at = place_prefix(f, LIST(f), out->at, p);
    return TFW_OK;
}

/* The most bytes that values [v.begin, v.end) take with their prefix. */
TFWI_INLINE size_t feature_bound(const prefix *f, int32_t kind, range v, range bytes) {
    size_t count = (size_t)(v.end - v.begin);
    size_t values = kind == TFW_FLOAT   ? 4 * count
                    : kind == TFW_INT64 ? MAX_VARINT * count
                                        : (size_t)(bytes.end - bytes.begin) +
                                              (1 + MAX_VARINT) * count;
    return f->max_size + values + SLACK;
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
    int64_t begin = once[v->begin];
    int64_t end = once[v->end];
    *bytes = (range){(uint64_t)begin, (uint64_t)end};
    return begin >= 0 && begin <= end && (uint64_t)end <= in->byte_count;
}

/* Writes one Feature: the values of a cell. TFW_NEED_SPACE, TFW_E_ARGUMENT: nothing is written
 * that counts. */
TFWI_INLINE int put_feature(prefix *f, const tfw_input *in, uint64_t cell, int presence,
                            output *out) {
    range v = {0, 0};
    range bytes = {0, 0};
    if (TFWI_LIKELY(presence == TFW_PRESENT) && TFWI_UNLIKELY(!load_cell(in, cell, &v, &bytes))) {
        return TFW_E_ARGUMENT;
    }
    if (TFWI_UNLIKELY(!has_room(out, feature_bound(f, in->kind, v, bytes)))) {
        return TFW_NEED_SPACE;
    }
    if (TFWI_UNLIKELY(v.begin == v.end)) {
        out->at = put_prefix(f, presence == TFW_PRESENT ? LIST(f) : f->outer, 0, out->at);
        return TFW_OK;
    }
    size_t count = (size_t)(v.end - v.begin);
    switch (in->kind) {
    case TFW_FLOAT: put_floats(f, (const float *)in->values + v.begin, count, out); break;
    case TFW_INT64: put_int64s(f, (const int64_t *)in->values + v.begin, count, out); break;
    default: return put_strings(f, in, v, bytes, out);
    }
    return TFW_OK;
}

/* ---- Records -------------------------------------------------------------------------------- */

#define SECTION_BOUND (1 + 2 * MAX_VARINT)

/* The features of an Example, the context or the feature lists of a SequenceExample. */
typedef struct section {
    uint8_t tag;
    bool is_lists;
    plan *plans;
    size_t count;
    size_t guess; /* bytes of the last record's length of this section */
    size_t at_fault;
} section;

TFWI_INLINE int presence_of(const tfw_input *in, uint64_t record) {
    return in->presence == NULL ? TFW_PRESENT : *(const volatile uint8_t *)(in->presence + record);
}

static int put_list(plan *p, uint64_t record, int presence, output *out) {
    range steps;
    if (!load_range(p->in.steps, record, p->in.cell_count, &steps)) {
        return TFW_E_ARGUMENT;
    }
    if (!has_room(out, 2 * p->entry.max_size)) {
        return TFW_NEED_SPACE;
    }
    output inner = {out->at + p->entry.guess, out->end - p->entry.max_size};
    for (uint64_t cell = steps.begin; cell < steps.end; cell++) {
        int status = put_feature(&p->step, &p->in, cell, presence, &inner);
        if (status != TFW_OK) {
            return status;
        }
    }
    out->at = place_prefix(&p->entry, p->entry.outer, out->at, inner.at);
    return TFW_OK;
}

/* Writes the entries of a section; on failure s->at_fault is the feature that could not be. */
static int put_entries(section *s, uint64_t record, output *out) {
    for (size_t i = 0; i < s->count; i++) {
        plan *p = &s->plans[i];
        int presence = presence_of(&p->in, record);
        if (presence == TFW_ABSENT) {
            continue;
        }
        int status = s->is_lists ? put_list(p, record, presence, out)
                                 : put_feature(&p->entry, &p->in, record, presence, out);
        if (TFWI_UNLIKELY(status != TFW_OK)) {
            s->at_fault = i;
            return status;
        }
    }
    return TFW_OK;
}

/* Writes a section: its tag, its length, its entries. */
static int put_section(section *s, uint64_t record, output *out) {
    if (!has_room(out, SECTION_BOUND)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *start = out->at;
    uint8_t *entries = start + 1 + s->guess;
    output inner = {entries, out->end - MAX_VARINT}; /* the guess may be too short by that */
    int status = put_entries(s, record, &inner);
    if (TFWI_UNLIKELY(status != TFW_OK)) {
        return status;
    }
    size_t len = (size_t)(inner.at - entries);
    size_t size = varint_size(len);
    if (TFWI_UNLIKELY(size != s->guess)) {
        memmove(start + 1 + size, entries, len);
        s->guess = size;
    }
    start[0] = s->tag;
    put_length(start + 1, len);
    out->at = start + 1 + size + len;
    return TFW_OK;
}

/* The most bytes that a record can take, for the caller to make room. */
static size_t record_bound(const section *sections, size_t count, uint64_t record) {
    size_t bound = 0;
    for (const section *s = sections; s < sections + count; s++) {
        bound += SECTION_BOUND;
        for (const plan *p = s->plans; p < s->plans + s->count; p++) {
            const prefix *f = s->is_lists ? &p->step : &p->entry;
            range cells = {record, record + 1};
            if (s->is_lists && !load_range(p->in.steps, record, p->in.cell_count, &cells)) {
                continue;
            }
            bound += 2 * p->entry.max_size;
            for (uint64_t cell = cells.begin; cell < cells.end; cell++) {
                range v, bytes;
                if (load_cell(&p->in, cell, &v, &bytes)) {
                    bound += feature_bound(f, p->in.kind, v, bytes);
                }
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

static int put_record(batch *b, uint64_t record, output *out, size_t *out_section) {
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
        output out = {start, b->out + b->capacity - b->tailroom};
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
    plan *next = tfwi_calloc(1, plans * sizeof *next + words * sizeof(uint64_t));
    if (next == NULL) {
        return NULL;
    }
    void *memory = next;
    uint64_t *arena = (uint64_t *)(void *)(next + plans);
    for (size_t s = 0; s < b->section_count; s++) {
        b->sections[s].plans = next;
        for (size_t i = 0; i < b->sections[s].count; i++) {
            arena = make_plan(next++, &inputs[s][i], templates, arena);
        }
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
