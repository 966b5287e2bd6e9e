/* SPDX-License-Identifier: Apache-2.0 */
/* Records by number, in any order: a range is an order of some of them. Or of records that somebody
 * else has read, and that lie anywhere in memory: these are parsed, and that is all.
 *
 *     order: 7 2 9 3 --> extents, sorted --> groups that lie close together: one read each
 *                                             |
 *     records: 7 2 9 3, verified, as they were asked for --> columns, or spans
 *
 * Nothing is guessed, so ranges have no links. Of several records that are wrong, the one that was
 * asked for first counts. */
#include "pipeline/pipeline.h"

#include "base/system.h"
#include "records/cache.h"
#include "records/describe.h"
#include "records/indexed.h"
#include "records/read_at.h"

enum {
    LARGE = 1 << 16, /* bytes of a record from which on it must fit into its file to get memory */
    DIGIT = 11,      /* bits that are sorted by at a time */
    CACHED_AHEAD = 8 /* records of a cache that are on their way to the CPU */
};

/* An order, as far as it is read. */
typedef struct fetch {
    const tfw_pipeline *p;
    tfwi_worker *w;
    tfwi_range *r;
    uint8_t *records; /* one after the other, as they were asked for; NULL where they were given */
    size_t rows;      /* that are good so far, and those that are not read yet */
} fetch;

/* Rows that are read at once. */
typedef struct group {
    size_t count;
    size_t size;    /* of their bytes in the file */
    bool is_placed; /* they lie there as they are to lie in memory */
} group;

/* ---- What is wrong -------------------------------------------------------------------------- */

/* Ends the order before a row, for the reason that the range's error says. */
static void stop_before(fetch *f, size_t row, int status) {
    tfwi_range *r = f->r;
    tfwi_wanted wanted = {.number = r->first_row + row}; /* of those that were given */
    if (r->order.count != 0) {
        wanted = f->w->wanted.of[row];
    }
    r->status = status;
    r->at = (tfw_place){wanted.file, wanted.number, (uint64_t)wanted.begin};
    r->error.record = tfwi_saturated(wanted.number);
    f->rows = row;
}

static void stop_for_memory(fetch *f) {
    f->r->status = tfwi_fail(&f->r->error, TFW_E_MEMORY, "out of memory");
    f->rows = 0;
}

/* ---- Which records -------------------------------------------------------------------------- */

/* The rows in the order of their numbers: keys are the number, and below it the row. Sorted by some
 * bits after the others, from the lowest of the number on. */
static bool sort_rows(tfwi_worker *w, size_t count, unsigned row_bits, unsigned bits) {
    if (!TFWI_RESERVE(w->keys, 2 * (uint64_t)count)) {
        return false;
    }
    for (unsigned done = 0; done < bits; done += DIGIT) {
        uint64_t *from = w->keys.of, *to = from + count;
        size_t places[1 << DIGIT] = {0}, sum = 0;
        const unsigned shift = row_bits + done;
        for (size_t i = 0; i < count; i++) {
            places[(from[i] >> shift) & ((1 << DIGIT) - 1)]++;
        }
        for (size_t i = 0; i < 1 << DIGIT; i++) {
            const size_t here = places[i];
            places[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++) {
            to[places[(from[i] >> shift) & ((1 << DIGIT) - 1)]++] = from[i];
        }
        memcpy(from, to, count * sizeof *from);
    }
    return true;
}

static unsigned bits_of(uint64_t number) {
    unsigned bits = 0;
    for (; number != 0; number >>= 1) {
        bits++;
    }
    return bits;
}

/* Where a record is; its file lies at the file given or after it. */
static void find_extent(const tfw_pipeline *p, uint64_t number, size_t *file, tfwi_wanted *out) {
    while (number >= p->indexed.of[*file].end) {
        ++*file;
    }
    const tfwi_indexed *indexed = &p->indexed.of[*file];
    const uint64_t within = number - (indexed->end - indexed->file.count);
    tfwi_extent e = {0, 0};
    if (indexed->file.offsets != NULL) { /* else it is not open: no record of it is asked for */
        e = tfwi_extent_of(indexed->file.offsets, (int64_t)within);
    }
    *out = (tfwi_wanted){(uint32_t)*file, within, e.begin, (uint64_t)e.size, 0};
}

/* Finds all records of the order. Keys become rows, in the order of the files. */
static bool find_records(fetch *f) {
    tfwi_worker *w = f->w;
    const tfwi_int64s *order = &f->r->order;
    const size_t count = order->count;
    const unsigned row_bits = bits_of(count);
    const uint64_t total = f->p->indexed.of[f->p->indexed.count - 1].end;
    size_t file = 0;
    if (!TFWI_RESERVE(w->keys, count) || !TFWI_RESERVE(w->wanted, count)) {
        return false;
    }
    bool is_sorted = true;
    for (size_t i = 0; i < count; i++) {
        w->keys.of[i] = (uint64_t)order->of[i] << row_bits | i;
        is_sorted = is_sorted && (i == 0 || order->of[i - 1] <= order->of[i]);
    }
    if (!is_sorted && !sort_rows(w, count, row_bits, bits_of(total - 1))) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t row = (size_t)(w->keys.of[i] & ((UINT64_C(1) << row_bits) - 1));
        find_extent(f->p, w->keys.of[i] >> row_bits, &file, &w->wanted.of[row]);
        w->keys.of[i] = row;
    }
    return true;
}

