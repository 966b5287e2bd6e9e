/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_encode and tfw_encode_sequence: columns that the input chooses are encoded in pieces, as the
 * room allows, and whole; both give the same messages, and parsed they give the columns. Offsets
 * that lie are refused, or at least give well-formed messages. */
#include "common/fuzz.h"

enum { MAX_INPUTS = 3, MAX_RECORDS = 24 };

/* What the input says of a column; bits of its first byte. */
enum { KIND = 3, SPLITS = 4, PRESENCE = 8, LONG_NAME = 16, ONE_VALUE = 32, STEADY = 64 };

typedef struct source {
    tfw_input in[MAX_INPUTS];
    size_t count;
} source;

typedef struct plan {
    source context;
    source lists;
    bool sequence;
    bool lies;
    uint64_t records;
    size_t headroom;
    size_t tailroom;
} plan;

/* Encoded messages, and how far that got. */
typedef struct encoded {
    uint8_t *out;
    size_t capacity;
    size_t len;
    tfw_span spans[MAX_RECORDS];
    size_t done;
    int status;
    tfw_error error;
} encoded;

/* ---- Columns -------------------------------------------------------------------------------- */

/* count + 1 offsets; steady ones are all one apart, else each is chosen by a byte: mostly near,
 * and now and then further, up to limit in all. */
static int64_t *make_offsets(input *in, uint64_t count, bool steady, int64_t limit) {
    int64_t *offsets = fuzz_alloc((size_t)(count + 1) * sizeof *offsets);
    offsets[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t choice = steady ? 1 : input_byte(in);
        int64_t step = choice < 224 ? choice % 4 : (choice - 224) * limit / 32;
        offsets[i + 1] = offsets[i] + (step <= limit - offsets[i] ? step : 0);
    }
    return offsets;
}

/* Numbers of all sizes, or strings of them. */
static void make_values(tfw_input *f, input *in, uint64_t count, bool steady) {
    uint64_t state = input_byte(in) + UINT64_C(1), shift = input_byte(in) % 64;
    f->value_count = count;
    if (f->kind == TFW_BYTES) {
        f->offsets = make_offsets(in, count, steady, 1 << 13);
        f->byte_count = (uint64_t)f->offsets[count];
    } else {
        f->byte_count = count * (f->kind == TFW_INT64 ? 8 : 4);
    }
    uint8_t *values = fuzz_alloc((size_t)f->byte_count);
    f->values = values;
    for (uint64_t i = 0; i + 8 <= f->byte_count; i += 8) {
        uint64_t value = check_random(&state) >> shift;
        memcpy(values + i, &value, sizeof value);
    }
    for (uint64_t i = f->byte_count / 8 * 8; i < f->byte_count; i++) {
        values[i] = (uint8_t)check_random(&state);
    }
}

static const uint8_t *make_presence(input *in, uint64_t records) {
    uint8_t *presence = fuzz_alloc((size_t)records);
    for (uint64_t i = 0; i < records; i++) {
        presence[i] = input_byte(in) % 3;
    }
    return presence;
}

static const uint8_t *make_step_presence(input *in, uint64_t steps) {
    uint8_t *presence = fuzz_alloc((size_t)steps);
    for (uint64_t i = 0; i < steps; i++) {
        presence[i] = input_byte(in) % 4 != 0 ? TFW_PRESENT : TFW_KINDLESS;
    }
    return presence;
}

/* A name that no other column has: its number, and what may follow. */
static const char *make_name(input *in, size_t number, bool is_long, uint64_t *out_len) {
    size_t len = is_long ? 1 + input_byte(in) : 1;
    char *name = fuzz_alloc(len);
    memset(name, 'x', len);
    name[0] = (char)('a' + number);
    *out_len = len;
    return name;
}

static tfw_input make_input(input *in, size_t number, uint64_t records, bool is_list) {
    uint8_t choice = input_byte(in);
    bool steady = (choice & STEADY) != 0;
    tfw_input f = {.kind = (choice & KIND) != 0 ? choice & KIND : TFW_INT64};
    uint64_t cells = records;
    f.name = make_name(in, number, (choice & LONG_NAME) != 0, &f.name_len);
    if (is_list) {
        f.steps = make_offsets(in, records, steady, 100);
        cells = (uint64_t)f.steps[records];
    }
    f.cell_count = cells;
    uint64_t values = 0;
    if ((choice & SPLITS) != 0) {
        f.splits = make_offsets(in, cells, steady, 1 << 9);
        values = (uint64_t)f.splits[cells];
    } else {
        f.count = (choice & ONE_VALUE) != 0 ? 1 : input_byte(in) % 32;
        values = f.count * cells;
    }
    make_values(&f, in, values, steady);
    f.presence = (choice & PRESENCE) != 0 ? make_presence(in, records) : NULL;
    if (is_list && (choice & PRESENCE) != 0) {
        f.step_presence = make_step_presence(in, cells);
    }
    return f;
}

static void make_source(source *s, input *in, uint64_t records, bool is_list) {
    s->count = input_byte(in) % (MAX_INPUTS + 1);
    for (size_t i = 0; i < s->count; i++) {
        s->in[i] = make_input(in, i, records, is_list);
    }
}

