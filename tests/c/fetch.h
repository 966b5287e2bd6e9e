/* SPDX-License-Identifier: Apache-2.0 */
/* Records by number, and what a pipeline must deliver of them: what a plain look finds. */
#ifndef TFWIRE_TESTS_FETCH_H
#define TFWIRE_TESTS_FETCH_H

#include "pipeline.h"

#ifdef _WIN32
#define READ_FLAGS (O_RDONLY | O_BINARY)
#else
#define READ_FLAGS O_RDONLY
#endif

enum { MOST_ASKED = 3000 };

/* Files, the offsets that their indexes say, and what is asked for. */
typedef struct library {
    fileset set;
    int64_t *offsets[MOST_FILES];
    tfw_indexed_file indexed[MOST_FILES];
    int64_t numbers[MOST_ASKED];
    size_t asked, order; /* records of an order */
    uint32_t flags;
    bool parses;
    bool gives; /* the records themselves are ordered, not their numbers */
    tfw_draw draw; /* unless its count is 0, what the numbers are computed from */
} library;

static inline void library_add(library *l, file f) {
    const size_t i = l->set.count;
    fileset_add(&l->set, f);
    l->offsets[i] = calloc(f.count + 1, sizeof(int64_t));
    for (size_t k = 0; k < f.count; k++) {
        l->offsets[i][k + 1] = (int64_t)f.ends[k];
    }
    l->indexed[i] = (tfw_indexed_file){l->offsets[i], f.count, NULL,
                                       open(l->set.paths[i], READ_FLAGS), 0};
}

static inline void library_free(library *l) {
    for (size_t i = 0; i < l->set.count; i++) {
        free(l->offsets[i]);
        close(l->indexed[i].fd);
        tfw_cache_free(l->indexed[i].cache);
    }
    fileset_free(&l->set);
}

static inline void with_caches(library *l) {
    for (size_t i = 0; i < l->set.count; i++) {
        tfw_cache_free(l->indexed[i].cache);
        CHECK_EQ(TFW_OK, tfw_cache_create(l->set.files[i].len, &l->indexed[i].cache, NULL));
    }
}

static inline void without_caches(library *l) {
    for (size_t i = 0; i < l->set.count; i++) {
        tfw_cache_free(l->indexed[i].cache);
        l->indexed[i].cache = NULL;
    }
}

/* Some numbers, often of neighbours, and some twice. */
static inline void ask(library *l, uint64_t seed, size_t count) {
    uint64_t state = 2 * seed + 1, total = 0;
    for (size_t i = 0; i < l->set.count; i++) {
        total += l->set.files[i].count;
    }
    l->asked = count;
    for (size_t i = 0; i < count; i++) {
        const bool is_near = i != 0 && check_random(&state) % 3 == 0;
        l->numbers[i] = is_near ? (l->numbers[i - 1] + 1) % (int64_t)total
                                : (int64_t)(check_random(&state) % total);
    }
}

/* Numbers that are computed from where they are in an order. */
static inline void ask_drawn(library *l, tfw_draw draw) {
    l->draw = draw;
    l->asked = (size_t)draw.count;
    for (size_t i = 0; i < l->asked; i++) {
        l->numbers[i] = draw.first + (int64_t)i * draw.step;
        if (draw.size != 0) {
            CHECK_EQ(TFW_OK, tfw_permute(draw.key, draw.size, &l->numbers[i], 1, NULL));
            l->numbers[i] = draw.begin + draw.stride * l->numbers[i];
        }
    }
}

/* ---- The model ------------------------------------------------------------------------------ */

