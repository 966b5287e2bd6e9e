/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of chunks, and streams: fields of every kind over messages. Arrays are as Arrow's format
 * says, and hold what a slow model makes of the parsed columns; a record that does not fit is one
 * that the model refuses; a stream over two files, and a pipeline of one to three threads whose
 * ranges are as long as some records, give the same rows. With any allocation failing, sliced, and
 * with children moved out and released in any order, every buffer is freed once. */
#include "common/arrow_model.h"
#include "common/messages.h"

#include "records.h"

#include <stdatomic.h>

extern atomic_long tfwi_test_buffers;

/* ---- Parsing -------------------------------------------------------------------------------- */

enum { OWNED = TFW_OWN_NUMBERS | TFW_NOTE_ABSENT };

static void columns_create(const plan *p, tfw_columns *parts[2]) {
    parts[1] = NULL;
    CHECK_EQ(TFW_OK, tfw_columns_create(p->parts[0].schema, OWNED, &parts[0], NULL));
    if (p->sequence) {
        CHECK_EQ(TFW_OK, tfw_columns_create(p->parts[1].schema, OWNED | TFW_FEATURE_LISTS,
                                            &parts[1], NULL));
    }
}

/* The messages, round and round, up to the first that cannot be parsed; how many. */
static size_t parse_records(const plan *p, tfw_columns *const parts[2], const messages *m,
                            size_t count) {
    int status = TFW_OK;
    size_t records = 0;
    while (status == TFW_OK && records < count) {
        const tfw_span *span = &m->spans[records % m->count];
        status = p->sequence ? tfw_parse_sequence(parts[0], parts[1], m->data, m->len, span, 1, 0,
                                                  NULL, NULL)
                             : tfw_parse(parts[0], m->data, m->len, span, 1, 0, NULL, NULL);
        records += status == TFW_OK;
    }
    return records;
}

/* Row ids between those that are tried and those that are refused take much memory. */
static bool model_peek(arrow_model *m) {
    bool usual = true;
    for (size_t part = 0; part < 2 && m->parts[part] != NULL; part++) {
        for (size_t i = 0; i < m->plan->parts[part].count; i++) {
            tfw_column *c = &m->columns[part][i];
            CHECK_EQ(TFW_OK, tfw_columns_peek(m->parts[part], i, c, NULL));
            const int64_t *numbers = c->values;
            const bool ints = m->plan->parts[part].features[i].kind == TFW_INT64;
            for (uint64_t k = 0; ints && k < c->value_count; k++) {
                usual = usual && (numbers[k] < MOST_ROW_ID || numbers[k] > 1 << 25);
            }
        }
    }
    return usual;
}

/* ---- Arrays --------------------------------------------------------------------------------- */

static void check_rows(const arrow_model *m, const struct ArrowSchema *t,
                       const struct ArrowArray *a, size_t first) {
    check_layout(t, a, 0);
    for (size_t i = 0; i < m->plan->count && check_failures == 0; i++) {
        for (int64_t r = 0; r < a->length; r++) {
            CHECK_EQ(m->hashes[i][(first + (size_t)r) % m->records],
                     row_hash(t->children[i], a->children[i], r));
        }
    }
}

static uint64_t hash_text(const char *text) { return fuzz_hash(LIST_HASH, text, strlen(text)); }

/* The positions of records of two files of so many each. */
static void check_positions(const plan *p, const struct ArrowSchema *t, const struct ArrowArray *a,
                            size_t first, size_t per_file, const uint64_t *offsets) {
    const size_t at = p->count;
    for (int64_t r = 0; (p->flags & TFW_ARROW_POSITIONS) != 0 && r < a->length; r++) {
        const size_t record = first + (size_t)r;
        const int64_t number = (int64_t)(record % per_file);
        const int64_t offset = (int64_t)offsets[record % per_file];
        CHECK_EQ(hash_text(record < per_file ? "one" : "another"),
                 row_hash(t->children[at], a->children[at], r));
        CHECK_EQ(fuzz_hash(LIST_HASH, &number, 8),
                 row_hash(t->children[at + 1], a->children[at + 1], r));
        CHECK_EQ(fuzz_hash(LIST_HASH, &offset, 8),
                 row_hash(t->children[at + 2], a->children[at + 2], r));
    }
}

static const char *const names[] = {"one", "another"};

/* ---- Streams -------------------------------------------------------------------------------- */