/* Whether a record may be given memory: what an index says of a long one may not be true. */
static bool is_possible(fetch *f, size_t row) {
    const tfwi_wanted *wanted = &f->w->wanted.of[row];
    const int32_t fd = f->p->indexed.of[wanted->file].file.fd;
    const uint64_t begin = (uint64_t)wanted->begin;
    uint64_t size = 0;
    if (wanted->size == 0 || begin + wanted->size > INT64_MAX - TFWI_LARGEST_READ) {
        stop_before(f, row, tfwi_fail(&f->r->error, TFW_E_ARGUMENT,
                                      "offsets that cannot be those of records"));
        return false;
    }
    if (wanted->size > LARGE && tfwi_system_size(fd, &size) && begin + wanted->size > size) {
        tfwi_fail(&f->r->error, TFW_E_TRUNCATED, "the file ends within the record");
        f->r->error.offset = wanted->begin;
        f->r->error.expected = (int64_t)wanted->size;
        f->r->error.found = begin < size ? (int64_t)(size - begin) : 0;
        stop_before(f, row, TFW_E_TRUNCATED);
        return false;
    }
    return true;
}

/* Gives each record its place, and all of them memory, of the worker or of the block. */
static bool place_records(fetch *f) {
    tfwi_worker *w = f->w;
    tfwi_block *block = f->r->block;
    const bool stays = f->p->mode == TFW_PIPELINE_SPANS;
    tfwi_spans *spans = stays ? &block->spans : &w->spans;
    tfwi_bytes records = stays ? (tfwi_bytes){.of = block->data, .capacity = block->capacity}
                               : w->records;
    size_t end = 0;
    if (!TFWI_RESERVE(*spans, f->rows)) {
        return false;
    }
    for (size_t row = 0; row < f->rows && is_possible(f, row); row++) {
        tfwi_wanted *wanted = &w->wanted.of[row];
        spans->of[row] = (tfw_span){end + TFW_HEADER_SIZE, wanted->size - TFWI_FRAME_SIZE};
        wanted->at = end;
        if (tfwi_add_overflows(end, (size_t)wanted->size, &end)) {
            return false;
        }
    }
    const bool done = TFWI_RESERVE(records, end);
    if (stays) {
        block->data = records.of;
        block->capacity = records.capacity;
        block->end = end;
    } else {
        w->records = records;
        w->records.count = end;
    }
    f->records = records.of;
    return done;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* Verifies a record, of which the file had so many bytes; else the order ends before it. */
static void check_fetched(fetch *f, size_t row, uint64_t have) {
    const tfwi_wanted *wanted = &f->w->wanted.of[row];
    const uint8_t *record = f->records + wanted->at;
    tfw_error found;
    const int status = tfwi_verify_extent(record, (int64_t)wanted->size, have, &found);
    if (TFWI_UNLIKELY(status != TFW_OK)) {
        tfwi_report_damage(&f->r->error, found, record, wanted->number, (uint64_t)wanted->begin);
        stop_before(f, row, status);
    }
}

/* Reads one record to its place. */
static void read_record(fetch *f, size_t row) {
    const tfwi_wanted *wanted = &f->w->wanted.of[row];
    const int32_t fd = f->p->indexed.of[wanted->file].file.fd;
    size_t got = 0;
    const int status = tfw_read_at(fd, f->records + wanted->at, (size_t)wanted->size,
                                   (uint64_t)wanted->begin, &got, &f->r->error);
    if (status != TFW_OK) {
        stop_before(f, row, status);
    } else {
        check_fetched(f, row, got);
    }
}

/* Reads records that lie close together in one file, and copies each to its place. */
static void read_group(fetch *f, const uint64_t *rows, const group *g) {
    const tfwi_wanted *wanted = f->w->wanted.of, *first = &wanted[rows[0]];
    uint8_t *buffer = g->is_placed ? f->records + first->at : f->w->stretch.buffer;
    size_t got = 0;
    const int status = tfw_read_at(f->p->indexed.of[first->file].file.fd, buffer, g->size,
                                   (uint64_t)first->begin, &got, NULL);
    for (size_t i = 0; i < g->count; i++) {
        const size_t row = (size_t)rows[i];
        const size_t at = (size_t)(wanted[row].begin - first->begin);
        if (row >= f->rows) {
            continue;
        }
        if (status != TFW_OK || at + wanted[row].size > got) {
            read_record(f, row); /* says what is wrong with it alone */
        } else {
            if (!g->is_placed) {
                memcpy(f->records + wanted[row].at, buffer + at, (size_t)wanted[row].size);
            }
            check_fetched(f, row, wanted[row].size);
        }
    }
}

/* How many of the next rows are read at once. */
static group plan_group(const fetch *f, const uint64_t *rows, size_t count) {
    const tfwi_wanted *wanted = f->w->wanted.of, *first = &wanted[rows[0]];
    int64_t end = first->begin + (int64_t)first->size;
    group g = {.count = 1, .is_placed = true};
    for (; g.count < count && rows[g.count] < f->rows; g.count++) {
        const tfwi_wanted *next = &wanted[rows[g.count]];
        const int64_t next_end = next->begin + (int64_t)next->size;
        if (next->file != first->file || next->begin < first->begin ||
            next->begin - end > TFWI_GAP || next_end - first->begin > TFWI_LONGEST_GROUP ||
            end - first->begin > TFWI_LONGEST_GROUP) { /* next may lie within the first */
            break;
        }
        g.is_placed = g.is_placed && next->begin == end &&
                      next->at == first->at + (size_t)(end - first->begin);
        end = next_end > end ? next_end : end;
    }
    g.size = (size_t)(end - first->begin);
    return g;
}

/* Lets the CPU load a record of a cache, which lies anywhere. */
static void prefetch_record(const fetch *f, size_t row) {
    const tfwi_wanted *wanted = &f->w->wanted.of[row];
    const tfw_cache *cache = f->p->indexed.of[wanted->file].file.cache;
    if (cache != NULL) {
        tfwi_cache_prefetch(cache, (uint64_t)wanted->begin);
    }
}

/* Copies a record from the cache of its file, if it has one that holds it. */
static bool copy_cached(fetch *f, size_t row) {
    const tfwi_wanted *wanted = &f->w->wanted.of[row];
    const tfw_indexed_file *file = &f->p->indexed.of[wanted->file].file;
    const uint8_t *cached =
        tfwi_cache_find(file->cache, file->fd, (uint64_t)wanted->begin, wanted->size);
    if (cached == NULL) {
        return false;
    }
    memcpy(f->records + wanted->at, cached, (size_t)wanted->size);
    check_fetched(f, row, wanted->size);
    return true;
}

static void read_records(fetch *f) {
    const uint64_t *rows = f->w->keys.of;
    const size_t count = f->r->order.count;
    size_t taken = 1;
    for (size_t i = 0; i < count; i += taken) {
        const size_t row = (size_t)rows[i];
        group g;
        if (f->p->is_cancelled) { /* nobody gets what was read */
            f->rows = 0;
            return;
        }
        taken = 1;
        if (row >= f->rows) {
            continue;
        }
        if (f->p->indexed.of[f->w->wanted.of[row].file].file.cache != NULL) {
            prefetch_record(f, (size_t)rows[i + CACHED_AHEAD < count ? i + CACHED_AHEAD : i]);
            if (!copy_cached(f, row)) {
                read_record(f, row);
            }
        } else if ((g = plan_group(f, rows + i, count - i)).count == 1) {
            read_record(f, row);
        } else {
            read_group(f, rows + i, &g);
            taken = g.count;
        }
    }
}

/* ---- Columns and spans ---------------------------------------------------------------------- */

static const tfw_span *spans_to_parse(const fetch *f) {
    return f->r->given.count != 0 ? f->r->given.of : f->w->spans.of;
}

static int parse_fetched(const fetch *f, size_t *out_done, tfw_error *error) {
    const tfwi_block *block = f->r->block;
    const bool given = f->r->given.count != 0;
    const size_t len = given ? 0 : f->w->records.count;
    const unsigned flags = (f->p->flags & (TFW_EMPTY_IS_MISSING | TFW_SINGLE)) |
                           (given ? (unsigned)TFW_ADDRESSES : 0);
    if ((f->p->flags & TFW_SEQUENCE) != 0) {
        return tfw_parse_sequence(block->columns[0], block->columns[1], f->records, len,
                                  spans_to_parse(f), f->rows, flags, out_done, error);
    }
    return tfw_parse(block->columns[0], f->records, len, spans_to_parse(f), f->rows, flags,
                     out_done, error);
}

/* Hands over what was read: the good records before the first that is not. */
static void deliver_records(fetch *f) {
    tfwi_range *r = f->r;
    tfwi_block *block = r->block;
    tfw_error error;
    size_t done = f->rows;
    if (f->p->mode == TFW_PIPELINE_SPANS) {
        block->spans.count = done;
    } else {
        const int status = parse_fetched(f, &done, &error);
        if (status != TFW_OK) {
            r->error = error;
            stop_before(f, done, status);
        }
        if (status <= TFW_E_WIRE) {
            const tfw_span *s = &spans_to_parse(f)[done];
            const uintptr_t base = (uintptr_t)f->records; /* 0 where they were given */
            tfwi_range_keep_misfit(r, (const uint8_t *)(uintptr_t)(base + s->offset), s->length);
        }
        if (tfwi_block_finish(block, &error) != TFW_OK) {
            stop_for_memory(f);
            return;
        }
    }
    block->rows = done;
    block->runs.of[block->runs.count++] = (tfwi_run){
        .begin = {.record = r->first_row}, .end = {.record = r->first_row + done}};
}

/* Reads the records of an order by numbers; false: out of memory. */
static bool fetch_records(fetch *f) {
    tfwi_worker *w = f->w;
    tfwi_bytes buffer = {.of = w->stretch.buffer, .capacity = w->stretch.capacity};
    const bool has_buffer = TFWI_RESERVE(buffer, TFWI_LONGEST_GROUP);
    w->stretch.buffer = buffer.of;
    w->stretch.capacity = buffer.capacity;
    if (!has_buffer || !find_records(f) || !place_records(f)) {
        return false;
    }
    read_records(f);
    return true;
}

void tfwi_fetch_range(tfw_pipeline *p, tfwi_worker *w, tfwi_range *r) {
    fetch f = {.p = p, .w = w, .r = r};
    const bool is_drawn = r->draw.count == 0 || tfwi_order_draw(r);
    f.rows = r->order.count + r->given.count;
    r->block = tfwi_block_take(p->pools[0]);
    r->at = (tfw_place){0};
    if (!is_drawn || r->block == NULL || !TFWI_RESERVE_MORE(r->block->runs, 1) ||
        (r->order.count != 0 && !fetch_records(&f))) {
        stop_for_memory(&f);
        return;
    }
    deliver_records(&f);
}
