/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of Arrow that the input chooses, and a slow model of what they hold: by the columns that
 * the parser gives, one record after the other. */
#ifndef TFWIRE_TESTS_FUZZ_ARROW_MODEL_H
#define TFWIRE_TESTS_FUZZ_ARROW_MODEL_H

#include "table.h"

#include "arrow_check.h"
#include "parse/columns.h"
#include "tfwire_arrow.h"
#include "tfwire_pipeline.h"

enum { MOST_FIELDS = 6, MOST_RECORDS = 16, MOST_RANK = 3, MOST_ROW_ID = 1 << 12 };

/* ---- Fields --------------------------------------------------------------------------------- */

/* What a tfw_arrow_field points to. */
typedef struct held {
    char name[8];
    uint64_t shape[MOST_RANK];
    tfw_partition partitions[MOST_RANK];
    uint64_t indices[MOST_RANK];
} held;

typedef struct plan {
    specs parts[2]; /* context; lists */
    bool sequence;
    unsigned flags;
    tfw_arrow_field fields[MOST_FIELDS];
    held held[MOST_FIELDS];
    size_t count;
} plan;

/* A column of numbers for rows or indices, from a guess on. */
static inline bool find_numbers(const specs *s, size_t guess, uint64_t *out) {
    for (size_t i = 0; i < s->count; i++) {
        *out = (guess + i) % s->count;
        if (s->features[*out].kind == TFW_INT64 && s->features[*out].layout == TFW_VARIABLE) {
            return true;
        }
    }
    return false;
}

static inline void choose_variable(tfw_arrow_field *f, held *h, const specs *s, uint8_t how,
                                   input *in) {
    const bool sparse = !f->is_list && (how & 0x40) != 0;
    const uint64_t count = sparse ? 1 + how % MOST_RANK : how % (MOST_RANK + 1);
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t choice = input_byte(in);
        const bool numbers = find_numbers(s, choice >> 3, &found);
        h->partitions[i] = (tfw_partition){.kind = numbers ? choice % 6 : 0, .column = found,
                                           .length = 1 + choice / 8 % 3};
        h->indices[i] = found;
    }
    if (sparse) {
        f->index_count = find_numbers(s, 0, &found) ? count : 0;
        return;
    }
    f->partition_count = count;
    f->rank = how / 4 % 4;
    for (uint64_t i = 0; i < f->rank; i++) {
        h->shape[i] = i == 1 ? 2 : (how >> 4 & 1) + i % 2;
    }
    f->rank = f->rank > MOST_RANK ? MOST_RANK : f->rank;
}

/* One of the shapes whose product is the feature's count. */
static inline void choose_shape(tfw_arrow_field *f, held *h, uint64_t count, uint8_t how) {
    f->rank = count == 1 ? how % 4 : 1 + how % MOST_RANK;
    f->rank = f->rank > MOST_RANK ? MOST_RANK : f->rank;
    for (uint64_t i = 0; i < f->rank; i++) {
        h->shape[i] = i == how / 4 % f->rank ? count : 1 + 2 * (count == 0);
    }
}

static inline void add_field(plan *p, input *in) {
    tfw_arrow_field *f = &p->fields[p->count];
    held *h = &p->held[p->count];
    const uint8_t which = input_byte(in), how = input_byte(in);
    const bool is_list = p->sequence && (which & 1) != 0;
    const specs *s = &p->parts[is_list];
    if (s->count == 0) {
        return;
    }
    snprintf(h->name, sizeof h->name, "f%zu", p->count++);
    *f = (tfw_arrow_field){.name = h->name, .column = (which >> 1) % s->count, .is_list = is_list,
                           .strings = which >> 5 & 3, .shape = h->shape,
                           .partitions = h->partitions, .index_columns = h->indices};
    if ((which & 0x80) != 0) {
        f->metadata = (const uint8_t *)"\0\0\0\0";
        f->metadata_len = 4;
    }
    const tfw_feature *feature = &s->features[f->column];
    if (feature->layout == TFW_VARIABLE) {
        choose_variable(f, h, s, how, in);
    } else {
        choose_shape(f, h, feature->count, how);
    }
}

