/* SPDX-License-Identifier: Apache-2.0 */
/* Record files in memory, what a reader makes of them, and what it should: for the reader tests. */
#ifndef TFWIRE_TESTS_RECORDS_H
#define TFWIRE_TESTS_RECORDS_H

#include "check.h"

#include "records/frame.h"

extern ssize_t (*tfwi_test_pread)(int fd, void *out, size_t len, off_t offset);
#ifdef _WIN32
ssize_t tfwi_windows_pread(int fd, void *out, size_t len, off_t offset);
#define pread tfwi_windows_pread
#endif

#ifndef LOG_MAX
#define LOG_MAX 2048
#endif

/* A file under construction. */
typedef struct file {
    uint8_t *data;
    size_t len, capacity;
    size_t ends[LOG_MAX]; /* of the records */
    size_t count;
} file;

/* Large files grow by doubling. The memory of others is exact, for ASan to watch their ends. */
static inline void file_append(file *f, const void *bytes, size_t len) {
    const size_t needed = f->len + len + 1;
    if (needed > f->capacity) {
        f->capacity = needed < 1 << 16 ? needed : 2 * needed;
        f->data = realloc(f->data, f->capacity);
    }
    if (len != 0) {
        memcpy(f->data + f->len, bytes, len);
    }
    f->len += len;
}

static inline void file_append_record(file *f, const void *payload, size_t len) {
    uint8_t *framed = malloc(len + TFWI_FRAME_SIZE);
    tfw_span span = {TFW_HEADER_SIZE, len};
    if (len != 0) {
        memcpy(framed + TFW_HEADER_SIZE, payload, len);
    }
    CHECK_EQ(TFW_OK, tfw_frame(framed, len + TFWI_FRAME_SIZE, &span, 1, NULL));
    file_append(f, framed, len + TFWI_FRAME_SIZE);
    f->ends[f->count++] = f->len;
    free(framed);
}

/* A header that verifies, for any length. */
static inline void file_append_header(file *f, uint64_t length) {
    uint8_t header[TFW_HEADER_SIZE];
    tfwi_store64(header, length);
    tfwi_store32(header + 8, tfwi_length_crc(tfwi_crc32c_current(), header));
    file_append(f, header, sizeof header);
}

/* count records of random bytes and of 0 to largest of them. */
static inline file file_random(uint64_t seed, size_t count, size_t largest) {
    file f = {0};
    uint64_t state = seed * 2 + 1;
    uint8_t *payload = malloc(largest + 1);
    file_append(&f, "", 0); /* data is never NULL */
    for (size_t i = 0; i < count; i++) {
        size_t len = (size_t)(check_random(&state) % (largest + 1));
        for (size_t k = 0; k < len; k++) {
            payload[k] = (uint8_t)check_random(&state);
        }
        file_append_record(&f, payload, len);
    }
    free(payload);
    return f;
}

static inline size_t file_begin(const file *f, size_t record) {
    return record != 0 ? f->ends[record - 1] : 0;
}

/* What came out of a reader, and the last word of it. */
typedef struct outcome {
    struct {
        uint64_t offset, length, number;
    } records[LOG_MAX];
    size_t count;
    tfw_region regions[LOG_MAX];
    size_t region_count;
    uint64_t skipped_regions; /* also those that the reader did not keep */
    uint64_t skipped_bytes;
    int status;
    int64_t offset;
    int64_t record;
} outcome;

static inline void outcome_add(outcome *o, uint64_t offset, uint64_t length, uint64_t number) {
    if (o->count < LOG_MAX) {
        o->records[o->count].offset = offset;
        o->records[o->count].length = length;
        o->records[o->count].number = number;
    }
    o->count++;
}

static inline bool outcome_equal(const outcome *a, const outcome *b) {
    if (a->count != b->count || a->region_count != b->region_count || a->status != b->status ||
        a->offset != b->offset || a->record != b->record) {
        return false;
    }
    for (size_t i = 0; i < a->region_count; i++) {
        const tfw_region *r = &a->regions[i], *s = &b->regions[i];
        if (r->begin != s->begin || r->end != s->end || r->record != s->record ||
            r->reason != s->reason) {
            return false;
        }
    }
    return memcmp(a->records, b->records, a->count * sizeof a->records[0]) == 0;
}

static inline void outcome_print(const char *name, const outcome *o) {
    fprintf(stderr, "%s: %zu records, %zu regions, status %d at %lld record %lld\n", name,
            o->count, o->region_count, o->status, (long long)o->offset, (long long)o->record);
    for (size_t i = 0; i < o->region_count && i < 8; i++) {
        fprintf(stderr, "  [%llu, %llu) record %llu reason %d\n",
                (unsigned long long)o->regions[i].begin, (unsigned long long)o->regions[i].end,
                (unsigned long long)o->regions[i].record, o->regions[i].reason);
    }
}

