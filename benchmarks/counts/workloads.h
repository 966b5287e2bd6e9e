/* SPDX-License-Identifier: Apache-2.0 */
/* Records like those of ../workloads.py, in every form that the library turns into another. */
#ifndef TFWIRE_COUNTS_WORKLOADS_H
#define TFWIRE_COUNTS_WORKLOADS_H

#include "check.h"
#include "tfwire_python.h"

#ifndef COUNT_RECORDS
#define COUNT_RECORDS 512
#endif
enum { RECORDS = COUNT_RECORDS, MOST_INPUTS = 40, SEQUENCE_STEPS = 20, FRAME_VALUES = 64 };
#ifndef COUNT_ROOM
#define COUNT_ROOM (4 << 20) /* bytes, enough for the records of any workload */
#endif
enum { ROOM = COUNT_ROOM };

/* Records of one kind in every form that the library turns into another. */
typedef struct workload {
    const char *name;
    tfw_input inputs[MOST_INPUTS];
    tfw_feature features[MOST_INPUTS];
    size_t input_count;
    tfw_columns *columns;
    uint8_t *data; /* framed messages */
    size_t len;
    tfw_span spans[RECORDS];
} workload;

static uint64_t state = 2026;

static void *reserve(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        exit(1);
    }
    return memory; /* nothing is freed: the process ends soon */
}

static void expect(int expected, int status) {
    if (status != expected) {
        fprintf(stderr, "counts: %s\n", tfw_status_name(status));
        exit(1);
    }
}

/* ---- Workloads, as benchmarks/workloads.py has them ------------------------------------------ */

static tfw_input *add(workload *w, const char *name, int kind, uint64_t count) {
    size_t values = RECORDS * count;
    tfw_input *input = &w->inputs[w->input_count];
    w->features[w->input_count++] = (tfw_feature){
        .name = name, .name_len = strlen(name), .kind = kind, .layout = TFW_DENSE, .count = count};
    *input = (tfw_input){.name = name, .name_len = strlen(name), .kind = kind, .count = count,
                         .value_count = values};
    return input;
}

static void add_floats(workload *w, const char *name, uint64_t count) {
    tfw_input *input = add(w, name, TFW_FLOAT, count);
    float *values = reserve(input->value_count * sizeof(float));
    for (size_t i = 0; i < input->value_count; i++) {
        values[i] = (float)(check_random(&state) >> 40) / 65536;
    }
    input->values = values;
    input->byte_count = input->value_count * sizeof(float);
}

/* Numbers of so many bits, every third of them negative where some are to be. */
static void add_ints(workload *w, const char *name, uint64_t count, int bits, bool negative) {
    tfw_input *input = add(w, name, TFW_INT64, count);
    int64_t *values = reserve(input->value_count * sizeof(int64_t));
    for (size_t i = 0; i < input->value_count; i++) {
        values[i] = (int64_t)(check_random(&state) >> (64 - bits));
        values[i] = negative && i % 3 == 2 ? -values[i] : values[i];
    }
    input->values = values;
    input->byte_count = input->value_count * sizeof(int64_t);
}

static void add_strings(workload *w, const char *name, uint64_t shortest, uint64_t longest) {
    tfw_input *input = add(w, name, TFW_BYTES, 1);
    int64_t *offsets = reserve((RECORDS + 1) * sizeof(int64_t));
    for (size_t i = 0; i < RECORDS; i++) {
        uint64_t length = shortest + check_random(&state) % (longest - shortest + 1);
        offsets[i + 1] = offsets[i] + (int64_t)length;
    }
    input->byte_count = (uint64_t)offsets[RECORDS];
    uint8_t *values = reserve(input->byte_count + 1);
    memset(values, 'a', input->byte_count);
    input->values = values;
    input->offsets = offsets;
}

static tfw_columns *columns_of(const tfw_feature *features, size_t count, unsigned flags) {
    tfw_schema *schema;
    tfw_columns *columns;
    expect(TFW_OK, tfw_schema_create(features, count, 1, &schema, NULL));
    expect(TFW_OK, tfw_columns_create(schema, flags, &columns, NULL));
    for (size_t i = 0; i < count; i++) {
        if (features[i].layout == TFW_DENSE && features[i].kind != TFW_BYTES) {
            void *values = reserve(RECORDS * features[i].count * sizeof(int64_t));
            expect(TFW_OK, tfw_columns_bind(columns, i, values, RECORDS, NULL));
        }
    }
    return columns;
}

/* Messages and columns of the inputs; shuffled: each message has its entries in an order of its
 * own. */
