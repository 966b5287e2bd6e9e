/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that the input chooses, and columns with the memory that is bound to them. */
#ifndef TFWIRE_TESTS_FUZZ_TABLE_H
#define TFWIRE_TESTS_FUZZ_TABLE_H

#include "fuzz.h"

enum { MAX_FEATURES = 8 };

typedef struct specs {
    tfw_feature features[MAX_FEATURES];
    size_t count;
    tfw_schema *schema;
} specs;

static const char *const spec_keys[MAX_FEATURES] = {
    "a", "b", "", "ab", "a key of more than eight bytes", "a key", "\xff\xfe", "abcdefgh"};

/* A feature out of one byte. */
static inline tfw_feature spec_of(uint8_t choice, size_t i, bool lists) {
    static const int64_t ints[5] = {7, -8, 9, INT64_MIN, 1 << 20};
    static const float floats[5] = {1.5f, -2, 0, 1e9f, 3};
    static const char strings[] = "xyz and so on";
    static const int64_t offsets[6] = {0, 1, 1, 3, 3, 13};
    static const void *const values[4] = {NULL, strings, floats, ints};
    static const uint64_t counts[4] = {1, 0, 2, 5};
    tfw_feature f = {.name = spec_keys[i], .name_len = strlen(spec_keys[i])};
    f.kind = choice % 4 != 0 ? choice % 4 : TFW_INT64;
    f.layout = (choice & 64) != 0 ? TFW_REPEATED : (choice & 4) != 0 ? TFW_VARIABLE : TFW_DENSE;
    f.count = counts[choice >> 3 & 3];
    f.has_default = f.layout == TFW_DENSE && (choice & 32) != 0;
    if (f.has_default && !lists) {
        f.default_values = values[f.kind];
        f.default_offsets = f.kind == TFW_BYTES ? offsets : NULL;
    }
    return f;
}

/* How many features, and a byte for each. */
static inline void specs_init(specs *s, input *in, bool lists) {
    s->count = input_byte(in) % (MAX_FEATURES + 1);
    for (size_t i = 0; i < s->count; i++) {
        s->features[i] = spec_of(input_byte(in), i, lists);
    }
    CHECK_EQ(TFW_OK, tfw_schema_create(s->features, s->count, SEED, &s->schema, NULL));
}

/* Columns under construction; once taken, what they held. */
typedef struct table {
    const specs *specs;
    bool lists;
    tfw_columns *columns;
    void *bound[MAX_FEATURES];
    tfw_column taken[MAX_FEATURES];
    uint64_t records;
} table;

static inline bool is_bound(const table *t, size_t i) {
    const tfw_feature *f = &t->specs->features[i];
    return !t->lists && f->layout == TFW_DENSE && f->kind != TFW_BYTES;
}

static inline size_t size_of_kind(int32_t kind) {
    return kind == TFW_INT64 ? 8 : kind == TFW_FLOAT ? 4 : 0;
}

static inline void table_init(table *t, const specs *s, bool lists, uint64_t capacity) {
    *t = (table){.specs = s, .lists = lists};
    unsigned flags = lists ? TFW_FEATURE_LISTS : 0;
    CHECK_EQ(TFW_OK, tfw_columns_create(s->schema, flags, &t->columns, NULL));
    for (size_t i = 0; i < s->count; i++) {
        if (is_bound(t, i)) {
            size_t record = (size_t)s->features[i].count * size_of_kind(s->features[i].kind);
            t->bound[i] = fuzz_alloc(record * (size_t)capacity);
            CHECK_EQ(TFW_OK, tfw_columns_bind(t->columns, i, t->bound[i], capacity, NULL));
        }
    }
}

static inline void table_free(table *t) {
    for (size_t i = 0; i < t->specs->count; i++) {
        free(t->bound[i]);
        tfw_free(t->taken[i].values);
        tfw_free(t->taken[i].offsets);
        tfw_free(t->taken[i].splits);
        tfw_free(t->taken[i].steps);
    }
    tfw_columns_free(t->columns);
}

/* count + 1 offsets from 0 to last. */
static inline void check_offsets(const int64_t *offsets, uint64_t count, uint64_t last) {
    CHECK_EQ(0, offsets[0]);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(offsets[i] <= offsets[i + 1]);
    }
    CHECK_EQ(last, offsets[count]);
}

static inline void check_column(const table *t, size_t i) {
    const tfw_feature *f = &t->specs->features[i];
    const tfw_column *c = &t->taken[i];
    bool variable = f->layout != TFW_DENSE;
    CHECK(c->values != NULL);
    CHECK((c->offsets != NULL) == (f->kind == TFW_BYTES));
    CHECK((c->splits != NULL) == variable && (c->steps != NULL) == t->lists);
    CHECK(t->lists || c->cell_count == t->records);
    CHECK(variable || c->value_count == c->cell_count * f->count);
    CHECK(f->kind == TFW_BYTES || c->byte_count == c->value_count * size_of_kind(f->kind));
    if (c->offsets != NULL) {
        check_offsets(c->offsets, c->value_count, c->byte_count);
    }
    if (c->splits != NULL) {
        check_offsets(c->splits, c->cell_count, c->value_count);
    }
    if (c->steps != NULL) {
        check_offsets(c->steps, t->records, c->cell_count);
    }
}

/* Takes every column that was grown. */
static inline void table_take(table *t) {
    t->records = tfw_columns_records(t->columns);
    for (size_t i = 0; i < t->specs->count; i++) {
        if (!is_bound(t, i)) {
            CHECK_EQ(TFW_OK, tfw_columns_take(t->columns, i, &t->taken[i], NULL));
            check_column(t, i);
        }
    }
}

static inline bool same_bytes(const void *a, const void *b, uint64_t size) {
    return a == NULL ? b == NULL : b != NULL && memcmp(a, b, (size_t)size) == 0;
}

/* Two tables of one schema hold the same. */
static inline void check_tables(const table *a, const table *b) {
    CHECK_EQ(a->records, b->records);
    for (size_t i = 0; i < a->specs->count && a->records == b->records; i++) {
        const tfw_feature *f = &a->specs->features[i];
        const tfw_column *c = &a->taken[i], *d = &b->taken[i];
        CHECK(same_bytes(a->bound[i], b->bound[i],
                         a->records * f->count * size_of_kind(f->kind)));
        bool same = c->value_count == d->value_count && c->byte_count == d->byte_count &&
                    c->cell_count == d->cell_count;
        CHECK(same);
        CHECK(same && same_bytes(c->values, d->values, c->byte_count));
        CHECK(same && same_bytes(c->offsets, d->offsets, 8 * (c->value_count + 1)));
        CHECK(same && same_bytes(c->splits, d->splits, 8 * (c->cell_count + 1)));
        CHECK(same && same_bytes(c->steps, d->steps, 8 * (a->records + 1)));
    }
}

#endif /* TFWIRE_TESTS_FUZZ_TABLE_H */