static void source_free(source *s) {
    for (size_t i = 0; i < s->count; i++) {
        free((void *)(uintptr_t)s->in[i].name);
        free((void *)(uintptr_t)s->in[i].values);
        free((void *)(uintptr_t)s->in[i].offsets);
        free((void *)(uintptr_t)s->in[i].splits);
        free((void *)(uintptr_t)s->in[i].steps);
        free((void *)(uintptr_t)s->in[i].presence);
        free((void *)(uintptr_t)s->in[i].step_presence);
    }
}

/* Changes one number of one column: an offset to anything, a count to less. */
static void lie(source *s, input *in) {
    if (s->count == 0) {
        return;
    }
    uint8_t which = input_byte(in), place = input_byte(in);
    int64_t value = (int64_t)input_number(in, 1 + which % 8);
    tfw_input *f = &s->in[place % s->count];
    const int64_t *arrays[3] = {f->offsets, f->splits, f->steps};
    uint64_t counts[3] = {f->value_count, f->cell_count, f->cell_count};
    const int64_t *array = arrays[which % 3];
    if ((which & 128) != 0) {
        f->value_count -= f->value_count != 0;
        f->byte_count /= 2;
    } else if (array != NULL && array != f->steps) {
        ((int64_t *)(uintptr_t)array)[(place >> 2) % (counts[which % 3] + 1)] = value;
    } else if (array != NULL) {
        ((int64_t *)(uintptr_t)array)[0] = value;
    }
}

/* ---- Encoding ------------------------------------------------------------------------------- */

static void encode(encoded *e, const plan *p, uint64_t first) {
    uint64_t count = p->records - first;
    if (p->sequence) {
        e->status = tfw_encode_sequence(p->context.in, p->context.count, p->lists.in,
                                        p->lists.count, first, count, p->headroom, p->tailroom,
                                        e->out, e->capacity, e->spans, &e->done, &e->len,
                                        &e->error);
    } else {
        e->status = tfw_encode(p->context.in, p->context.count, first, count, p->headroom,
                               p->tailroom, e->out, e->capacity, e->spans, &e->done, &e->len,
                               &e->error);
    }
}

/* Encodes from a record on with so much room. */
static encoded encoded_new(const plan *p, uint64_t first, size_t capacity) {
    encoded e = {.out = fuzz_alloc(capacity), .capacity = capacity};
    encode(&e, p, first);
    if (e.status == TFW_E_MEMORY) {
        CHECK_EQ(-1, tfwi_test_fail_allocation);
        encode(&e, p, first);
    }
    CHECK(e.status == TFW_OK || e.status == TFW_NEED_SPACE || e.status == TFW_E_ARGUMENT);
    CHECK(e.len <= capacity && e.done <= p->records - first);
    uint64_t at = 0;
    for (uint64_t i = 0; i < e.done; i++) {
        CHECK_EQ(at + p->headroom, e.spans[i].offset);
        at = e.spans[i].offset + e.spans[i].length + p->tailroom;
    }
    CHECK_EQ(at, e.len);
    if (e.status == TFW_OK) {
        CHECK_EQ(p->records - first, e.done);
    } else if (e.error.feature < 0) {
        CHECK(e.status == TFW_E_ARGUMENT || e.error.record == (int64_t)(first + e.done));
    }
    return e;
}

/* All records in one piece. */
static encoded encode_whole(const plan *p) {
    size_t capacity = 1 << 16;
    encoded e = encoded_new(p, 0, capacity);
    while (e.status == TFW_NEED_SPACE) {
        free(e.out);
        capacity *= 4;
        e = encoded_new(p, 0, capacity);
    }
    return e;
}

/* Piece by piece, each with just the room that was asked for. */
static void check_pieces(const plan *p, const encoded *whole, size_t capacity) {
    uint64_t first = 0;
    for (;;) {
        encoded e = encoded_new(p, first, capacity);
        for (uint64_t i = 0; i < e.done; i++) {
            const tfw_span *a = &whole->spans[first + i], *b = &e.spans[i];
            CHECK(first + i < whole->done && a->length == b->length);
            CHECK(check_failures != 0 ||
                  memcmp(whole->out + a->offset, e.out + b->offset, (size_t)a->length) == 0);
        }
        first += e.done;
        free(e.out);
        if (e.status != TFW_NEED_SPACE || check_failures != 0) {
            CHECK_EQ(whole->status, e.status);
            CHECK_EQ(whole->done, first);
            return;
        }
        /* The room asked for is enough: the same never comes twice. */
        CHECK(e.done > 0 || (size_t)e.error.expected > capacity);
        capacity = (size_t)e.error.expected;
    }
}

/* ---- Parsing what was encoded --------------------------------------------------------------- */