/* The record that was asked for as the one of an index. */
static inline int model_one(const library *l, table *t, size_t index, delivered *d) {
    int64_t number = l->numbers[index];
    size_t i = 0;
    for (; (uint64_t)number >= l->indexed[i].count; i++) {
        number -= (int64_t)l->indexed[i].count;
    }
    const file *f = &l->set.files[i];
    const int64_t begin = l->offsets[i][number], size = l->offsets[i][number + 1] - begin;
    d->stopped = (tfw_place){i, (uint64_t)number, (uint64_t)begin};
    if (l->gives) {
        number = (int64_t)index;
        d->stopped = (tfw_place){0, index, 0};
    }
    d->error = (tfw_error){.record = number};
    if (begin < 0 || size < TFWI_FRAME_SIZE) {
        return TFW_E_ARGUMENT;
    }
    if ((uint64_t)(begin + size) > f->len) {
        return TFW_E_TRUNCATED;
    }
    const uint8_t *record = f->data + begin;
    int status = tfw_verify_record(record, record + TFW_HEADER_SIZE,
                                   (uint64_t)(size - TFWI_FRAME_SIZE), record + size - 4, NULL);
    if (status == TFW_OK && !l->parses) {
        bytes_append(&d->payloads, record + TFW_HEADER_SIZE, (size_t)size - TFWI_FRAME_SIZE);
    } else if (status == TFW_OK) {
        const tfw_span span = {TFW_HEADER_SIZE, (uint64_t)(size - TFWI_FRAME_SIZE)};
        status = t->lists != NULL ? tfw_parse_sequence(t->context, t->lists, record, (size_t)size,
                                                       &span, 1, 0, NULL, NULL)
                                  : tfw_parse(t->context, record, (size_t)size, &span, 1, 0, NULL,
                                              NULL);
    }
    d->records += status == TFW_OK;
    return status;
}

static inline void model_library(const library *l, delivered *d) {
    table t = table_of_model(l->flags);
    *d = (delivered){.status = TFW_OK};
    for (size_t i = 0; i < l->asked && d->status == TFW_OK; i++) {
        d->status = model_one(l, &t, i, d);
    }
    d->status = d->status == TFW_OK ? TFW_END : d->status;
    for (size_t i = 0; i < 4 && l->parses; i++) {
        tfw_column c;
        if (i < 3 || t.lists != NULL) {
            CHECK_EQ(TFW_OK, tfw_columns_peek(i == 3 ? t.lists : t.context, i % 3, &c, NULL));
            append_column(d->columns[i], &c, d->records, 0, 0);
        }
    }
    table_free(&t);
}

/* ---- The pipeline --------------------------------------------------------------------------- */

static inline tfw_pipeline *pipeline_over(const library *l, const table *t, uint32_t threads) {
    const tfw_pipeline_options options = {
        .size = sizeof options,
        .context = l->parses ? t->schema : NULL,
        .lists = (l->flags & TFW_SEQUENCE) != 0 ? t->list_schema : NULL,
        .batch_size = l->parses ? 4 : 0,
        .num_threads = threads,
        .mode = l->parses ? TFW_PIPELINE_PARSE : TFW_PIPELINE_SPANS,
        .flags = l->flags | (l->gives ? (uint32_t)TFW_PIPELINE_GIVEN : 0),
        .indexed = l->gives ? NULL : l->indexed,
        .indexed_count = l->gives ? 0 : l->set.count,
    };
    tfw_pipeline *p = NULL;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    return p;
}

static inline void take_fetched(const library *l, const tfw_chunk *chunk, delivered *d) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    CHECK(info.records != 0 && info.begin.record == d->records);
    CHECK_EQ(info.begin.record + info.records, info.end.record);
    CHECK(info.begin.record % l->order == 0 && info.records <= l->order); /* an order */
    for (size_t i = 0; i < COLUMNS && l->parses; i++) {
        tfw_column c;
        const int status = tfw_chunk_column(chunk, i == 3, i % 3, &c, NULL);
        CHECK_EQ(i < 3 || (l->flags & TFW_SEQUENCE) != 0 ? TFW_OK : TFW_E_ARGUMENT, status);
        append_column(d->columns[i], &c, info.records, 0, 0);
    }
    for (size_t i = 0; i < info.records && !l->parses; i++) {
        CHECK(info.spans[i].offset + info.spans[i].length + 4 <= info.data_len);
        bytes_append(&d->payloads, info.data + info.spans[i].offset,
                     (size_t)info.spans[i].length);
    }
    d->records += info.records;
}

