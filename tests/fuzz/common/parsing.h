/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing, for Examples and SequenceExamples: a batch gives what its records give one by one and
 * to the complete parser, what they give scattered over memory, to another kernel, in another
 * encoding, and where memory fails on the way. */
#ifndef TFWIRE_TESTS_FUZZ_PARSING_H
#define TFWIRE_TESTS_FUZZ_PARSING_H

#include "messages.h"
#include "table.h"

#include "base/cpu.h"
#include "parse/columns.h"

/* The columns of one run, and what became of each record. */
typedef struct parsed {
    table context;
    table lists;
    tfw_error errors[MAX_MESSAGES]; /* status TFW_OK: appended */
} parsed;

typedef struct parsing {
    specs context;
    specs lists;
    bool sequence;
    bool no_context; /* none wanted */
    bool no_lists;
    unsigned flags;
} parsing;

/* kernel NULL: for the complete parser alone. */
static inline void parsed_init(parsed *r, const parsing *p, const tfwi_matcher *kernel) {
    table_init(&r->context, &p->context, false, MAX_MESSAGES);
    table_init(&r->lists, &p->lists, true, MAX_MESSAGES);
    r->context.columns->kernel = p->context.count != 0 ? kernel : NULL;
    r->lists.columns->kernel = p->lists.count != 0 ? kernel : NULL;
}

static inline void parsed_free(parsed *r) {
    table_free(&r->context);
    table_free(&r->lists);
}

static inline int parse(parsed *r, const parsing *p, const messages *m, size_t first,
                        size_t *out_done, tfw_error *error) {
    const tfw_span *spans = m->spans + first;
    size_t count = m->count - first;
    if (!p->sequence) {
        return tfw_parse(r->context.columns, m->data, m->len, spans, count, p->flags, out_done,
                         error);
    }
    return tfw_parse_sequence(p->no_context ? NULL : r->context.columns,
                              p->no_lists ? NULL : r->lists.columns, m->data, m->len, spans, count,
                              p->flags, out_done, error);
}

static inline void check_error(const tfw_error *e, const messages *m, size_t record) {
    CHECK(e->status <= TFW_E_WIRE && e->status >= TFW_E_COUNT);
    CHECK_EQ(record, e->record);
    CHECK(e->text[0] != '\0');
    if (e->status == TFW_E_WIRE) {
        CHECK(e->offset >= 0 && (uint64_t)e->offset <= m->spans[record].length);
    } else {
        CHECK(e->feature >= 0);
    }
}

/* Parses all, leaving out what fails; out of memory is followed by another try. */
static inline void parse_all(parsed *r, const parsing *p, const messages *m) {
    size_t done = 0, at = 0;
    for (;;) {
        tfw_error error = {.status = TFW_OK};
        int status = parse(r, p, m, at, &done, &error);
        CHECK_EQ(status, error.status);
        CHECK(done <= m->count - at);
        at += done;
        if (status == TFW_OK) {
            CHECK_EQ(m->count, at);
            return;
        }
        if (status == TFW_E_MEMORY || at == m->count) {
            CHECK(tfwi_test_fail_allocation == -1 && at < m->count);
            continue;
        }
        CHECK_EQ(done, error.record);
        error.record = (int64_t)at;
        check_error(&error, m, at);
        r->errors[at] = error;
        if (++at == m->count) {
            return;
        }
    }
}

/* Where malformed bytes lie, and which feature they are of, depends on the encoding. */
static inline void check_parsed(const parsed *a, const parsed *b, const messages *m,
                                bool same_encoding) {
    for (size_t i = 0; i < m->count; i++) {
        const tfw_error *e = &a->errors[i], *f = &b->errors[i];
        CHECK_EQ(e->status, f->status);
        if (same_encoding || e->status != TFW_E_WIRE) {
            CHECK_EQ(e->feature, f->feature);
            CHECK_EQ(e->offset, f->offset);
        }
        CHECK_EQ(e->list, f->list);
        CHECK_EQ(e->row, f->row);
        CHECK_EQ(e->expected, f->expected);
        CHECK_EQ(e->found, f->found);
    }
    check_tables(&a->context, &b->context);
    check_tables(&a->lists, &b->lists);
}

static inline void parsed_take(parsed *r, const parsing *p) {
    table_take(&r->context);
    table_take(&r->lists);
    CHECK(!p->sequence || p->no_context || p->no_lists || r->lists.records == r->context.records);
}