/* ---- The model ------------------------------------------------------------------------------ */

/* Columns, lent, and how many of their records every field holds. */
typedef struct arrow_model {
    const plan *plan;
    tfw_columns *parts[2];
    tfw_column columns[2][MAX_FEATURES];
    size_t records;
    uint64_t hashes[MOST_FIELDS][MOST_RECORDS];
    bool good[MOST_FIELDS][MOST_RECORDS];
    bool utf8; /* so far, of the record at hand */
} arrow_model;

static inline uint64_t hash_value(arrow_model *m, const tfw_arrow_field *f, int64_t i) {
    const tfw_column *c = &m->columns[f->is_list][f->column];
    const int32_t kind = m->plan->parts[f->is_list].features[f->column].kind;
    const uint8_t *p = c->values;
    if (kind != TFW_BYTES) {
        const size_t size = size_of_kind(kind);
        return fuzz_hash(LIST_HASH, p + (size_t)i * size, size);
    }
    const size_t len = (size_t)(c->offsets[i + 1] - c->offsets[i]);
    m->utf8 = m->utf8 && (f->strings < TFW_LARGE_STRING || is_utf8_text(p + c->offsets[i], len));
    return fuzz_hash(LIST_HASH, p + c->offsets[i], len);
}

/* Values [*at, ...) as one element of a shape. */
static inline uint64_t hash_element(arrow_model *m, const tfw_arrow_field *f, uint64_t level,
                                    int64_t *at) {
    uint64_t h = LIST_HASH;
    if (level == f->rank) {
        return hash_value(m, f, (*at)++);
    }
    for (uint64_t i = 0; i < f->shape[level]; i++) {
        h = fuzz_hash_number(h, hash_element(m, f, level + 1, at));
    }
    return h;
}

static inline int64_t element_size(const tfw_arrow_field *f) {
    int64_t size = 1;
    for (uint64_t i = 0; i < f->rank; i++) {
        size *= (int64_t)f->shape[i];
    }
    return size;
}

/* The rows of one partition in one cell. */
typedef struct rows {
    const int64_t *numbers;
    int64_t count;  /* of them */
    int64_t inner;  /* what they divide */
    int64_t rows;
} rows;

static inline int64_t last_of(const rows *r) {
    return r->count != 0 ? r->numbers[r->count - 1] : -1;
}

/* Where row i begins; of the row after the last, where it ends. */
static inline int64_t row_begin(const tfw_partition *p, const rows *r, int64_t i) {
    int64_t sum = 0;
    switch (p->kind) {
    case TFW_UNIFORM_ROW_LENGTH: return i * (int64_t)p->length;
    case TFW_ROW_LENGTHS:
        for (int64_t k = 0; k < i; k++) {
            sum += r->numbers[k];
        }
        return sum;
    case TFW_ROW_SPLITS: return i < r->count ? r->numbers[i] : 0;
    case TFW_ROW_STARTS: return i < r->count ? r->numbers[i] : i == 0 ? 0 : r->inner;
    case TFW_ROW_LIMITS: return i == 0 ? 0 : r->numbers[i - 1];
    default:
        while (sum < r->count && r->numbers[sum] < i) {
            sum++;
        }
        return sum;
    }
}

