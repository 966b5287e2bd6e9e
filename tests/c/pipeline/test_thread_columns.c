/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of the Python package run beside each other: each has objects and memory of its
 * own; the file, the schemas, the messages and the columns to encode are shared. One race per
 * function, for ThreadSanitizer (make check-threads). */
#include "race.h"
#include "tables.h"

#ifdef TFW_TEST_QUICK
enum { ROUNDS = 10 };
#else
enum { ROUNDS = 100 };
#endif

typedef struct shared {
    file file;
    int fd;
    bool sequence;
    tfw_span spans[RECORDS];
    const tfw_schema *schema, *list_schema;
} shared;

static shared shared_new(bool sequence) {
    shared s = {.file = file_of_examples(3, RECORDS, sequence), .sequence = sequence};
    for (size_t i = 0; i < RECORDS; i++) {
        const size_t begin = file_begin(&s.file, i) + TFW_HEADER_SIZE;
        s.spans[i] = (tfw_span){begin, s.file.ends[i] - TFW_FOOTER_SIZE - begin};
    }
    s.fd = file_open(&s.file);
    return s;
}

static void shared_free(shared *s) {
    close(s->fd);
    free(s->file.data);
}

static bool same(const void *a, const void *b, uint64_t size) {
    return memcmp(a, b, (size_t)size) == 0;
}

/* The columns of a thread: a number, a string, numbers, and a list of numbers. */
typedef struct columns {
    tfw_columns *context, *lists;
    int64_t numbers[RECORDS];
    tfw_column found[3], list;
} columns;

static void columns_open(columns *c, const shared *s) {
    *c = (columns){0};
    EXPECT(tfw_columns_create(s->schema, 0, &c->context, NULL) == TFW_OK);
    EXPECT(tfw_columns_create(s->list_schema, TFW_FEATURE_LISTS, &c->lists, NULL) == TFW_OK);
    EXPECT(tfw_columns_bind(c->context, 0, c->numbers, RECORDS, NULL) == TFW_OK);
}

static void columns_close(columns *c) {
    tfw_columns_free(c->context);
    tfw_columns_free(c->lists);
}

/* count records from first on are what file_of_examples made. */
static void expect_columns(const columns *c, const shared *s, size_t first, size_t count) {
    uint64_t values = 0;
    for (size_t i = 0; i < count; i++) {
        EXPECT(c->numbers[i] == (int64_t)(first + i));
        values += (first + i) % 7 > 4 ? 0 : (first + i) % 3 != 0 ? 2 : 1;
    }
    EXPECT(c->found[1].value_count == count && c->found[2].value_count == values);
    EXPECT(!s->sequence || c->list.cell_count == 2 * count);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void *parse_sequences(void *argument) {
    const shared *s = argument;
    columns c;
    columns_open(&c, s);
    for (int i = 0; i < ROUNDS; i++) {
        size_t done = 0;
        tfw_columns_clear(c.context);
        tfw_columns_clear(c.lists);
        EXPECT(tfw_parse_sequence(c.context, c.lists, s->file.data, s->file.len, s->spans, RECORDS,
                                  0, &done, NULL) == TFW_OK);
        EXPECT(done == RECORDS);
        EXPECT(tfw_columns_peek(c.context, 1, &c.found[1], NULL) == TFW_OK);
        EXPECT(tfw_columns_peek(c.context, 2, &c.found[2], NULL) == TFW_OK);
        EXPECT(tfw_columns_peek(c.lists, 0, &c.list, NULL) == TFW_OK);
        expect_columns(&c, s, 0, RECORDS);
    }
    columns_close(&c);
    return NULL;
}

static void *survey(void *argument) {
    const shared *s = argument;
    for (int i = 0; i < ROUNDS; i++) {
        tfw_survey *found;
        tfw_feature_survey feature = {.size = sizeof feature};
        EXPECT(tfw_survey_create(SEED, &found, NULL) == TFW_OK);
        EXPECT(tfw_survey_add(found, s->file.data, s->file.len, s->spans, RECORDS,
                              s->sequence ? TFW_SEQUENCE : 0, NULL, NULL) == TFW_OK);
        EXPECT(tfw_survey_count(found) == (s->sequence ? 4 : 3));
        tfw_survey_get(found, 0, &feature);
        EXPECT(feature.messages == RECORDS && feature.kinds[TFW_INT64].most == RECORDS - 1);
        tfw_survey_free(found);
    }
    return NULL;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static const int64_t numbers[] = {1, -2, 300, 4};
static const int64_t steps[] = {0, 1, 1, 3, 4};
static const int64_t splits[] = {0, 1, 1, 3, 4};
static const int64_t offsets[] = {0, 1, 1, 3, 6};

/* Columns that all threads encode. */
static const tfw_input inputs[] = {
    {.name = "n", .name_len = 1, .kind = TFW_INT64, .count = 1, .values = numbers,
     .value_count = 4, .byte_count = sizeof numbers, .cell_count = 4},
    {.name = "s", .name_len = 1, .kind = TFW_BYTES, .count = 1, .values = "abcdef",
     .value_count = 4, .byte_count = 6, .offsets = offsets, .cell_count = 4},
    {.name = "l", .name_len = 1, .kind = TFW_INT64, .values = numbers, .value_count = 4,
     .byte_count = sizeof numbers, .splits = splits, .steps = steps, .cell_count = 4},
};

static void *encode(void *argument) {
    uint8_t first[1024], out[1024];
    tfw_span spans[4];
    size_t done, len, first_len = 0;
    (void)argument;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        uint8_t *to = i == 0 ? first : out;
        EXPECT(tfw_encode_sequence(inputs, 2, inputs + 2, 1, 0, 4, TFW_HEADER_SIZE,
                                   TFW_FOOTER_SIZE, to, sizeof out, spans, &done, &len, NULL) ==
               TFW_OK);
        EXPECT(tfw_frame(to, len, spans, done, NULL) == TFW_OK && done == 4);
        first_len = i == 0 ? len : first_len;
        EXPECT(len == first_len && (i == 0 || same(first, out, len)));
        EXPECT(tfw_encode(inputs, 2, 0, 4, 0, 0, out, sizeof out, spans, &done, &len, NULL) ==
               TFW_OK);
        EXPECT(done == 4);
    }
    return NULL;
}

/* ---- Races ---------------------------------------------------------------------------------- */

static void race_on_files(void *(*function)(void *), bool examples) {
    for (int sequence = !examples; sequence < 2; sequence++) {
        table t = table_new(true);
        shared s = shared_new(sequence != 0);
        s.schema = t.schema;
        s.list_schema = t.list_schema;
        race(function, &s);
        shared_free(&s);
        table_free(&t);
    }
}

static void sequences_are_parsed_side_by_side(void) { race_on_files(parse_sequences, false); }
static void messages_are_surveyed_side_by_side(void) { race_on_files(survey, true); }
static void columns_are_encoded_by_all(void) { race(encode, NULL); }

int main(void) {
    RUN(sequences_are_parsed_side_by_side);
    RUN(messages_are_surveyed_side_by_side);
    RUN(columns_are_encoded_by_all);
    return check_report("threads on columns");
}