#define CHECK_OUTCOME(expected, actual)                                                       \
    do {                                                                                      \
        bool check_same = outcome_equal(expected, actual);                                    \
        CHECK(check_same);                                                                    \
        if (!check_same) {                                                                    \
            outcome_print("expected", expected);                                              \
            outcome_print("found", actual);                                                   \
        }                                                                                     \
    } while (0)

/* ---- What a reader should find: slow, plain, over the whole file ---------------------------- */

static inline int model_check(const file *f, size_t at, uint64_t limit, unsigned flags) {
    uint64_t left = f->len - at, length;
    if (left < TFW_HEADER_SIZE) {
        return TFW_E_TRUNCATED;
    }
    if (!tfwi_header_verifies(tfwi_crc32c_current(), f->data + at)) {
        return TFW_E_LENGTH_CRC;
    }
    length = tfwi_load64(f->data + at);
    if (length > tfwi_length_limit(limit)) {
        return TFW_E_TOO_LARGE;
    }
    if (length + TFWI_FRAME_SIZE > left) {
        return TFW_E_TRUNCATED;
    }
    const uint8_t *payload = f->data + at + TFW_HEADER_SIZE;
    uint32_t stored = tfwi_load32(payload + length);
    if ((flags & TFW_NO_DATA_CRC) == 0 &&
        tfwi_payload_crc(tfwi_crc32c_current(), payload, length) != stored) {
        return TFW_E_DATA_CRC;
    }
    return TFW_OK;
}

/* Where a reader that skips goes on after the damage at a place. */
static inline size_t model_skip(const file *f, size_t at, uint64_t limit, int reason) {
    if (reason == TFW_E_DATA_CRC) {
        size_t end = at + (size_t)tfwi_load64(f->data + at) + TFWI_FRAME_SIZE;
        if (f->len - end < TFW_HEADER_SIZE ||
            tfwi_header_verifies(tfwi_crc32c_current(), f->data + end)) {
            return end;
        }
    }
    do {
        at++;
    } while (at < f->len && model_check(f, at, limit, 0) != TFW_OK);
    return at;
}

static inline outcome model(const file *f, const tfw_reader_options *options) {
    outcome o = {.status = TFW_END, .offset = -1, .record = -1};
    size_t at = (size_t)options->offset;
    uint64_t number = 0;
    uint32_t policy = options->on_corrupt;
    while (at < f->len) {
        int reason = model_check(f, at, options->max_record_size, options->flags);
        if (reason == TFW_OK) {
            uint64_t length = tfwi_load64(f->data + at);
            outcome_add(&o, at + TFW_HEADER_SIZE, length, number++);
            at += (size_t)length + TFWI_FRAME_SIZE;
            continue;
        }
        if (policy == TFW_CORRUPT_RAISE ||
            (policy == TFW_CORRUPT_TAIL && reason != TFW_E_TRUNCATED)) {
            o.status = reason;
            o.offset = (int64_t)at;
            o.record = (int64_t)number;
            return o;
        }
        size_t end = policy == TFW_CORRUPT_SKIP
                         ? model_skip(f, at, options->max_record_size, reason)
                         : f->len;
        if (o.region_count != 0 && o.regions[o.region_count - 1].end == at &&
            reason != TFW_E_TRUNCATED) {
            o.regions[o.region_count - 1].end = end;
        } else {
            o.regions[o.region_count++] =
                (tfw_region){.begin = at, .end = end, .record = number, .reason = reason};
        }
        number++;
        at = end;
    }
    return o;
}

/* ---- Running a reader ----------------------------------------------------------------------- */

/* How bytes are fed: piece 0 for random sizes, else so many at a time; fd >= 0: not at all. */
typedef struct feeding {
    size_t piece;
    size_t max_records;
    uint64_t seed;
    bool retry; /* failures of memory and of reading are followed by another try */
    int failures;
} feeding;

static inline int feed(tfw_reader *reader, const file *f, size_t *fed, feeding *how,
                       tfw_error *error) {
    uint8_t *room = NULL;
    size_t len = 0;
    int status = tfw_reader_reserve(reader, &room, &len, error);
    if (status != TFW_OK) {
        return status;
    }
    size_t piece = how->piece != 0 ? how->piece : (size_t)(check_random(&how->seed) % 700 + 1);
    CHECK(len >= 1);
    CHECK(len <= 2 * *fed + (1 << 18)); /* room grows with what has arrived */
    len = len < piece ? len : piece;
    len = len < f->len - *fed ? len : f->len - *fed;
    memset(room, 0xee, len); /* is ours to write */
    memcpy(room, f->data + *fed, len);
    status = tfw_reader_commit(reader, len, error);
    CHECK_EQ(TFW_OK, status);
    *fed += len;
    return TFW_OK;
}