/* By the complete parser, each in a block of just its size. */
static inline void check_singles(const parsed *batch, const parsing *p, const messages *m) {
    parsed r = {0};
    parsed_init(&r, p, NULL);
    for (size_t i = 0; i < m->count; i++) {
        messages one = messages_single(m, i);
        size_t done = 0;
        tfw_error error = {.status = TFW_OK};
        int status = parse(&r, p, &one, 0, &done, &error);
        CHECK_EQ(status == TFW_OK, done);
        r.errors[i] = error;
        free(one.data);
    }
    parsed_take(&r, p);
    check_parsed(batch, &r, m, true);
    parsed_free(&r);
}

/* The columns of the batch are cleared and used again: what they learned changes nothing. */
static inline void check_again(const parsed *batch, const parsing *p, const messages *m,
                               const tfwi_matcher *kernel, long failing) {
    parsed r = {0};
    parsed_init(&r, p, kernel);
    parse_all(&r, p, m);
    tfw_columns_clear(r.context.columns);
    tfw_columns_clear(r.lists.columns);
    memset(r.errors, 0, sizeof r.errors);
    tfwi_test_fail_allocation = failing;
    parse_all(&r, p, m);
    tfwi_test_fail_allocation = -1;
    parsed_take(&r, p);
    check_parsed(batch, &r, m, true);
    parsed_free(&r);
}

/* Where they lie: each in a block of just its size, told by its address. */
static inline void check_scattered(const parsed *batch, const parsing *p, const messages *m) {
    parsing scattered = *p;
    messages other = {.count = m->count};
    uint8_t *blocks[MAX_MESSAGES];
    for (size_t i = 0; i < m->count; i++) {
        size_t len = (size_t)m->spans[i].length;
        blocks[i] = fuzz_copy(m->data + m->spans[i].offset, len);
        other.spans[i] = (tfw_span){.offset = (uintptr_t)blocks[i], .length = len};
    }
    scattered.flags |= TFW_ADDRESSES;
    parsed r = {0};
    parsed_init(&r, p, tfwi_matcher_best());
    parse_all(&r, &scattered, &other);
    parsed_take(&r, p);
    check_parsed(batch, &r, m, true);
    parsed_free(&r);
    for (size_t i = 0; i < m->count; i++) {
        free(blocks[i]);
    }
}

static inline void check_disguised(const parsed *batch, const parsing *p, const messages *m,
                                   unsigned how, long failing) {
    messages other = messages_disguised(m, p->sequence ? LEVEL_SEQUENCE : LEVEL_EXAMPLE, how);
    parsed r = {0};
    parsed_init(&r, p, tfwi_matcher_best());
    tfwi_test_fail_allocation = failing;
    parse_all(&r, p, &other);
    tfwi_test_fail_allocation = -1;
    parsed_take(&r, p);
    check_parsed(batch, &r, m, false);
    parsed_free(&r);
    free(other.data);
}

/* flags and failing allocation; disguise, what is wanted, kernel; schemas; messages. */
static inline void run_parsing(input *in, bool sequence) {
    uint8_t choice = input_byte(in), how = input_byte(in);
    parsing p = {.sequence = sequence, .flags = choice & (TFW_EMPTY_IS_MISSING | TFW_SINGLE),
                 .no_context = (how & 16) != 0, .no_lists = (how & 32) != 0};
    long failing = (choice >> 2) - 1;
    specs_init(&p.context, in, false);
    if (sequence) {
        specs_init(&p.lists, in, true);
    } else {
        specs_init(&p.lists, &(input){0}, true);
    }
    messages m = messages_of(in);
    parsed batch = {0};
    parsed_init(&batch, &p, tfwi_matcher_best());
    parse_all(&batch, &p, &m);
    parsed_take(&batch, &p);
    check_singles(&batch, &p, &m);
    check_scattered(&batch, &p, &m);
    const tfwi_matcher *kernel = tfwi_matcher_at(how >> 6);
    if (kernel != NULL && !tfwi_cpu_has(kernel->features)) {
        kernel = NULL;
    }
    check_again(&batch, &p, &m, kernel, failing);
    check_disguised(&batch, &p, &m, how, failing);
    parsed_free(&batch);
    free(m.data);
    tfw_schema_free(p.context.schema);
    tfw_schema_free(p.lists.schema);
}

#endif /* TFWIRE_TESTS_FUZZ_PARSING_H */
