/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_reader_summarize against the sums of what a reader should find. */
#include "records.h"

#include <fcntl.h>

static tfw_summary new_summary(void) {
    return (tfw_summary){.size = sizeof(tfw_summary), .shortest = UINT64_MAX};
}

static tfw_summary model_summary(const outcome *o) {
    tfw_summary s = new_summary();
    for (size_t i = 0; i < o->count; i++) {
        const uint64_t length = o->records[i].length;
        s.records++;
        s.payload_bytes += length;
        s.shortest = length < s.shortest ? length : s.shortest;
        s.longest = length > s.longest ? length : s.longest;
        s.next_record = o->records[i].number + 1;
        s.next_offset = o->records[i].offset + length + TFW_FOOTER_SIZE;
    }
    return s;
}

static tfw_tally model_tally(const file *f, const outcome *o) {
    tfw_tally tally = {0};
    for (size_t i = 0; i < o->count; i++) {
        const size_t begin = (size_t)o->records[i].offset - TFW_HEADER_SIZE;
        CHECK_EQ(TFW_OK, tfw_tally_block(&tally, f->data + begin,
                                         (size_t)o->records[i].length + TFWI_FRAME_SIZE, 0, NULL));
    }
    return tally;
}

/* Summarizes a file, max_bytes at a time; returns the last status. */
static int summarize(const file *f, const tfw_reader_options *options, uint64_t max_bytes,
                     tfw_summary *summary, tfw_tally *tally, tfw_error *error) {
    tfw_reader *reader = NULL;
    feeding how = {.piece = 100};
    size_t fed = 0;
    CHECK_EQ(TFW_OK, tfw_reader_create(options, &reader, error));
    int status = TFW_OK;
    while (status == TFW_OK) {
        const uint64_t before = summary->payload_bytes + summary->records * TFWI_FRAME_SIZE;
        status = tfw_reader_summarize(reader, max_bytes, 0, summary, tally, error);
        if (status == TFW_OK) {
            CHECK(summary->payload_bytes + summary->records * TFWI_FRAME_SIZE - before >=
                  max_bytes);
        } else if (status == TFW_NEED_INPUT) {
            status = feed(reader, f, &fed, &how, error);
        }
    }
    tfw_reader_free(reader);
    return status;
}

static void damage(file *f, uint64_t seed) {
    uint64_t state = seed * 2 + 1;
    for (uint64_t i = check_random(&state) % 4; i != 0 && f->len != 0; i--) {
        f->data[check_random(&state) % f->len] ^= (uint8_t)(1u << check_random(&state) % 8);
    }
    if (check_random(&state) % 4 == 0) {
        f->len -= (size_t)(check_random(&state) % (f->len + 1));
    }
}

static void summaries_are_the_sums_of_what_a_reader_finds(void) {
    const uint64_t buffers[] = {0, 64, 1000};
    const uint64_t pieces[] = {1, 500, 1 << 16, UINT64_MAX};
    for (uint64_t seed = 0; seed < 400; seed++) {
        file f = file_random(seed, (size_t)seed % 50, seed % 3 == 0 ? 3000 : 60);
        damage(&f, seed);
        tfw_reader_options options = options_for((enum tfw_on_corrupt)(seed % 4));
        const outcome expected = model(&f, &options);
        const tfw_summary sums = model_summary(&expected);
        const tfw_tally tally = model_tally(&f, &expected);
        options.buffer_size = buffers[seed % 3];
        for (int with_file = 0; with_file < 2; with_file++) {
            options.fd = with_file != 0 ? file_open(&f) : -1;
            for (size_t p = 0; p < 4; p++) {
                tfw_summary found = new_summary();
                tfw_tally added = {0};
                tfw_error error = {0};
                tfw_tally *adds = p % 2 == 0 ? &added : NULL;
                CHECK_EQ(expected.status,
                         summarize(&f, &options, pieces[p], &found, adds, &error));
                CHECK(memcmp(&sums, &found, sizeof found) == 0);
                CHECK(adds == NULL || memcmp(&tally, &added, sizeof added) == 0);
                CHECK(expected.status == TFW_END || error.offset == expected.offset);
            }
            if (with_file != 0) {
                close(options.fd);
            }
        }
        free(f.data);
    }
}

static void nothing_is_read_for_no_bytes(void) {
    file f = file_random(1, 3, 10);
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader = NULL;
    tfw_summary summary = new_summary();
    options.fd = file_open(&f);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    CHECK_EQ(TFW_OK, tfw_reader_summarize(reader, 0, 0, &summary, NULL, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_reader_summarize(reader, 1, 2, &summary, NULL, NULL));
    CHECK_EQ(0, summary.records);
    CHECK_EQ(TFW_END, tfw_reader_summarize(reader, UINT64_MAX, 0, &summary, NULL, NULL));
    CHECK_EQ(3, summary.records);
    CHECK_EQ(TFW_END, tfw_reader_summarize(reader, UINT64_MAX, 0, &summary, NULL, NULL));
    CHECK_EQ(3, summary.records);
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

int main(void) {
    RUN(summaries_are_the_sums_of_what_a_reader_finds);
    RUN(nothing_is_read_for_no_bytes);
    return check_report("summary");
}
