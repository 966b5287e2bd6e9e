/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read the units of a file side by side, as the Python package's do: in turn each finds
 * the next unit by tfw_read_ahead, and all verify and parse their units at once by tfw_read_unit,
 * into columns of their own. They share the file and the schemas. Every unit is that of one thread.
 */
#include "common/script.h"

#include "common/table.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    MOST_THREADS = 4,
    MOST_UNITS = SCRIPT_LIMIT / TFWI_FRAME_SIZE + 1,
    MOST_BYTES = 5000 /* of a buffer */
};

/* What became of a unit. */
typedef struct unit {
    size_t count; /* as found by the headers */
    size_t done;
    int status;
    int64_t offset; /* of the record at fault, and what it is said to be */
    int64_t record;
    int32_t feature;
    uint64_t hash; /* of the columns */
    tfw_tally tally;
} unit;

/* What all threads share; units and where the next one begins under the lock. */
typedef struct job {
    specs context, lists;
    unsigned flags, scan_flags;
    bool sequence;
    bool from_file; /* units are read again by tfw_read_unit, not kept from tfw_read_ahead */
    bool short_reads;
    uint64_t limit;
    size_t step;
    size_t capacity;
    int fd;
    pthread_mutex_t lock;
    uint64_t offset;
    size_t count;
    int status; /* TFW_OK, or why no unit follows */
    unit units[MOST_UNITS];
} job;

/* The columns of a thread, and the memory that goes into them and comes back. */
typedef struct half {
    table table;
    void *memory[MAX_FEATURES];
    size_t sizes[MAX_FEATURES];
    uint8_t lent[MAX_FEATURES];
    tfw_column finished[MAX_FEATURES];
} half;

typedef struct worker {
    struct job *job;
    half context, lists;
    uint8_t *buffer;
    uint64_t seed;
} worker;

static atomic_int wrong; /* the counters of check.h are for one thread */

#define EXPECT(condition) ((condition) ? (void)0 : (void)atomic_fetch_add(&wrong, 1))

static void half_init(half *h, const specs *s, bool lists, const job *w, uint8_t lent) {
    *h = (half){0};
    table_init(&h->table, s, lists, w->step);
    for (size_t i = 0; i < s->count; i++) {
        h->memory[i] = h->table.bound[i];
        h->lent[i] = lent >> i & 1;
    }
}

static void half_free(half *h) {
    for (size_t i = 0; i < h->table.specs->count; i++) {
        if (!is_bound(&h->table, i)) {
            tfw_free(h->memory[i]);
        }
    }
    table_free(&h->table);
}

static tfw_part part_of(half *h, size_t capacity) {
    return (tfw_part){.size = sizeof(tfw_part), .columns = h->table.columns,
                      .memory = h->memory, .sizes = h->sizes,
                      .capacity = capacity, .lent = h->lent, .finished = h->finished};
}

/* The memory of a column that was taken goes to the next unit. */
static void recycle(half *h, size_t i) {
    tfw_column *c = &h->finished[i];
    h->memory[i] = c->values;
    h->sizes[i] = (size_t)c->capacity;
    tfw_free(c->offsets);
    tfw_free(c->splits);
    tfw_free(c->steps);
}

static uint64_t hash_column(uint64_t h, const tfw_column *c, uint64_t records) {
    h = fuzz_hash(h, c->values, (size_t)c->byte_count);
    h = fuzz_hash_number(fuzz_hash_number(h, c->value_count), c->cell_count);
    if (c->offsets != NULL) {
        h = fuzz_hash(h, c->offsets, (size_t)(8 * (c->value_count + 1)));
    }
    if (c->splits != NULL) {
        h = fuzz_hash(h, c->splits, (size_t)(8 * (c->cell_count + 1)));
    }
    return c->steps != NULL ? fuzz_hash(h, c->steps, (size_t)(8 * (records + 1))) : h;
}

/* Finished columns, which are then given back. */
static uint64_t hash_half(half *h) {
    const table *t = &h->table;
    const uint64_t records = tfw_columns_records(t->columns);
    uint64_t hash = records;
    for (size_t i = 0; i < t->specs->count; i++) {
        if (is_bound(t, i)) {
            const tfw_feature *f = &t->specs->features[i];
            const uint64_t size = records * f->count * size_of_kind(f->kind);
            hash = fuzz_hash(hash, t->bound[i], (size_t)size);
        } else {
            hash = hash_column(hash, &h->finished[i], records);
            if (h->lent[i] == 0) {
                recycle(h, i);
            }
        }
    }
    return hash;
}