static void finish(workload *w, bool shuffled) {
    tfw_input inputs[MOST_INPUTS];
    memcpy(inputs, w->inputs, sizeof inputs);
    w->data = reserve(ROOM);
    for (uint64_t i = 0; i < RECORDS; i++) {
        for (size_t k = w->input_count; shuffled && k > 1; k--) {
            size_t other = check_random(&state) % k;
            tfw_input last = inputs[k - 1];
            inputs[k - 1] = inputs[other];
            inputs[other] = last;
        }
        size_t done;
        size_t len;
        expect(TFW_OK, tfw_encode(inputs, w->input_count, i, 1, TFW_HEADER_SIZE, TFW_FOOTER_SIZE,
                                  w->data + w->len, ROOM - w->len, &w->spans[i], &done, &len,
                                  NULL));
        w->spans[i].offset += w->len;
        w->len += len;
    }
    expect(TFW_OK, tfw_frame(w->data, w->len, w->spans, RECORDS, NULL));
    w->columns = columns_of(w->features, w->input_count, 0);
}

static workload *new_workload(const char *name) {
    workload *w = reserve(sizeof *w);
    w->name = name;
    return w;
}

static workload *tutorial(void) {
    workload *w = new_workload("W1");
    add_ints(w, "feature0", 1, 1, false);
    add_ints(w, "feature1", 1, 2, false);
    add_strings(w, "feature2", 3, 7);
    add_floats(w, "feature3", 1);
    finish(w, false);
    return w;
}

static workload *embedding(void) {
    workload *w = new_workload("W4");
    add_floats(w, "embedding", 512);
    add_ints(w, "ids", 64, 40, true);
    add_strings(w, "id", 16, 16);
    finish(w, false);
    return w;
}

static workload *ctr(const char *name, bool shuffled) {
    static char names[MOST_INPUTS][8];
    workload *w = new_workload(name);
    for (unsigned i = 0; i < 39; i++) {
        bool is_float = i < 13;
        snprintf(names[i], sizeof names[i], "%c_%02u", is_float ? 'f' : 'c', is_float ? i : i - 13);
        is_float ? add_floats(w, names[i], 1) : add_ints(w, names[i], 1, 63, false);
    }
    add_ints(w, "label", 1, 1, false);
    finish(w, shuffled);
    return w;
}

/* ---- W6: SequenceExamples, parsed and encoded by functions of their own ---------------------- */

static struct {
    tfw_input context, lists[2];
    tfw_columns *context_columns, *list_columns;
    uint8_t *data;
    size_t len;
    tfw_span spans[RECORDS];
} sequences;

/* Offsets of equal parts: count + 1 of them. */
static int64_t *equal_parts(size_t count, int64_t size) {
    int64_t *offsets = reserve((count + 1) * sizeof(int64_t));
    for (size_t i = 0; i <= count; i++) {
        offsets[i] = (int64_t)i * size;
    }
    return offsets;
}

static tfw_input steps_of(const char *name, int kind, int64_t values_per_step, size_t value_size) {
    size_t cells = (size_t)RECORDS * SEQUENCE_STEPS;
    size_t count = cells * (size_t)values_per_step;
    return (tfw_input){.name = name, .name_len = strlen(name), .kind = kind,
                       .values = reserve(count * value_size), .value_count = count,
                       .byte_count = count * value_size, .cell_count = cells,
                       .splits = equal_parts(cells, values_per_step),
                       .steps = equal_parts(RECORDS, SEQUENCE_STEPS)};
}

static void make_sequences(void) {
    static const tfw_feature length = {
        .name = "length", .name_len = 6, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 1};
    static const tfw_feature lists[] = {
        {.name = "words", .name_len = 5, .kind = TFW_INT64, .layout = TFW_DENSE, .count = 1},
        {.name = "frames", .name_len = 6, .kind = TFW_FLOAT, .layout = TFW_DENSE,
         .count = FRAME_VALUES}};
    workload w = {0};
    add_ints(&w, "length", 1, 5, false);
    sequences.context = w.inputs[0];
    sequences.lists[0] = steps_of("words", TFW_INT64, 1, sizeof(int64_t));
    sequences.lists[1] = steps_of("frames", TFW_FLOAT, FRAME_VALUES, sizeof(float));
    sequences.data = reserve(ROOM);
    sequences.context_columns = columns_of(&length, 1, 0);
    tfw_schema *schema;
    expect(TFW_OK, tfw_schema_create(lists, 2, 1, &schema, NULL));
    expect(TFW_OK, tfw_columns_create(schema, TFW_FEATURE_LISTS, &sequences.list_columns, NULL));
}

#endif /* TFWIRE_COUNTS_WORKLOADS_H */
