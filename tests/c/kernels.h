/* SPDX-License-Identifier: Apache-2.0 */
/* Random messages, usual and odd, parsed by the complete parser and by a kernel: both must give the
 * same columns and errors. */
#ifndef TFWIRE_TESTS_KERNELS_H
#define TFWIRE_TESTS_KERNELS_H

#include "proto.h"

#include "base/cpu.h"
#include "parse/columns.h"

enum { BATCH = 30, MOST_VALUES = 600, MOST_FEATURES = 400 };

static uint64_t state = 1; /* of the generator */

static inline size_t below(size_t n) { return (size_t)(check_random(&state) % n); }

static inline bool one_in(size_t n) { return below(n) == 0; }

/* Whether the message being made has odd features, entries and orders. */
static bool odd;

static inline bool seldom(size_t n) { return odd && one_in(n); }

/* ---- Random messages ------------------------------------------------------------------------ */

static inline int64_t some_int64(void) { return (int64_t)(check_random(&state) >> below(64)); }

/* The usual form of a Feature with so many values. */
static inline blob usual_feature(int32_t kind, size_t count) {
    blob values = NOTHING;
    if (kind == TFW_BYTES) {
        for (size_t i = 0; i < count; i++) {
            size_t longest = !one_in(20) ? 40 : one_in(5) ? 20000 : 300;
            values = JOIN(values, field(1, repeat(RAW("s"), below(longest))));
        }
        return field(1, values);
    }
    if (kind == TFW_FLOAT) {
        return field(2, field(1, repeat(float_bits((float)below(1000)), count)));
    }
    int64_t numbers[MOST_VALUES];
    for (size_t i = 0; i < count; i++) {
        numbers[i] = some_int64();
    }
    return field(3, field(1, packed_int64s(numbers, count)));
}

static inline size_t some_count(const tfw_feature *f) {
    if (seldom(40)) {
        return below(5);
    }
    switch (f->layout) {
    case TFW_DENSE: return (size_t)f->count;
    case TFW_REPEATED: return (size_t)f->count * below(4);
    default: return one_in(10) ? below(one_in(4) ? MOST_VALUES : 60) : below(3);
    }
}

/* A Feature, mostly of the form and the size that the specification wants. */
static inline blob some_feature(const tfw_feature *f) {
    blob usual = usual_feature(f->kind, some_count(f));
    switch (odd ? below(80) : 99) {
    case 0: return usual_feature(TFW_BYTES + (int32_t)below(3), 1);
    case 1: return NOTHING;
    case 2: return field((uint32_t)f->kind, NOTHING);
    case 3: return JOIN(usual, usual);
    case 4: return JOIN(usual, tag(9, 0), varint(1));
    case 5: return field(3, JOIN(tag(1, 0), varint(7)));
    case 6: return field(3, field(1, long_varint(below(1000), 1 + below(10))));
    default: return usual;
    }
}

static inline blob some_entry(const char *name, blob value) {
    blob key = field(1, raw(name, strlen(name)));
    switch (odd ? below(80) : 99) {
    case 0: return field(1, JOIN(field(2, value), key));
    case 1: return field(1, key);
    case 2: return field(1, JOIN(key, field(2, value), tag(9, 0), varint(1)));
    case 3: return field(1, JOIN(tag(1, 2), long_varint(strlen(name), 2), raw(name, strlen(name)),
                                 field(2, value)));
    case 4: return JOIN(tag(9, 0), varint(1), field(1, JOIN(key, field(2, value))));
    default: return field(1, JOIN(key, field(2, value)));
    }
}

/* Flips, inserts or cuts some bytes. */
static inline blob damage(blob message) {
    uint8_t *copy = blob_alloc(message.len);
    memcpy(copy, message.data, message.len);
    for (size_t i = 0; i < 3 && message.len != 0; i++) {
        size_t at = one_in(2) ? below(message.len) : below(message.len < 60 ? message.len : 60);
        copy[at] = (uint8_t)(one_in(2) ? check_random(&state) : copy[at] ^ 1u << below(8));
        if (one_in(2)) {
            break;
        }
    }
    size_t len = one_in(4) ? below(message.len + 1) : message.len;
    return (blob){copy, len};
}

