/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions are counted of: the loops that the speed of this library depends on.
 *
 * Each runs once before it counts, so that memory has grown, keys are learned and the C library's
 * functions are bound; then alone between count_begin and count_end. For callgrind these are client
 * requests, of which the second names the loop in its output; in a trace by qemu (COUNT_BY_TRACE)
 * they are functions whose names it shows. stdout says how many items each loop handled, in order.
 * counts.py runs this and compares.
 */
#define _GNU_SOURCE

#include "pipeline/read_columns.h"
#include "python/decode.h"
#include "tfwire_pipeline.h"
#include "workloads.h"

#include <stdio.h>

#ifdef COUNT_BY_TRACE
static TFWI_NOINLINE void count_begin(void) { __asm__ volatile("// begin" ::: "memory"); }
static TFWI_NOINLINE void count_end(const char *name) {
    __asm__ volatile("// end" : : "r"(name) : "memory");
}
#else
#include <valgrind/callgrind.h>

#define count_begin() CALLGRIND_ZERO_STATS
#define count_end(name) CALLGRIND_DUMP_STATS_AT(name)
#endif

static uint8_t *out; /* ROOM bytes */
static tfw_span out_spans[RECORDS];

/* ---- Checksums and records ------------------------------------------------------------------- */

enum { CALLS = RECORDS / 8 };
static size_t crc_size;
static volatile uint32_t sink;

static void checksum(workload *w) {
    for (int i = 0; i < CALLS; i++) {
        sink = tfw_crc32c(sink, w->data, crc_size);
    }
}

static void scan(workload *w) {
    size_t count, consumed;
    expect(TFW_OK, tfw_scan(w->data, w->len, 0, 0, out_spans, RECORDS, &count, &consumed, NULL));
}

static void frame(workload *w) {
    expect(TFW_OK, tfw_frame(w->data, w->len, w->spans, RECORDS, NULL));
}

static FILE *record_file;

static void walk(workload *w) {
    uint64_t offset = 0;
    int64_t offsets[RECORDS + 1];
    size_t count;
    expect(TFW_END, tfw_walk(fileno(record_file), w->len, &offset, out, 1 << 17, offsets,
                             RECORDS + 1, &count, NULL));
}