/* Finds the next unit; false: there is none, and all threads end. */
static bool next_unit(worker *w, size_t *out_number, tfw_stretch *s) {
    job *j = w->job;
    bool more = false;
    EXPECT(pthread_mutex_lock(&j->lock) == 0);
    *s = (tfw_stretch){.size = sizeof *s, .fd = j->fd, .flags = j->scan_flags,
                       .max_record_size = j->limit, .offset = j->offset,
                       .stop = UINT64_MAX, .buffer = w->buffer, .capacity = j->capacity};
    if (j->status == TFW_OK) {
        unit *u = &j->units[j->count];
        const int status = tfw_read_ahead(s, j->step, &u->count, NULL);
        more = u->count != 0;
        EXPECT(more || status != TFW_OK);
        EXPECT(u->count <= j->step && j->count < MOST_UNITS - 1);
        j->status = more ? TFW_OK : status;
        j->offset += s->end;
        *out_number = j->count;
        j->count += more;
    }
    EXPECT(pthread_mutex_unlock(&j->lock) == 0);
    if (j->from_file) {
        s->stop = s->offset + s->end;
        s->end = 0;
    } else {
        s->fd = -1;
    }
    return more;
}

static void read_unit(worker *w, unit *u, tfw_stretch *s) {
    const job *j = w->job;
    const tfw_part none = {0}, context = part_of(&w->context, j->step);
    const tfw_part lists = j->sequence ? part_of(&w->lists, j->step) : none;
    const unsigned flags = j->flags | TFW_BEGIN | TFW_FINISH;
    tfw_error error = {.offset = -1, .record = -1, .feature = -1};
    u->status = tfw_read_unit(&context, &lists, s, u->count, flags, &u->tally, &u->done, &error);
    u->offset = error.offset;
    u->record = error.record;
    u->feature = error.feature;
    EXPECT(u->status == TFW_OK ? u->done == u->count : u->status < 0 && u->done < u->count);
    if (u->status != TFW_OK) {
        EXPECT(tfw_columns_finish(context.columns, context.lent, context.finished, NULL) ==
               TFW_OK);
        EXPECT(!j->sequence ||
               tfw_columns_finish(lists.columns, lists.lent, lists.finished, NULL) == TFW_OK);
    }
    u->hash = hash_half(&w->context);
    u->hash = j->sequence ? fuzz_hash_number(u->hash, hash_half(&w->lists)) : u->hash;
}

static void *read_units(void *argument) {
    worker *w = argument;
    tfw_stretch s;
    size_t number;
    script_seed = w->seed;
    while (next_unit(w, &number, &s)) {
        read_unit(w, &w->job->units[number], &s);
    }
    return NULL;
}

/* Reads all units with so many threads; lent: which columns stay in their objects. */
static void read_side_by_side(job *j, size_t threads, uint8_t lent) {
    pthread_t started[MOST_THREADS];
    worker workers[MOST_THREADS];
    for (size_t i = 0; i < threads; i++) {
        worker *w = &workers[i];
        *w = (worker){.job = j, .buffer = fuzz_alloc(j->capacity),
                      .seed = j->short_reads ? i + 1 : 0};
        half_init(&w->context, &j->context, false, j, lent);
        half_init(&w->lists, &j->lists, true, j, lent);
    }
    for (size_t i = 0; i < threads; i++) {
        CHECK_EQ(0, pthread_create(&started[i], NULL, read_units, &workers[i]));
    }
    for (size_t i = 0; i < threads; i++) {
        CHECK_EQ(0, pthread_join(started[i], NULL));
        half_free(&workers[i].context);
        half_free(&workers[i].lists);
        free(workers[i].buffer);
    }
    CHECK_EQ(0, atomic_exchange(&wrong, 0));
}

static void check_units(const job *a, const job *b) {
    CHECK_EQ(a->count, b->count);
    CHECK_EQ(a->status, b->status);
    CHECK_EQ(a->offset, b->offset);
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const unit *u = &a->units[i], *v = &b->units[i];
        CHECK_EQ(u->count, v->count);
        CHECK_EQ(u->done, v->done);
        CHECK_EQ(u->status, v->status);
        CHECK(u->offset == v->offset && u->record == v->record && u->feature == v->feature);
        CHECK_EQ(u->hash, v->hash);
        CHECK(memcmp(&u->tally, &v->tally, sizeof u->tally) == 0);
    }
}

/* flags and limit, threads and how they read, unit, buffer, what is lent; schemas; the file. */
static void run(input *in) {
    static job one, many;
    const uint8_t choice = input_byte(in), how = input_byte(in);
    const unsigned parse_flags = choice & (TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE);
    file f = {0};
    one = (job){
        .flags = parse_flags,
        .scan_flags = (choice & 8) != 0 ? TFW_NO_DATA_CRC : 0,
        .sequence = (parse_flags & TFW_SEQUENCE) != 0,
        .limit = script_limits[choice >> 4 & 3],
        .from_file = (how & 4) != 0,
        .short_reads = (how & 8) != 0,
        .step = 1 + input_byte(in),
        .capacity = TFW_HEADER_SIZE + (size_t)input_number(in, 2) % MOST_BYTES,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    const uint8_t lent = input_byte(in);
    specs_init(&one.context, in, false);
    specs_init(&one.lists, in, true);
    script_run(&f, in);
    one.fd = script_open(&f, 0);
    many = one;
    read_side_by_side(&one, 1, 0);
    read_side_by_side(&many, 2 + how % 4 % 3, lent);
    check_units(&one, &many);
    free(f.data);
    tfw_schema_free(one.context.schema);
    tfw_schema_free(one.lists.schema);
}

FUZZ_TARGET(run)
