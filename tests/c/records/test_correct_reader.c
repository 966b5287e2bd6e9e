/* SPDX-License-Identifier: Apache-2.0 */
/* Correction of flipped bits by a reader, whatever the policy. */
#include "records.h"

static void flip_bit(uint8_t *data, size_t bit) { data[bit / 8] ^= (uint8_t)(1u << (bit % 8)); }

/* Reads a damaged copy of f piecewise and compares what comes with f itself. */
static outcome read_corrected(const file *f, const file *damaged, uint32_t flags, uint32_t policy,
                              size_t piece, size_t *out_flips) {
    tfw_reader_options options = {
        .size = sizeof options, .buffer_size = 64, .fd = -1, .flags = flags, .on_corrupt = policy};
    feeding how = {.piece = piece, .seed = 5};
    outcome o = {.offset = -1, .record = -1};
    tfw_reader *reader = NULL;
    tfw_error error;
    tfw_batch batch = {.size = sizeof batch};
    size_t fed = 0;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, &error));
    for (;;) {
        o.status = tfw_reader_next(reader, 0, &batch, &error);
        if (o.status == TFW_OK) {
            take(&o, f, &batch, &how);
        } else if (o.status == TFW_NEED_INPUT) {
            CHECK_EQ(TFW_OK, feed(reader, damaged, &fed, &how, &error));
        } else {
            break;
        }
    }
    o.region_count = tfw_reader_skipped(reader, 0, o.regions, LOG_MAX);
    tfw_flip flips[8];
    *out_flips = tfw_reader_flips(reader, 0, flips, 8);
    for (size_t i = 0; i < *out_flips; i++) {
        CHECK(flips[i].applied == 1 && flips[i].ambiguous == 0);
        uint64_t at = flips[i].offset + flips[i].byte;
        CHECK_EQ(1 << flips[i].bit, f->data[at] ^ damaged->data[at]);
        CHECK_EQ(file_begin(f, (size_t)flips[i].record), flips[i].offset);
    }
    tfw_reader_free(reader);
    return o;
}

static file copy_of(const file *f) {
    file copy = {0};
    file_append(&copy, f->data, f->len);
    return copy;
}

static outcome whole(const file *f) {
    tfw_reader_options options = {.size = sizeof options, .fd = -1};
    return model(f, &options);
}

static void a_reader_corrects_every_bit_of_a_file(void) {
    file f = file_random(11, 6, 60);
    outcome expected = whole(&f);
    for (size_t bit = 0; bit < 8 * f.len; bit++) {
        file damaged = copy_of(&f);
        size_t flips = 0;
        flip_bit(damaged.data, bit);
        outcome o = read_corrected(&f, &damaged, TFW_CORRECT, TFW_CORRUPT_RAISE,
                                   bit % 3 == 0 ? 1 : bit % 3 == 1 ? 50 : 100000, &flips);
        CHECK_EQ(1, flips);
        CHECK_OUTCOME(&expected, &o);
        free(damaged.data);
    }
    free(f.data);
}

static void flips_in_neighbours_are_all_corrected(void) {
    file f = file_random(12, 5, 3000);
    file damaged = copy_of(&f);
    size_t flips = 0;
    for (size_t i = 0; i < f.count; i++) {
        flip_bit(damaged.data + file_begin(&f, i), i % 2 == 0 ? 10 * i : 8 * 12 + 7 * i);
    }
    outcome expected = whole(&f);
    outcome o = read_corrected(&f, &damaged, TFW_CORRECT, TFW_CORRUPT_RAISE, 0, &flips);
    CHECK_EQ(f.count, flips);
    CHECK_OUTCOME(&expected, &o);
    free(damaged.data);
    free(f.data);
}

/* Policies hold for what is no single bit, and for headers that promise more than there is. */
static void what_is_not_one_bit_is_left_to_the_policy(void) {
    file f = file_random(13, 5, 300);
    file damaged = copy_of(&f);
    size_t flips = 0;
    flip_bit(damaged.data + file_begin(&f, 1), 100);
    flip_bit(damaged.data + file_begin(&f, 1), 105);
    flip_bit(damaged.data + file_begin(&f, 3), 35); /* a length of 2^35 and more */
    flip_bit(damaged.data + file_begin(&f, 3), 99);
    outcome o = read_corrected(&f, &damaged, TFW_CORRECT, TFW_CORRUPT_SKIP, 0, &flips);
    CHECK_EQ(0, flips);
    CHECK_EQ(3, o.count);
    CHECK_EQ(2, o.region_count);
    CHECK_EQ(file_begin(&f, 1), o.regions[0].begin);
    CHECK_EQ(file_begin(&f, 2), o.regions[0].end);
    CHECK_EQ(file_begin(&f, 3), o.regions[1].begin);
    CHECK_EQ(file_begin(&f, 4), o.regions[1].end);
    free(damaged.data);
    free(f.data);
}