static void fetch(workload *w) {
    static int64_t offsets[RECORDS + 1], numbers[RECORDS];
    for (size_t i = 0; i < RECORDS; i++) {
        offsets[i] = (int64_t)(w->spans[i].offset - TFW_HEADER_SIZE);
        numbers[i] = (int64_t)i;
    }
    offsets[RECORDS] = (int64_t)w->len;
    const tfw_indexed_file indexed = {offsets, RECORDS, NULL, fileno(record_file), 0};
    const tfw_pipeline_options options = {.size = sizeof options, .num_threads = 1,
                                          .mode = TFW_PIPELINE_SPANS, .indexed = &indexed,
                                          .indexed_count = 1};
    static tfw_pipeline *pipeline;
    tfw_chunk *chunk;
    if (pipeline == NULL) {
        expect(TFW_OK, tfw_pipeline_create(&options, &pipeline, NULL));
    }
    expect(TFW_OK, tfw_pipeline_fetch(pipeline, numbers, RECORDS, NULL));
    expect(TFW_OK, tfw_pipeline_next(pipeline, -1, &chunk, NULL));
    tfw_chunk_release(chunk);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void parse(workload *w) {
    tfw_columns_clear(w->columns);
    expect(TFW_OK,
           tfw_parse(w->columns, w->data, w->len, w->spans, RECORDS, 0, NULL, NULL));
}

/* From a file, by pieces: what parsing and scanning take, and little more. */
static void read_columns(workload *w) {
    tfwi_stretch stretch = {.fd = fileno(record_file), .stop = UINT64_MAX, .buffer = out,
                            .capacity = 1 << 20};
    tfwi_reading reading = {.s = &stretch, .context = w->columns};
    tfw_columns_clear(w->columns);
    expect(TFW_OK, tfwi_read_records(&reading, RECORDS, NULL));
}

static void parse_one(workload *w) {
    for (size_t i = 0; i < RECORDS; i++) {
        tfw_columns_clear(w->columns);
        expect(TFW_OK, tfw_parse(w->columns, w->data, w->len, &w->spans[i], 1, TFW_SINGLE, NULL,
                                 NULL));
    }
}

static void decode(workload *w) {
    tfwi_decoded decoded = {0};
    tfwi_messages messages;
    expect(TFW_OK, tfwi_messages_init(&messages, w->data, w->len, w->spans, RECORDS, 0, NULL));
    expect(TFW_OK, tfwi_decode(&decoded, &messages, RECORDS, 0, NULL));
    tfwi_decoded_clear(&decoded);
}

static void survey(workload *w) {
    tfw_survey *s;
    size_t done;
    expect(TFW_OK, tfw_survey_create(1, &s, NULL));
    expect(TFW_OK, tfw_survey_add(s, w->data, w->len, w->spans, RECORDS, 0, &done, NULL));
    tfw_survey_free(s);
}

static void encode(workload *w) {
    size_t done;
    size_t len;
    expect(TFW_OK, tfw_encode(w->inputs, w->input_count, 0, RECORDS, 0, 0, out, ROOM, out_spans,
                              &done, &len, NULL));
}

static void encode_sequences(workload *w) {
    size_t done;
    expect(TFW_OK, tfw_encode_sequence(&sequences.context, 1, sequences.lists, 2, 0, RECORDS, 0, 0,
                                       sequences.data, ROOM, sequences.spans, &done,
                                       &sequences.len, NULL));
    (void)w;
}

static void parse_sequences(workload *w) {
    size_t done;
    tfw_columns_clear(sequences.context_columns);
    tfw_columns_clear(sequences.list_columns);
    expect(TFW_OK, tfw_parse_sequence(sequences.context_columns, sequences.list_columns,
                                      sequences.data, sequences.len, sequences.spans, RECORDS, 0,
                                      &done, NULL));
    (void)w;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void count(const char *loop, size_t items, void (*run)(workload *), workload *w) {
    char name[128];
    snprintf(name, sizeof name, "%s, %s", loop, w->name);
    run(w);
    count_begin();
    run(w);
    count_end(name);
    printf("%s\t%zu\n", name, items);
}

static void count_checksums(workload *w) {
    static const size_t sizes[] = {16, 90, 4096, 65536};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char name[32];
        workload named = *w;
        crc_size = sizes[i];
        snprintf(name, sizeof name, "%zu bytes", crc_size);
        named.name = name;
        count("crc32c", CALLS, checksum, &named);
    }
}

static void count_records(workload *w) {
    record_file = tmpfile();
    if (record_file == NULL || fwrite(w->data, 1, w->len, record_file) != w->len ||
        fflush(record_file) != 0) {
        exit(1);
    }
    count("scan", RECORDS, scan, w);
    count("frame", RECORDS, frame, w);
    count("index walk", RECORDS, walk, w);
    count("fetch in file order", RECORDS, fetch, w);
    count("read columns", RECORDS, read_columns, w);
    fclose(record_file);
}

static void count_messages(workload *w) {
    count("parse", RECORDS, parse, w);
    count("encode columns", RECORDS, encode, w);
    count("decode without a schema", RECORDS, decode, w);
    count("survey", RECORDS, survey, w);
}

int main(void) {
    out = reserve(ROOM);
    workload *w1 = tutorial(), *w4 = embedding();
    count_checksums(w4);
    count_records(w1);
    count_messages(w1);
    count("parse one message", RECORDS, parse_one, w1);
    count_messages(w4);
    count_messages(ctr("W5", false));
    count("parse", RECORDS, parse, ctr("W5 in random key order", true));
    workload w6 = {.name = "W6"};
    make_sequences();
    count("encode sequences", RECORDS, encode_sequences, &w6);
    count("parse sequences", RECORDS, parse_sequences, &w6);
    return 0;
}