/* Counts the rows; false: the numbers do not divide all of the inner ones in order. */
static inline bool count_rows(const tfw_partition *p, rows *r) {
    const int64_t most = p->kind == TFW_VALUE_ROW_IDS ? MOST_ROW_ID : r->inner;
    for (int64_t i = 0; i < r->count && p->kind != TFW_UNIFORM_ROW_LENGTH; i++) {
        if (r->numbers[i] < 0 || r->numbers[i] > most) {
            return false;
        }
    }
    r->rows = p->kind == TFW_UNIFORM_ROW_LENGTH ? r->inner / (int64_t)p->length
              : p->kind == TFW_ROW_SPLITS       ? r->count - (r->count != 0)
              : p->kind == TFW_VALUE_ROW_IDS    ? last_of(r) + 1 : r->count;
    if (p->kind == TFW_VALUE_ROW_IDS && r->count != r->inner) {
        return false;
    }
    for (int64_t i = 1; i < r->count && p->kind == TFW_VALUE_ROW_IDS; i++) {
        if (r->numbers[i] < r->numbers[i - 1]) {
            return false;
        }
    }
    for (int64_t i = 0; i < r->rows; i++) {
        if (row_begin(p, r, i) > row_begin(p, r, i + 1)) {
            return false;
        }
    }
    return row_begin(p, r, 0) == 0 && row_begin(p, r, r->rows) == r->inner;
}

static inline uint64_t hash_rows(arrow_model *m, const tfw_arrow_field *f, const rows *levels,
                                 uint64_t level, int64_t first, int64_t last, int64_t *at) {
    uint64_t h = LIST_HASH;
    for (int64_t i = first; i < last; i++) {
        const tfw_partition *p = &f->partitions[level];
        h = fuzz_hash_number(h, level == f->partition_count
                                    ? hash_element(m, f, 0, at)
                                    : hash_rows(m, f, levels, level + 1,
                                                row_begin(p, &levels[level], i),
                                                row_begin(p, &levels[level], i + 1), at));
    }
    return h;
}

/* A cell of a variable column. */
static inline bool hash_cell(arrow_model *m, const tfw_arrow_field *f, int64_t cell,
                             uint64_t *out) {
    const tfw_column *c = &m->columns[f->is_list][f->column];
    int64_t at = c->splits[cell];
    const int64_t count = c->splits[cell + 1] - at, size = element_size(f);
    rows levels[MOST_RANK];
    int64_t inner = size != 0 ? count / size : 0;
    if (inner * size != count) {
        return false;
    }
    for (uint64_t k = f->partition_count; k-- > 0;) {
        const tfw_partition *p = &f->partitions[k];
        const tfw_column *numbers = &m->columns[f->is_list][p->column];
        levels[k] = (rows){.inner = inner};
        if (p->kind != TFW_UNIFORM_ROW_LENGTH) {
            levels[k].numbers = (const int64_t *)numbers->values + numbers->splits[cell];
            levels[k].count = numbers->splits[cell + 1] - numbers->splits[cell];
        }
        if (!count_rows(p, &levels[k])) {
            return false;
        }
        inner = levels[k].rows;
    }
    *out = hash_rows(m, f, levels, 0, 0, inner, &at);
    return true;
}

static inline bool is_absent(const tfw_column *c, size_t record) {
    for (uint64_t i = 0; i < c->absent_count; i++) {
        if (c->absent[i] == (int64_t)record) {
            return true;
        }
    }
    return false;
}

static inline bool all_absent(const arrow_model *m, const tfw_arrow_field *f, size_t record) {
    const tfw_column *columns = m->columns[f->is_list];
    const tfw_feature *feature = &m->plan->parts[f->is_list].features[f->column];
    bool absent = (f->is_list || feature->layout != TFW_DENSE) &&
                  is_absent(&columns[f->column], record);
    for (uint64_t i = 0; i < f->partition_count; i++) {
        absent = absent && (f->partitions[i].kind == TFW_UNIFORM_ROW_LENGTH ||
                            is_absent(&columns[f->partitions[i].column], record));
    }
    for (uint64_t i = 0; i < f->index_count; i++) {
        absent = absent && is_absent(&columns[f->index_columns[i]], record);
    }
    return absent;
}

static inline bool is_kindless(const arrow_model *m, uint64_t column, int64_t cell) {
    const tfwi_int64s *found = &m->parts[1]->columns[column].kindless;
    for (size_t i = 0; i < found->count; i++) {
        if (found->of[i] == cell) {
            return true;
        }
    }
    return false;
}