static inline int order_records(const library *l, tfw_pipeline *p, size_t first, size_t count) {
    if (l->draw.count != 0) {
        tfw_draw draw = l->draw;
        draw.count = count;
        draw.first += (int64_t)first * draw.step;
        return tfw_pipeline_draw(p, &draw, NULL);
    }
    if (!l->gives) {
        return tfw_pipeline_fetch(p, l->numbers + first, count, NULL);
    }
    tfw_span *spans = calloc(count, sizeof *spans);
    for (size_t k = 0; k < count; k++) {
        int64_t number = l->numbers[first + k];
        size_t i = 0;
        for (; (uint64_t)number >= l->indexed[i].count; i++) {
            number -= (int64_t)l->indexed[i].count;
        }
        const file *f = &l->set.files[i];
        const size_t begin = file_begin(f, (size_t)number);
        spans[k] = (tfw_span){(uintptr_t)(f->data + begin + TFW_HEADER_SIZE),
                              f->ends[number] - begin - TFWI_FRAME_SIZE};
    }
    const int status = tfw_pipeline_give(p, spans, count, NULL);
    free(spans);
    return status;
}

/* Orders as much as there is room for, and takes all chunks. */
static inline void run_library(const library *l, tfw_pipeline *p, delivered *d) {
    tfw_chunk *chunk;
    size_t ordered = 0;
    *d = (delivered){.status = TFW_OK};
    while (d->status == TFW_OK) {
        int status = TFW_OK;
        while (ordered < l->asked && status == TFW_OK) {
            const size_t left = l->asked - ordered, count = left < l->order ? left : l->order;
            status = order_records(l, p, ordered, count);
            ordered += status == TFW_OK ? count : 0;
        }
        CHECK(status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_ARGUMENT);
        d->status = tfw_pipeline_next(p, -1, &chunk, &d->error);
        if (d->status == TFW_OK) {
            take_fetched(l, chunk, d);
            tfw_chunk_release(chunk);
        } else if (d->status < 0) {
            tfw_error again;
            tfw_pipeline_stopped(p, &d->stopped, &d->next);
            CHECK_EQ(d->status, tfw_pipeline_next(p, -1, &chunk, &again));
            CHECK_EQ(TFW_E_ARGUMENT, tfw_pipeline_seek(p, &d->stopped, NULL));
            CHECK_EQ(TFW_E_ARGUMENT, order_records(l, p, 0, 1));
        }
    }
}

static inline void check_fetched(const delivered *e, const delivered *d) {
    CHECK_EQ(e->records, d->records);
    CHECK_EQ(e->status, d->status);
    CHECK(same_data(&e->payloads, &d->payloads));
    for (size_t i = 0; i < COLUMNS; i++) {
        for (size_t k = 0; k < 4; k++) { /* absence is not noted */
            CHECK(same_data(&e->columns[i][k], &d->columns[i][k]));
        }
    }
    if (e->status < 0) {
        CHECK_EQ(e->error.record, d->error.record);
        CHECK(same_place(&e->stopped, &d->stopped));
        CHECK(d->status != TFW_E_DATA_CRC || d->error.offset == (int64_t)d->stopped.offset);
    }
}

static inline void check_orders(library *l) {
    static const size_t orders[] = {1, 7, 300, MOST_ASKED};
    delivered expected, found;
    model_library(l, &expected);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < COUNT(orders); k++) {
            table t = table_new((l->flags & TFW_SEQUENCE) != 0);
            tfw_pipeline *p = pipeline_over(l, &t, thread_counts[i]);
            l->order = orders[k];
            run_library(l, p, &found);
            check_fetched(&expected, &found);
            delivered_free(&found);
            tfw_pipeline_free(p);
            table_free(&t);
        }
    }
    delivered_free(&expected);
}

static inline void check_modes(library *l) {
    for (int i = 0; i < 4; i++) {
        l->parses = i % 2 == 0;
        if (i == 2) {
            with_caches(l);
        }
        check_orders(l);
    }
    without_caches(l);
}

static inline library some_files(bool sequence) {
    library l = {.flags = sequence ? TFW_SEQUENCE : 0};
    for (size_t i = 0; i < 12; i++) {
        library_add(&l, file_of_examples(i, i % 4 == 1 ? 0 : i == 6 ? 600 : 20 + i, sequence));
    }
    return l;
}

#endif