/* The number in the file of record i of a batch. */
static inline uint64_t record_number(const tfw_batch *batch, size_t i) {
    return batch->numbers != NULL ? batch->numbers[i] : batch->first_record + i;
}

/* One batch: everything that it says must agree with the file. */
static inline void take(outcome *o, const file *f, const tfw_batch *batch, const feeding *how) {
    uint64_t payload_bytes = 0;
    CHECK(batch->count >= 1 && (how->max_records == 0 || batch->count <= how->max_records));
    for (size_t i = 0; i < batch->count; i++) {
        tfw_span span = batch->spans[i];
        uint64_t offset = batch->offset + span.offset;
        CHECK(span.offset + span.length <= batch->data_len);
        CHECK(offset + span.length <= f->len);
        CHECK(memcmp(batch->data + span.offset, f->data + offset, (size_t)span.length) == 0);
        outcome_add(o, offset, span.length, record_number(batch, i));
        payload_bytes += span.length;
    }
    CHECK_EQ(payload_bytes, batch->payload_bytes);
    for (size_t i = 1; i <= 64; i++) {
        CHECK(batch->data[batch->data_len - i] == 0);
    }
}

/* The totals are those of the regions, where all of these were kept. */
static inline void check_totals(const outcome *o) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < o->region_count && i < LOG_MAX; i++) {
        bytes += o->regions[i].end - o->regions[i].begin;
        CHECK((o->regions[i].needed != 0) == (o->regions[i].reason == TFW_E_TRUNCATED));
    }
    if (o->skipped_regions < TFW_MOST_REGIONS && o->region_count <= LOG_MAX) {
        CHECK_EQ(o->region_count, o->skipped_regions);
        CHECK_EQ(bytes, o->skipped_bytes);
    }
}

/* Reads f to the end with options; the source is fed unless options->fd is a file. */
static inline outcome read_all(const file *f, const tfw_reader_options *options, feeding *how) {
    outcome o = {0};
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error = {0};
    size_t fed = (size_t)options->offset;
    while ((o.status = tfw_reader_create(options, &reader, &error)) == TFW_E_MEMORY && how->retry) {
        CHECK(reader == NULL);
        how->failures++;
    }
    while (o.status >= 0 && o.status != TFW_END) {
        o.status = tfw_reader_next(reader, how->max_records, &batch, &error);
        if (o.status == TFW_OK) {
            take(&o, f, &batch, how);
        } else if (o.status == TFW_NEED_INPUT) {
            o.status = feed(reader, f, &fed, how, &error);
        }
        if ((o.status == TFW_E_MEMORY || o.status == TFW_E_IO) && how->retry) {
            how->failures++;
            o.status = TFW_OK;
        }
    }
    o.offset = o.status < 0 ? error.offset : -1; /* the end writes no error */
    o.record = o.status < 0 ? error.record : -1;
    o.region_count = tfw_reader_skipped(reader, 0, o.regions, LOG_MAX);
    o.skipped_regions = tfw_reader_skipped_total(reader, &o.skipped_bytes);
    check_totals(&o);
    if (options->on_corrupt == TFW_CORRUPT_STOP && options->fd < 0 && o.region_count != 0) {
        CHECK_EQ(fed, o.regions[0].end); /* nobody knows how much more there would have been */
        o.regions[0].end = f->len;
    }
    CHECK_EQ(o.status, tfw_reader_next(reader, 0, &batch, &error)); /* again and again */
    CHECK(o.status == TFW_END || o.offset == error.offset);
    tfw_reader_free(reader);
    return o;
}

static inline int file_open(const file *f) {
    int fd = unnamed_file();
    for (size_t at = 0; at < f->len;) {
        size_t rest = f->len - at;
        ssize_t written = write(fd, f->data + at, (unsigned)(rest < 1 << 30 ? rest : 1 << 30));
        if (written <= 0) {
            abort();
        }
        at += (size_t)written;
    }
    return fd;
}

static inline tfw_reader_options options_for(uint32_t policy) {
    return (tfw_reader_options){
        .size = sizeof(tfw_reader_options), .fd = -1, .on_corrupt = policy, .buffer_size = 64};
}

#endif /* TFWIRE_TESTS_RECORDS_H */
