/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_walk against a plain walk over the headers, and tfw_pipeline_fetch with offsets that may
 * lie: what is fetched is always a record that verifies, at the place and of the size that
 * the offsets say. */
#include "common/script.h"

#include "tfwire_pipeline.h"

/* Walks the file in steps of so many records; the offsets of all of them and the last word. */
static int walk(int fd, const file *f, size_t buffer_len, size_t step, int64_t *offsets,
                size_t *out_count) {
    uint64_t offset = 0;
    uint8_t *buffer = fuzz_alloc(buffer_len);
    size_t total = 0, count;
    tfw_error error;
    int status;
    do {
        size_t room = LOG_MAX - total < step ? LOG_MAX - total : step;
        status = tfw_walk(fd, f->len, &offset, buffer, buffer_len, offsets + total, room, &count,
                          &error);
        CHECK(count <= room);
        total += count;
        if (status < 0) {
            CHECK_EQ(offset, error.offset);
            CHECK_EQ(count, error.record);
        }
    } while (status == TFW_OK && total < LOG_MAX);
    offsets[total] = (int64_t)offset;
    *out_count = total;
    free(buffer);
    return status;
}

static void check_walk(const file *f, int status, const int64_t *offsets, size_t count) {
    size_t at = 0;
    int expected = TFW_END;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(at, offsets[i]);
        CHECK_EQ(TFW_OK, model_check(f, at, 0, TFW_NO_DATA_CRC));
        at = check_failures == 0 ? at + (size_t)tfwi_load64(f->data + at) + TFWI_FRAME_SIZE : at;
    }
    CHECK_EQ(at, offsets[count]);
    if (at < f->len) {
        expected = model_check(f, at, 0, TFW_NO_DATA_CRC);
    }
    CHECK_EQ(expected, status);
}

/* The status that a record has where the offsets say that it lies. */
static int expected_of(const file *f, int64_t begin, int64_t end) {
    if (begin < 0 || end < begin || end - begin < TFWI_FRAME_SIZE) {
        return TFW_E_ARGUMENT;
    }
    if (end > (int64_t)f->len) {
        return TFW_E_TRUNCATED;
    }
    const uint8_t *record = f->data + begin;
    uint64_t length = (uint64_t)(end - begin) - TFWI_FRAME_SIZE;
    const uint8_t *footer = record + TFW_HEADER_SIZE + length;
    return tfw_verify_record(record, record + TFW_HEADER_SIZE, length, footer, NULL);
}

static void check_fetched(const file *f, const int64_t *offsets, int64_t number,
                          const uint8_t *out, size_t capacity, tfw_span span) {
    int64_t begin = offsets[number];
    CHECK_EQ(TFW_OK, expected_of(f, begin, offsets[number + 1]));
    CHECK_EQ(offsets[number + 1] - begin - TFWI_FRAME_SIZE, span.length);
    CHECK(span.length <= capacity && span.offset <= capacity - span.length);
    if (check_failures == 0) {
        const uint8_t *payload = f->data + begin + TFW_HEADER_SIZE;
        CHECK(memcmp(payload, out + span.offset, (size_t)span.length) == 0);
    }
}

/* Where the record said to be there is none; offsets that no record can have are no record's. */
static void check_refused(const file *f, const int64_t *offsets, int64_t number, int status,
                          const tfw_error *error) {
    int64_t end = offsets[number + 1];
    int expected = expected_of(f, offsets[number], end);
    bool beyond = expected == TFW_E_TRUNCATED && end > INT64_MAX - (1 << 30);
    CHECK_EQ(beyond ? TFW_E_ARGUMENT : expected, status);
    CHECK(status == TFW_E_ARGUMENT ||
          (error->record == number && error->offset == offsets[number]));
}

/* What ends a pipeline that orders all numbers is the first record that is wrong, and every one
 * before it is delivered. */
static void check_orders(const tfw_indexed_file *indexed, const file *f, const int64_t *numbers,
                         size_t count, size_t order, uint32_t threads) {
    const tfw_pipeline_options options = {.size = sizeof options, .num_threads = threads,
                                          .mode = TFW_PIPELINE_SPANS, .indexed = indexed,
                                          .indexed_count = 1};
    tfw_pipeline *p;
    tfw_chunk *chunk;
    tfw_error error;
    size_t ordered = 0, done = 0;
    int status;
    CHECK_EQ(TFW_OK, tfw_pipeline_create(&options, &p, NULL));
    do {
        while (ordered < count) {
            const size_t more = count - ordered < order ? count - ordered : order;
            if (tfw_pipeline_fetch(p, numbers + ordered, more, NULL) != TFW_OK) {
                break;
            }
            ordered += more;
        }
        status = tfw_pipeline_next(p, -1, &chunk, &error);
        if (status == TFW_OK) {
            tfw_chunk_info info = {.size = sizeof info};
            tfw_chunk_get(chunk, &info);
            CHECK_EQ(done, info.begin.record);
            for (size_t i = 0; i < info.records && check_failures == 0; i++, done++) {
                check_fetched(f, indexed->offsets, numbers[done], info.data,
                              (size_t)info.data_len, info.spans[i]);
            }
            tfw_chunk_release(chunk);
        }
    } while (status == TFW_OK && check_failures == 0);
    CHECK_EQ(status == TFW_END ? count : done, done);
    if (status != TFW_END) {
        tfw_place place, next;
        tfw_pipeline_stopped(p, &place, &next);
        CHECK_EQ(numbers[done], place.record);
        error.offset = status == TFW_E_ARGUMENT ? indexed->offsets[numbers[done]] : error.offset;
        check_refused(f, indexed->offsets, numbers[done], status, &error);
    }
    tfw_pipeline_free(p);
}

/* buffer, step, nothing, how to read, a lie; numbers; the file. */
static void run(input *in) {
    static int64_t offsets[LOG_MAX + 1];
    int64_t numbers[64];
    size_t buffer_len = TFW_HEADER_SIZE + (size_t)input_number(in, 2) % 3000;
    size_t step = 1 + input_byte(in);
    input_number(in, 2); /* of older inputs */
    uint8_t how = input_byte(in), place = input_byte(in), count = input_byte(in) % 64;
    int64_t lie = (int64_t)input_number(in, 1 + (how >> 2) % 8);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = input_byte(in);
    }
    file f = {0};
    script_run(&f, in);
    int fd = script_open(&f, (how & 1) != 0 ? how + UINT64_C(1) : 0);
    size_t records;
    int status = walk(fd, &f, buffer_len, step, offsets, &records);
    check_walk(&f, status, offsets, records);
    if ((how & 2) != 0) {
        offsets[place % (records + 1)] = lie;
    }
    for (size_t i = 0; i < count && records != 0; i++) {
        numbers[i] %= (int64_t)records;
    }
    tfw_indexed_file indexed = {offsets, records, NULL, fd, 0};
    for (uint32_t i = 0; i < 3 && records != 0; i++) {
        if (i == 2) {
            CHECK_EQ(TFW_OK, tfw_cache_create(f.len, &indexed.cache, NULL));
        }
        check_orders(&indexed, &f, numbers, count, step, 1 + i);
    }
    tfw_cache_free(indexed.cache);
    free(f.data);
}

FUZZ_TARGET(run)