/* A file of all records, and where each begins. */
static const char *write_file(const messages *m, size_t count, uint64_t *offsets) {
    static char path[64];
    static int fd = -1;
    file f = {0};
    if (fd < 0) {
        fd = memfd_create("export", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    file_append(&f, "", 0);
    for (size_t i = 0; i < count; i++) {
        const tfw_span *span = &m->spans[i % m->count];
        offsets[i] = f.len;
        file_append_record(&f, m->data + span->offset, (size_t)span->length);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, f.data, f.len, 0) != (ssize_t)f.len) {
        abort();
    }
    free(f.data);
    return path;
}

/* Reads one file twice. The stream ends after the good records, which are all or come before an
 * error. */
static void check_stream(const arrow_model *m, const tfw_arrow_layout *layout, const messages *ms,
                         size_t good, size_t count, size_t batch_size, uint64_t *random) {
    uint64_t offsets[MOST_RECORDS];
    const char *path = write_file(ms, count, offsets), *const paths[] = {path, path};
    const tfw_arrow_stream_options options = {.size = sizeof options, .batch_size = batch_size,
                                              .paths = paths, .names = names, .path_count = 2};
    const size_t expected = good == count ? 2 * count : good;
    struct ArrowArrayStream *stream;
    struct ArrowArray array;
    struct ArrowSchema type;
    size_t found = 0;
    int number;
    CHECK_EQ(TFW_OK, tfw_arrow_stream_create(layout, &options, &stream, NULL));
    CHECK_EQ(0, stream->get_schema(stream, &type));
    while ((number = stream->get_next(stream, &array)) == 0 && array.release != NULL) {
        CHECK(array.length > 0 && (size_t)array.length <= batch_size);
        check_rows(m, &type, &array, found);
        check_positions(m->plan, &type, &array, found, count, offsets);
        found += (size_t)array.length;
        release_array_anyhow(&array, random);
    }
    CHECK_EQ(expected, found);
    CHECK_EQ(good == count, number == 0);
    CHECK(number == 0 || is_utf8_text((const uint8_t *)stream->get_last_error(stream),
                                      strlen(stream->get_last_error(stream))));
    release_schema_anyhow(&type, random);
    tfw_arrow_stream_free(stream);
}

/* ---- Chunks --------------------------------------------------------------------------------- */

static tfw_pipeline *open_pipeline(const plan *p, const char *path, size_t batch_size,
                                   uint64_t *random) {
    const char *const paths[] = {path, path};
    const tfw_pipeline_options options = {
        .size = sizeof options,
        .paths = paths,
        .path_count = 2,
        .context = p->parts[0].schema,
        .lists = p->parts[1].schema,
        .batch_size = batch_size,
        .range_bytes = 1 + check_random(random) % 300,
        .num_threads = 1 + (uint32_t)(check_random(random) % 3),
        .flags = TFW_PIPELINE_NOTE_ABSENT | (p->sequence ? TFW_SEQUENCE : 0) |
                 (p->flags & TFW_ARROW_POSITIONS ? TFW_PIPELINE_POSITIONS : 0)};
    tfw_pipeline *pipeline;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &pipeline, NULL));
    return pipeline;
}

/* The array of some records of a chunk, also if an allocation fails at first. */
static int create_array(const tfw_arrow_layout *layout, const tfw_chunk *chunk, uint64_t first,
                        uint64_t count, long failing, struct ArrowArray **out, tfw_error *error) {
    const long buffers = atomic_load(&tfwi_test_buffers);
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    for (;; failing = -1) {
        tfwi_test_fail_allocation = failing;
        const int status = tfw_arrow_chunk_create(layout, chunk, first, count,
                                                  names + info.begin.file, out, error);
        tfwi_test_fail_allocation = -1;
        CHECK((*out == NULL) == (status != TFW_OK));
        if (status == TFW_OK) {
            return status;
        }
        CHECK_EQ(status, error->status);
        CHECK_EQ(buffers, atomic_load(&tfwi_test_buffers));
        if (status != TFW_E_MEMORY || failing < 0) {
            CHECK(status == TFW_E_COUNT || status == TFW_E_WIRE);
            return status;
        }
    }
}

/* Some records of an array, of which those from number first on are the records. */
static void check_share(const arrow_model *m, const struct ArrowSchema *type,
                        const struct ArrowArray *array, size_t first, uint64_t *random) {
    const uint64_t length = (uint64_t)array->length, skipped = check_random(random) % (length + 1);
    const uint64_t count = check_random(random) % (length - skipped + 1);
    struct ArrowArray *share;
    CHECK_EQ(TFW_OK, tfw_arrow_array_share(array, skipped, count, &share, NULL));
    CHECK_EQ(count, share->length);
    check_rows(m, type, share, first + skipped);
    release_array_anyhow(share, random);
    tfw_arrow_array_free(share);
}