/* The trap of resynchronising: after a damaged header the records of an inner file look like any
 * other. Corrected, the header leads past them. */
static void a_corrected_header_leads_past_records_within_its_payload(void) {
    file inner = file_random(14, 4, 50);
    file f = {0};
    file_append_record(&f, inner.data, inner.len);
    file_append_record(&f, "next", 4);
    file damaged = copy_of(&f);
    flip_bit(damaged.data, 1);
    outcome expected = whole(&f);
    size_t flips = 0;
    outcome o = read_corrected(&f, &damaged, 0, TFW_CORRUPT_SKIP, 7, &flips);
    CHECK_EQ(inner.count + 1, o.count);
    o = read_corrected(&f, &damaged, TFW_CORRECT, TFW_CORRUPT_SKIP, 7, &flips);
    CHECK_OUTCOME(&expected, &o);
    free(damaged.data);
    free(inner.data);
    free(f.data);
}

/* A bit of the footer after a long payload, which flips an even run of bits of the CRC as two bits
 * of the payload would. */
static size_t ambiguous_bit(const uint8_t *record, size_t length) {
    uint32_t stored = tfwi_load32(record + TFW_HEADER_SIZE + length);
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t run = tfwi_crc32c_unmask(stored ^ UINT32_C(1) << bit) ^ tfwi_crc32c_unmask(stored);
        if (__builtin_popcount(run) % 2 == 0) {
            return 8 * (TFW_HEADER_SIZE + length) + bit;
        }
    }
    abort();
}

static void what_is_ambiguous_is_noted_and_corrected_on_demand_only(void) {
    enum { LENGTH = 40000 };
    uint8_t *payload = calloc(1, LENGTH);
    file f = {0};
    file_append_record(&f, payload, LENGTH);
    file_append_record(&f, "next", 4);
    flip_bit(f.data, ambiguous_bit(f.data, LENGTH));
    for (int wanted = 0; wanted < 2; wanted++) {
        tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
        options.flags = TFW_CORRECT | (wanted ? TFW_CORRECT_AMBIGUOUS : 0);
        options.fd = file_open(&f);
        tfw_reader *reader = NULL;
        tfw_batch batch = {.size = sizeof batch};
        tfw_flip flip;
        uint64_t count = 0, applied = 0, bytes = 0;
        CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
        while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
            count += batch.count;
        }
        CHECK_EQ(wanted ? 2 : 1, count);
        CHECK_EQ(1, tfw_reader_flips(reader, 0, &flip, 1));
        CHECK_EQ(1, flip.ambiguous);
        CHECK_EQ(wanted, flip.applied);
        CHECK_EQ(1, tfw_reader_flips_total(reader, &applied));
        CHECK_EQ(wanted, applied);
        CHECK_EQ(wanted ? 0 : 1, tfw_reader_skipped_total(reader, &bytes));
        tfw_reader_free(reader);
        close(options.fd);
    }
    free(payload);
    free(f.data);
}

static void a_file_is_corrected_like_fed_bytes(void) {
    file f = file_random(15, 40, 4000);
    file damaged = copy_of(&f);
    const int fd = unnamed_file();
    for (size_t i = 0; i < f.count; i++) {
        size_t bits = 8 * (f.ends[i] - file_begin(&f, i));
        flip_bit(damaged.data + file_begin(&f, i), i * 7919 % bits);
    }
    CHECK(write(fd, damaged.data, damaged.len) == (ssize_t)damaged.len);
    tfw_reader_options options = {.size = sizeof options,
                                  .fd = fd,
                                  .buffer_size = 100,
                                  .flags = TFW_CORRECT | TFW_CORRECT_AMBIGUOUS};
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    feeding how = {0};
    outcome o = {.offset = -1, .record = -1};
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    while ((o.status = tfw_reader_next(reader, 0, &batch, NULL)) == TFW_OK) {
        take(&o, &f, &batch, &how);
    }
    outcome expected = whole(&f);
    CHECK_OUTCOME(&expected, &o);
    CHECK_EQ(f.count, tfw_reader_flips(reader, 0, NULL, 0));
    tfw_reader_free(reader);
    close(fd);
    free(damaged.data);
    free(f.data);
}