/* The features' indices: in their order, in that order from some feature on, or in any order. */
static inline void some_order(size_t *order, size_t count) {
    size_t first = one_in(3) ? below(count) : 0;
    bool any = one_in(3);
    for (size_t i = 0; i < count; i++) {
        order[i] = (first + i) % count;
    }
    for (size_t i = count; any && i > 1; i--) {
        size_t other = below(i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
}

/* A key that is not asked for, but often much like one that is. */
static inline const char *unasked_name(const tfw_feature *f) {
    size_t len = (size_t)f->name_len;
    if (len == 0 || one_in(3)) {
        return "unasked";
    }
    char *name = (char *)blob_alloc(len + 2);
    snprintf(name, len + 2, "%s%s", f->name, one_in(4) ? "_" : "");
    name[below(len)] = (char)('A' + below(26));
    return name;
}

/* Entries of all features, and some others. */
static inline blob some_map(const tfw_feature *features, size_t count, bool lists) {
    size_t order[MOST_FEATURES], n = 0;
    blob parts[2 * MOST_FEATURES];
    some_order(order, count);
    for (size_t i = 0; i < count; i++) {
        const tfw_feature *f = &features[seldom(30) ? below(count) : order[i]];
        blob value = NOTHING;
        for (size_t steps = lists ? below(6) : 0; steps > 0; steps--) {
            value = JOIN(value, field(1, some_feature(f)));
        }
        value = lists ? value : some_feature(f);
        if (!seldom(50)) {
            parts[n++] = some_entry(f->name, value);
        }
        if (one_in(20)) {
            parts[n++] = some_entry(unasked_name(f), usual_feature(TFW_INT64, 2));
        }
    }
    return join(parts, n);
}

/* ---- Parsing by one kernel ------------------------------------------------------------------ */

typedef struct table {
    tfw_columns *columns;
    tfw_columns *lists;
    uint64_t *bound[MOST_FEATURES];
} table;

static inline table table_new(const tfw_schema *schema, const tfw_schema *lists,
                       const tfwi_matcher *kernel) {
    table t = {.columns = NULL};
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &t.columns, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(lists, TFW_FEATURE_LISTS, &t.lists, NULL));
    t.columns->kernel = t.lists->kernel = kernel;
    for (size_t i = 0; i < schema->count; i++) {
        if (t.columns->columns[i].bound) { /* exactly its size, for sanitizers to guard */
            size_t size = BATCH * (size_t)t.columns->columns[i].count *
                          t.columns->columns[i].value_size;
            t.bound[i] = calloc(1, size != 0 ? size : 1);
            CHECK_EQ(TFW_OK, tfw_columns_bind(t.columns, i, t.bound[i], BATCH, NULL));
        }
    }
    return t;
}

static inline void table_free(table *t) {
    tfw_columns_free(t->columns);
    tfw_columns_free(t->lists);
    for (size_t i = 0; i < MOST_FEATURES; i++) {
        free(t->bound[i]);
    }
}

static inline bool same_bytes(const void *a, const void *b, size_t len) {
    return (a == NULL) == (b == NULL) && (a == NULL || len == 0 || memcmp(a, b, len) == 0);
}

static inline void compare_columns(tfw_columns *a, tfw_columns *b) {
    CHECK_EQ(a->records, b->records);
    for (size_t i = 0; i < a->schema->count; i++) {
        if (a->columns[i].bound) {
            size_t size = (size_t)(a->records * a->columns[i].count) * a->columns[i].value_size;
            CHECK(same_bytes(a->columns[i].values.of, b->columns[i].values.of, size));
            continue;
        }
        tfw_column x, y;
        CHECK_EQ(TFW_OK, tfw_columns_peek(a, i, &x, NULL));
        CHECK_EQ(TFW_OK, tfw_columns_peek(b, i, &y, NULL));
        CHECK_EQ(x.value_count, y.value_count);
        CHECK_EQ(x.byte_count, y.byte_count);
        CHECK_EQ(x.cell_count, y.cell_count);
        if (x.value_count == y.value_count && x.cell_count == y.cell_count) {
            CHECK(same_bytes(x.values, y.values, (size_t)x.byte_count));
            CHECK(same_bytes(x.offsets, y.offsets, (size_t)(x.value_count + 1) * 8));
            CHECK(same_bytes(x.splits, y.splits, (size_t)(x.cell_count + 1) * 8));
            CHECK(same_bytes(x.steps, y.steps, (size_t)(a->records + 1) * 8));
        }
    }
    tfw_columns_clear(a);
    tfw_columns_clear(b);
}

static inline void compare_errors(const tfw_error *a, const tfw_error *b) {
    CHECK_EQ(a->offset, b->offset);
    CHECK_EQ(a->feature, b->feature);
    CHECK_EQ(a->list, b->list);
    CHECK_EQ(a->row, b->row);
    CHECK_EQ(a->expected, b->expected);
    CHECK_EQ(a->found, b->found);
    CHECK(strcmp(a->text, b->text) == 0);
}

/* Parses a message that ends with the readable memory or has room after it. */
static inline void parse_both(table *complete, table *fast, blob message, bool sequence) {
    tfw_error errors[2];
    size_t room = one_in(2) ? 0 : below(2) * TFWI_MATCH_ROOM + below(300);
    unsigned flags = (unsigned)below(4);
    bool anywhere = one_in(3);
    room = anywhere ? 0 : room;
    uint8_t *data = malloc(message.len + room + 1);
    memcpy(data + 1, message.data, message.len);
    memset(data + 1 + message.len, (int)below(256), room);
    tfw_span span = {1, message.len};
    int status[2];
    table *tables[2] = {complete, fast};
    for (size_t i = 0; i < 2; i++) {
        table *t = tables[i];
        size_t len = message.len + room + 1, done;
        if (i == 1 && anywhere) { /* in a block of its own, with nothing to be read around it */
            span.offset = (uintptr_t)(data + 1);
            flags |= TFW_ADDRESSES;
        }
        status[i] = sequence ? tfw_parse_sequence(t->columns, t->lists, data, len, &span, 1, flags,
                                                  &done, &errors[i])
                             : tfw_parse(t->columns, data, len, &span, 1, flags, &done, &errors[i]);
    }
    CHECK_EQ(status[0], status[1]);
    if (status[0] != TFW_OK && status[0] == status[1]) {
        compare_errors(&errors[0], &errors[1]);
    }
    free(data);
}

#endif /* TFWIRE_TESTS_KERNELS_H */