static tfw_columns *new_columns(const source *s, unsigned flags, tfw_schema **out_schema) {
    tfw_feature features[MAX_INPUTS];
    tfw_columns *columns = NULL;
    for (size_t i = 0; i < s->count; i++) {
        features[i] = (tfw_feature){.name = s->in[i].name, .name_len = s->in[i].name_len,
                                    .kind = s->in[i].kind, .layout = TFW_VARIABLE};
    }
    CHECK_EQ(TFW_OK, tfw_schema_create(features, s->count, SEED, out_schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(*out_schema, flags, &columns, NULL));
    return columns;
}

/* The values [first, first + count) of a cell against those from at on in the column. */
static void check_values(const tfw_input *f, uint64_t first, uint64_t count, const tfw_column *c,
                         uint64_t at) {
    if (f->kind != TFW_BYTES) {
        size_t size = f->kind == TFW_INT64 ? 8 : 4;
        CHECK(memcmp((const uint8_t *)f->values + first * size,
                     (const uint8_t *)c->values + at * size, (size_t)count * size) == 0);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t begin = f->offsets[first + i], len = f->offsets[first + i + 1] - begin;
        CHECK_EQ(len, c->offsets[at + i + 1] - c->offsets[at + i]);
        CHECK(memcmp((const uint8_t *)f->values + begin,
                     (const uint8_t *)c->values + c->offsets[at + i], (size_t)len) == 0);
    }
}

/* Cell by cell; a feature that is absent or has no kind has no values. */
static void check_column(const tfw_input *f, uint64_t records, const tfw_column *c) {
    uint64_t cell = 0; /* of the parsed column */
    for (uint64_t r = 0; r < records; r++) {
        int presence = f->presence != NULL ? f->presence[r] : TFW_PRESENT;
        uint64_t begin = r, end = r + 1;
        if (f->steps != NULL) {
            begin = (uint64_t)f->steps[r];
            end = presence == TFW_ABSENT ? begin : (uint64_t)f->steps[r + 1];
            CHECK_EQ(end - begin, c->steps[r + 1] - c->steps[r]);
        }
        for (uint64_t i = begin; i < end && check_failures == 0; i++, cell++) {
            uint64_t first = f->splits != NULL ? (uint64_t)f->splits[i] : i * f->count;
            uint64_t last = f->splits != NULL ? (uint64_t)f->splits[i + 1] : first + f->count;
            const bool of_step = f->step_presence == NULL || f->step_presence[i] == TFW_PRESENT;
            uint64_t count = presence == TFW_PRESENT && of_step ? last - first : 0;
            CHECK_EQ(count, c->splits[cell + 1] - c->splits[cell]);
            if (check_failures == 0) {
                check_values(f, first, count, c, (uint64_t)c->splits[cell]);
            }
        }
    }
}

static void check_source(tfw_columns *columns, const source *s, uint64_t records, bool compare) {
    for (size_t i = 0; i < s->count; i++) {
        tfw_column c;
        CHECK_EQ(TFW_OK, tfw_columns_take(columns, i, &c, NULL));
        if (compare) {
            check_column(&s->in[i], records, &c);
        }
        tfw_free(c.values);
        tfw_free(c.offsets);
        tfw_free(c.splits);
        tfw_free(c.steps);
    }
}

static void check_round_trip(const plan *p, const encoded *e) {
    tfw_schema *schemas[2];
    tfw_columns *context = new_columns(&p->context, 0, &schemas[0]);
    tfw_columns *lists = new_columns(&p->lists, TFW_FEATURE_LISTS, &schemas[1]);
    size_t done = 0, count = (size_t)e->done;
    int status = p->sequence ? tfw_parse_sequence(context, lists, e->out, e->len, e->spans, count,
                                                  0, &done, NULL)
                             : tfw_parse(context, e->out, e->len, e->spans, count, 0, &done, NULL);
    CHECK_EQ(TFW_OK, status);
    CHECK_EQ(e->done, done);
    check_source(context, &p->context, done, !p->lies);
    check_source(lists, &p->lists, done, !p->lies && p->sequence);
    tfw_columns_free(context);
    tfw_columns_free(lists);
    tfw_schema_free(schemas[0]);
    tfw_schema_free(schemas[1]);
}

/* sequence, lies, failing allocation; records, room; columns; lies. */
static void run(input *in) {
    uint8_t choice = input_byte(in);
    plan p = {.sequence = (choice & 1) != 0, .lies = (choice & 2) != 0};
    p.records = input_byte(in) % (MAX_RECORDS + 1);
    p.headroom = input_byte(in);
    p.tailroom = input_byte(in);
    size_t capacity = (size_t)input_number(in, 2);
    make_source(&p.context, in, p.records, false);
    if (p.sequence) {
        make_source(&p.lists, in, p.records, true);
    }
    if (p.lies) {
        lie(p.sequence && (choice & 4) != 0 ? &p.lists : &p.context, in);
    }
    encoded whole = encode_whole(&p);
    CHECK(p.lies || whole.status == TFW_OK);
    tfwi_test_fail_allocation = (choice >> 3) - 1;
    check_pieces(&p, &whole, capacity);
    tfwi_test_fail_allocation = -1;
    check_round_trip(&p, &whole);
    free(whole.out);
    source_free(&p.context);
    source_free(&p.lists);
}

FUZZ_TARGET(run)