/* Whether no feature of a step has a kind. */
static inline bool all_kindless(const arrow_model *m, const tfw_arrow_field *f, int64_t cell) {
    bool kindless = is_kindless(m, f->column, cell);
    for (uint64_t i = 0; i < f->partition_count; i++) {
        kindless = kindless && (f->partitions[i].kind == TFW_UNIFORM_ROW_LENGTH ||
                                is_kindless(m, f->partitions[i].column, cell));
    }
    return kindless;
}

static inline bool hash_sparse(arrow_model *m, const tfw_arrow_field *f, size_t record,
                               uint64_t *out) {
    const tfw_column *columns = m->columns[0], *c = &columns[f->column];
    uint64_t rows_hash = LIST_HASH, values_hash = LIST_HASH;
    for (int64_t i = c->splits[record]; i < c->splits[record + 1]; i++) {
        uint64_t row = LIST_HASH;
        for (uint64_t k = 0; k < f->index_count; k++) {
            const tfw_column *index = &columns[f->index_columns[k]];
            const int64_t at = index->splits[record] + i - c->splits[record];
            if (at >= index->splits[record + 1]) {
                return false;
            }
            const uint64_t one = fuzz_hash(LIST_HASH, (const int64_t *)index->values + at, 8);
            row = f->index_count == 1 ? one : fuzz_hash_number(row, one);
        }
        rows_hash = fuzz_hash_number(rows_hash, row);
        values_hash = fuzz_hash_number(values_hash, hash_value(m, f, i));
    }
    for (uint64_t k = 0; k < f->index_count; k++) {
        const int64_t *splits = columns[f->index_columns[k]].splits;
        if (splits[record + 1] - splits[record] != c->splits[record + 1] - c->splits[record]) {
            return false;
        }
    }
    *out = fuzz_hash_number(fuzz_hash_number(LIST_HASH, rows_hash), values_hash);
    return true;
}

/* A record of a field: what it holds, unless it does not fit. */
static inline bool hash_record(arrow_model *m, const tfw_arrow_field *f, size_t record,
                               uint64_t *out) {
    const tfw_column *columns = m->columns[f->is_list], *c = &columns[f->column];
    const bool variable = m->plan->parts[f->is_list].features[f->column].layout != TFW_DENSE;
    if (f->index_count != 0) {
        return hash_sparse(m, f, record, out);
    }
    uint64_t h = LIST_HASH;
    const int64_t first = f->is_list ? c->steps[record] : (int64_t)record;
    const int64_t last = f->is_list ? c->steps[record + 1] : first + 1;
    for (uint64_t k = 0; f->is_list && k < f->partition_count; k++) {
        const tfw_partition *p = &f->partitions[k];
        if (p->kind != TFW_UNIFORM_ROW_LENGTH && columns[p->column].steps[record + 1] != last) {
            return false;
        }
    }
    for (int64_t cell = first; cell < last; cell++) {
        int64_t at = cell * element_size(f);
        uint64_t one = 0;
        if (!variable) {
            one = hash_element(m, f, 0, &at);
        } else if (!hash_cell(m, f, cell, &one)) {
            return false;
        }
        one = f->is_list && variable && all_kindless(m, f, cell) ? NULL_HASH : one;
        h = f->is_list ? fuzz_hash_number(h, one) : one;
    }
    *out = h;
    return true;
}

/* The first record that some field cannot hold. */
static inline size_t model_run(arrow_model *m) {
    size_t first_bad = m->records;
    for (size_t i = 0; i < m->plan->count; i++) {
        const tfw_arrow_field *f = &m->plan->fields[i];
        bool steps = true; /* of values and partitions agree so far: later cells have none beside */
        for (size_t r = 0; r < m->records; r++) {
            m->utf8 = true;
            steps = steps && hash_record(m, f, r, &m->hashes[i][r]);
            m->good[i][r] = steps && m->utf8;
            if (all_absent(m, f, r)) {
                m->hashes[i][r] = NULL_HASH;
            }
            if (!m->good[i][r] && r < first_bad) {
                first_bad = r;
            }
        }
    }
    return first_bad;
}

#endif /* TFWIRE_TESTS_FUZZ_ARROW_MODEL_H */