/* The batches of a chunk as arrays; false: a record does not fit. One array is left in *kept. */
static bool check_batches(const arrow_model *m, const tfw_arrow_layout *layout,
                          const struct ArrowSchema *type, const tfw_chunk *chunk, size_t count,
                          size_t batch_size, long failing, const uint64_t *offsets,
                          size_t *found, struct ArrowArray **kept, uint64_t *random) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_chunk_get(chunk, &info);
    for (uint64_t first = 0, size; first < info.records; first += size) {
        struct ArrowArray *array;
        tfw_place place;
        tfw_error error;
        size = info.records - first < batch_size ? info.records - first : batch_size;
        if (create_array(layout, chunk, first, size, failing, &array, &error) != TFW_OK) {
            const size_t wrong = *found + (size_t)error.record;
            tfw_chunk_place(chunk, first + (uint64_t)error.record, &place);
            CHECK(error.record >= 0 && (uint64_t)error.record < size && wrong < m->records &&
                  !m->good[error.feature][wrong]);
            CHECK_EQ(wrong % count, place.record);
            CHECK_EQ(wrong / count, place.file);
            return false;
        }
        check_rows(m, type, array, *found);
        check_positions(m->plan, type, array, *found, count, offsets);
        check_share(m, type, array, *found, random);
        *found += (size_t)size;
        if (check_random(random) % 2 != 0) {
            tfw_arrow_array_free(*kept);
            *kept = array;
        } else {
            release_array_anyhow(array, random);
            tfw_arrow_array_free(array);
        }
    }
    return true;
}

/* The same file twice by a pipeline whose ranges are as long as some records. */
static void check_chunks(const arrow_model *m, const tfw_arrow_layout *layout, const messages *ms,
                         size_t good, size_t count, size_t batch_size, long failing,
                         uint64_t *random) {
    uint64_t offsets[MOST_RECORDS];
    tfw_pipeline *p = open_pipeline(m->plan, write_file(ms, count, offsets), batch_size, random);
    struct ArrowArray *kept = NULL;
    struct ArrowSchema *type;
    tfw_chunk *chunk;
    size_t found = 0;
    int status;
    bool fits = true;
    CHECK_EQ(TFW_OK, tfw_arrow_schema_create(layout, &type, NULL));
    while (fits && (status = tfw_pipeline_next(p, -1, &chunk, NULL)) == TFW_OK) {
        fits = check_batches(m, layout, type, chunk, count, batch_size, failing, offsets, &found,
                             &kept, random);
        tfw_chunk_release(chunk);
    }
    CHECK(!fits || good == count ? found == 2 * count || !fits : found == good);
    tfw_pipeline_free(p);
    if (kept != NULL) { /* by its memory alone */
        check_layout(type, kept, 0);
        release_array_anyhow(kept, random);
        tfw_arrow_array_free(kept);
    }
    tfw_arrow_schema_free(type);
}

/* ---- The target ----------------------------------------------------------------------------- */

/* Flags; which allocation fails; the size of batches; how many records; a seed; schemas; fields;
 * messages. */
static void run(input *in) {
    const uint8_t flags = input_byte(in), failing = input_byte(in);
    const size_t batch_size = 1 + input_byte(in) % 20, rounds = 1 + input_byte(in) % 4;
    uint64_t random = 2 * (uint64_t)input_byte(in) + 1;
    plan p = {.sequence = (flags & 1) != 0};
    p.flags = (p.sequence ? TFW_ARROW_SEQUENCE : 0) | (flags & 2 ? TFW_ARROW_POSITIONS : 0);
    specs_init(&p.parts[0], in, false);
    if (p.sequence) {
        specs_init(&p.parts[1], in, true);
    }
    for (size_t i = input_byte(in) % (MOST_FIELDS + 1); i != 0; i--) {
        add_field(&p, in);
    }
    messages ms = messages_of(in);
    tfw_arrow_layout *layout;
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(p.fields, p.count, p.parts[0].schema,
                                             p.parts[1].schema, p.flags, &layout, NULL));
    static arrow_model m;
    m = (arrow_model){.plan = &p};
    columns_create(&p, m.parts);
    const size_t count = ms.count * rounds;
    m.records = parse_records(&p, m.parts, &ms, count);
    if (model_peek(&m)) {
        const size_t good = model_run(&m);
        if (p.count != 0) { /* without fields, messages are not parsed */
            check_stream(&m, layout, &ms, good, count, batch_size, &random);
        }
        check_chunks(&m, layout, &ms, good, count, batch_size, failing < 192 ? -1 : failing - 192,
                     &random);
    }
    tfw_columns_free(m.parts[0]);
    tfw_columns_free(m.parts[1]);
    tfw_arrow_layout_free(layout);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    free(ms.data);
}

FUZZ_TARGET(run)
