/* SPDX-License-Identifier: Apache-2.0 */
/* tfwi_read_records, which the pipelines run: what it makes of a file is what a plain walk, tfw_parse
 * of each record and tfw_tally_block make of it, whatever the buffer, the steps and the reads. */
#include "common/script.h"

#include "common/table.h"
#include "pipeline/read_columns.h"

enum { MOST_RECORDS = SCRIPT_LIMIT / TFWI_FRAME_SIZE + 1 };

/* The records up to the first that is unusual, by a plain walk; *out_status is why it ends. */
static size_t model_columns(table *t, const file *f, uint64_t limit, unsigned scan_flags,
                            unsigned flags, size_t *out_end, int *out_status) {
    size_t at = 0, count = 0;
    *out_status = TFW_END;
    while (at < f->len) {
        int status = model_check(f, at, script_model_limit(limit), scan_flags);
        if (status == TFW_OK) {
            const tfw_span span = {at + TFW_HEADER_SIZE, tfwi_load64(f->data + at)};
            status = tfw_parse(t->columns, f->data, f->len, &span, 1, flags, NULL, NULL);
            at += status == TFW_OK ? (size_t)span.length + TFWI_FRAME_SIZE : 0;
        }
        if (status != TFW_OK) {
            *out_status = status;
            break;
        }
        count++;
    }
    *out_end = at;
    return count;
}

/* A buffer of just its size, which grows when it has to. */
static void grow(tfwi_stretch *s, size_t capacity) {
    uint8_t *larger = fuzz_alloc(capacity);
    if (s->end != 0) {
        memcpy(larger, s->buffer, s->end);
    }
    free(s->buffer);
    s->buffer = larger;
    s->capacity = capacity;
}

static int read_stretch(table *t, tfwi_stretch *s, size_t step, unsigned flags, tfw_tally *tally,
                        size_t *out_count) {
    int status = TFW_OK;
    *out_count = 0;
    while (status == TFW_OK || status == TFW_NEED_SPACE || status == TFW_E_MEMORY) {
        tfw_error error = {.status = TFW_OK};
        tfwi_reading reading = {.s = s, .context = t->columns, .flags = flags, .tally = tally};
        status = tfwi_read_records(&reading, step, &error);
        const size_t done = reading.done;
        CHECK(done <= step && (status != TFW_OK || done == step));
        *out_count += done;
        CHECK(status >= 0 || error.record == (int64_t)done || status == TFW_E_MEMORY);
        if (status == TFW_NEED_SPACE) {
            CHECK(error.expected > (int64_t)s->capacity);
            /* As users do: what the file cannot hold is no reason to reserve memory. */
            if ((uint64_t)error.expected > script_source->len - s->offset) {
                return TFW_E_TRUNCATED;
            }
            grow(s, (size_t)error.expected);
        }
    }
    return status;
}

/* flags, limit, step, buffer, failing allocation; a schema; the file. */
static void run(input *in) {
    const uint8_t choice = input_byte(in);
    const unsigned flags = choice & (TFW_EMPTY_IS_MISSING | TFW_SINGLE);
    const unsigned scan_flags = (choice & 4) != 0 ? TFW_NO_DATA_CRC : 0;
    const uint64_t limit = script_limits[choice >> 3 & 3];
    const size_t step = 1 + input_byte(in);
    const size_t capacity = TFW_HEADER_SIZE + (size_t)input_number(in, 2) % 5000;
    const long failing = (long)input_byte(in) - 1;
    specs s;
    table expected, found;
    file f = {0};
    specs_init(&s, in, false);
    script_run(&f, in);
    int fd = script_open(&f, (choice & 32) != 0 ? choice + UINT64_C(1) : 0);
    table_init(&expected, &s, false, MOST_RECORDS + 256);
    table_init(&found, &s, false, MOST_RECORDS + 256);
    size_t end, count;
    int status, expected_status;
    size_t records = model_columns(&expected, &f, limit, scan_flags, flags, &end,
                                   &expected_status);
    tfwi_stretch stretch = {.fd = fd, .flags = scan_flags, .max_record_size = limit,
                            .stop = UINT64_MAX, .buffer = fuzz_alloc(capacity),
                            .capacity = capacity};
    tfw_tally tally = {0}, plain = {0};
    tfwi_test_fail_allocation = failing;
    status = read_stretch(&found, &stretch, step, flags, &tally, &count);
    tfwi_test_fail_allocation = -1;
    CHECK_EQ(expected_status, status);
    CHECK_EQ(records, count);
    CHECK_EQ(end, stretch.offset);
    CHECK_EQ(TFW_OK, tfw_tally_block(&plain, f.data, end, scan_flags, NULL));
    CHECK(memcmp(&plain, &tally, sizeof plain) == 0);
    table_take(&expected);
    table_take(&found);
    check_tables(&expected, &found);
    table_free(&expected);
    table_free(&found);
    free(stretch.buffer);
    free(f.data);
    tfw_schema_free(s.schema);
}

FUZZ_TARGET(run)
