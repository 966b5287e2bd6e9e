/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that the schema has not: each is told with the first record that has it, when that was
 * delivered, whatever the number of threads. */
#include "pipeline.h"

enum { MANY = 200, EACH = 12, FILES = 2, NOTED = 16, NAME = 8 };

/* Records of which every 12th has a key that none before it has, and all one of a list. */
static file file_with_unknown(size_t number, bool sequence) {
    file f = {0};
    uint64_t state = 2 * number + 1;
    for (size_t i = 0; i < MANY; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "u%zu", (number * MANY + i) / EACH);
        blob message = JOIN(example_of(&state, i), EXAMPLE(entry(name, STRING("late"))));
        if (sequence) {
            message = JOIN(message, field(2, entry("m", field(1, INTS(1)))));
        }
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    return f;
}

static fileset files_with_unknown(bool sequence) {
    fileset set = {0};
    for (size_t i = 0; i < FILES; i++) {
        fileset_add(&set, file_with_unknown(i, sequence));
    }
    return set;
}

/* The keys of the records before so many, counted through the files. */
static void check_told(tfw_pipeline *p, uint64_t delivered, bool sequence, bool is_all) {
    uint64_t known = (delivered + EACH - 1) / EACH;
    known = known < NOTED ? known : NOTED;
    tfw_unknown u;
    for (uint64_t i = 0; i < known; i++) {
        char name[NAME];
        const int len = snprintf(name, sizeof name, "u%d", (int)i);
        CHECK_EQ(TFW_OK, tfw_pipeline_unknown(p, (size_t)i, &u));
        CHECK(u.name_len == (uint64_t)len && memcmp(u.name, name, (size_t)len) == 0);
        CHECK_EQ(i * EACH, u.place.file * MANY + u.place.record);
        CHECK_EQ(0, u.is_list);
        CHECK(!is_all || u.has_more == (i == NOTED - 1));
    }
    if (sequence && delivered != 0) {
        CHECK_EQ(TFW_OK, tfw_pipeline_unknown(p, (size_t)known++, &u));
        CHECK(u.name_len == 1 && *u.name == 'm' && u.is_list == 1 && u.has_more == 0);
        CHECK(u.place.file == 0 && u.place.record == 0);
    }
    CHECK_EQ(TFW_END, tfw_pipeline_unknown(p, (size_t)known, &u));
    CHECK(u.name == NULL);
    CHECK_EQ(TFW_END, tfw_pipeline_unknown(p, SIZE_MAX, &u));
}

static void check_files(bool sequence, uint32_t threads, uint64_t batch_size) {
    const wanted w = {.mode = TFW_PIPELINE_PARSE,
                      .flags = TFW_PIPELINE_NOTE_UNKNOWN | (sequence ? TFW_SEQUENCE : 0),
                      .batch_size = batch_size};
    fileset set = files_with_unknown(sequence);
    table t = table_new(sequence);
    tfw_pipeline *p = pipeline_of(&set, &w, &t, threads, 900);
    uint64_t delivered = 0;
    check_told(p, delivered, sequence, false);
    tfw_chunk *chunk;
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        tfw_chunk_info info = {.size = sizeof info};
        tfw_chunk_get(chunk, &info);
        delivered += info.records;
        tfw_chunk_release(chunk);
        check_told(p, delivered, sequence, delivered == FILES * MANY);
    }
    CHECK_EQ(FILES * MANY, delivered);
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

static void keys_are_told_when_their_records_are_delivered(void) {
    for (uint32_t threads = 1; threads < 4; threads++) {
        check_files(false, threads, 3);
        check_files(true, threads, 7);
        check_files(false, threads, 2 * MANY);
    }
}

static void nothing_is_noted_unless_asked_for(void) {
    const wanted w = {.mode = TFW_PIPELINE_PARSE, .batch_size = 3};
    fileset set = files_with_unknown(false);
    table t = table_new(false);
    tfw_pipeline *p = pipeline_of(&set, &w, &t, 2, 900);
    tfw_chunk *chunk;
    tfw_unknown u;
    while (tfw_pipeline_next(p, -1, &chunk, NULL) == TFW_OK) {
        tfw_chunk_release(chunk);
    }
    CHECK_EQ(TFW_END, tfw_pipeline_unknown(p, 0, &u));
    tfw_pipeline_free(p);
    table_free(&t);
    fileset_free(&set);
}

int main(void) {
    RUN(keys_are_told_when_their_records_are_delivered);
    RUN(nothing_is_noted_unless_asked_for);
    return check_report("keys that pipelines do not know");
}