/* The first ones and the last: damage everywhere takes no more memory than here and there. */
static void of_very_many_flips_not_all_are_kept(void) {
    enum { COUNT = TFW_MOST_REGIONS + 100, SIZE = 17 };
    file f = {.data = calloc(COUNT, SIZE), .len = (size_t)COUNT * SIZE};
    for (size_t at = 0; at < f.len; at += SIZE) {
        tfw_span span = {at + TFW_HEADER_SIZE, 1};
        CHECK_EQ(TFW_OK, tfw_frame(f.data, f.len, &span, 1, NULL));
        flip_bit(f.data + at, 8 * TFW_HEADER_SIZE);
    }
    tfw_reader_options options = {.size = sizeof options, .flags = TFW_CORRECT};
    options.fd = file_open(&f);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_flip flip;
    uint64_t count = 0, applied = 0;
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
        count += batch.count;
    }
    CHECK_EQ(COUNT, count);
    CHECK_EQ(COUNT, tfw_reader_flips_total(reader, &applied));
    CHECK_EQ(COUNT, applied);
    CHECK_EQ(TFW_MOST_REGIONS, tfw_reader_flips(reader, TFW_MOST_REGIONS - 2, &flip, 1));
    CHECK_EQ(TFW_MOST_REGIONS - 2, flip.record);
    CHECK_EQ(TFW_MOST_REGIONS, tfw_reader_flips(reader, TFW_MOST_REGIONS - 1, &flip, 1));
    CHECK_EQ(COUNT - 1, flip.record);
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

#ifdef TFW_TEST_FAULTS
/* Memory that fails while a bit is noted; the next call corrects it all the same. */
static void a_reader_survives_failing_memory(void) {
    file f = file_random(16, 3, 300), damaged = copy_of(&f);
    outcome expected = whole(&f);
    int status = TFW_E_MEMORY;
    flip_bit(damaged.data + file_begin(&f, 1), 8 * 20);
    for (long n = 0; status == TFW_E_MEMORY; n++) {
        tfw_reader_options options = {.size = sizeof options, .fd = -1, .flags = TFW_CORRECT};
        tfw_reader *reader;
        tfw_batch batch = {.size = sizeof batch};
        feeding how = {0};
        size_t fed = 0;
        outcome o = {.offset = -1, .record = -1};
        int first = TFW_OK;
        CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
        while (fed < damaged.len) {
            CHECK_EQ(TFW_OK, feed(reader, &damaged, &fed, &how, NULL));
        }
        CHECK_EQ(TFW_OK, feed(reader, &damaged, &fed, &how, NULL));
        tfwi_test_fail_allocation = n;
        while ((o.status = tfw_reader_next(reader, 0, &batch, NULL)) != TFW_END) {
            CHECK(o.status == TFW_OK || o.status == TFW_E_MEMORY);
            first = o.status == TFW_E_MEMORY ? o.status : first;
            if (o.status == TFW_OK) {
                take(&o, &f, &batch, &how);
            }
        }
        status = first;
        tfwi_test_fail_allocation = -1;
        CHECK_OUTCOME(&expected, &o);
        CHECK_EQ(1, tfw_reader_flips(reader, 0, NULL, 0));
        tfw_reader_free(reader);
    }
    free(damaged.data);
    free(f.data);
}
#endif

int main(void) {
#ifdef TFW_TEST_FAULTS
    RUN(a_reader_survives_failing_memory);
#endif
    RUN(a_reader_corrects_every_bit_of_a_file);
    RUN(flips_in_neighbours_are_all_corrected);
    RUN(what_is_not_one_bit_is_left_to_the_policy);
    RUN(a_corrected_header_leads_past_records_within_its_payload);
    RUN(what_is_ambiguous_is_noted_and_corrected_on_demand_only);
    RUN(a_file_is_corrected_like_fed_bytes);
    RUN(of_very_many_flips_not_all_are_kept);
    return check_report("correct_reader");
}
