/* SPDX-License-Identifier: Apache-2.0 */
/* The reader on damaged and hostile files: every policy, every bit, every cut. */
#include "records.h"

#include <sys/stat.h>

enum { RECORDS = 5 };

extern uint64_t tfwi_test_hashed;

static feeding in_pieces(size_t piece) { return (feeding){.piece = piece, .seed = 1}; }

/* What a reader should make of f when exactly record bad is damaged, for the given reason. */
static outcome one_record_lost(const file *f, uint32_t policy, size_t bad, int reason) {
    outcome o = {.status = TFW_END, .offset = -1, .record = -1};
    for (size_t i = 0; i < f->count; i++) {
        if (i < bad || (i > bad && policy == TFW_CORRUPT_SKIP)) {
            outcome_add(&o, file_begin(f, i) + 12, f->ends[i] - file_begin(f, i) - 16, i);
        }
    }
    if (policy == TFW_CORRUPT_RAISE || policy == TFW_CORRUPT_TAIL) {
        o.status = reason;
        o.offset = (int64_t)file_begin(f, bad);
        o.record = (int64_t)bad;
    } else {
        o.region_count = 1;
        o.regions[0] = (tfw_region){
            .begin = file_begin(f, bad),
            .end = policy == TFW_CORRUPT_SKIP ? f->ends[bad] : f->len,
            .record = bad,
            .reason = reason,
        };
    }
    return o;
}

static void every_flipped_bit_costs_its_record_and_no_other(void) {
    file f = file_random(11, RECORDS, 40);
    for (size_t bit = 0; bit < f.len * 8; bit++) {
        size_t bad = 0;
        while (f.ends[bad] <= bit / 8) {
            bad++;
        }
        int reason = bit / 8 - file_begin(&f, bad) < 12 ? TFW_E_LENGTH_CRC : TFW_E_DATA_CRC;
        f.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int fd = bit % 16 == 0 ? file_open(&f) : -1;
        for (uint32_t policy = 0; policy < 4; policy++) {
            outcome expected = one_record_lost(&f, policy, bad, reason);
            for (size_t piece = 1; piece < 200; piece *= 5) {
                tfw_reader_options options = options_for(policy);
                feeding how = in_pieces(piece);
                outcome found = read_all(&f, &options, &how);
                CHECK_OUTCOME(&expected, &found);
            }
            if (fd >= 0) {
                tfw_reader_options options = options_for(policy);
                feeding how = {0};
                options.fd = fd;
                outcome found = read_all(&f, &options, &how);
                CHECK_OUTCOME(&expected, &found);
            }
        }
        if (fd >= 0) {
            close(fd);
        }
        f.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(f.data);
}

static void every_truncation_keeps_the_records_before_it(void) {
    file whole = file_random(12, RECORDS, 40);
    for (size_t cut = 0; cut <= whole.len; cut++) {
        file f = whole;
        size_t last = 0;
        f.len = cut;
        while (last < RECORDS && whole.ends[last] <= cut) {
            last++;
        }
        size_t begin = file_begin(&whole, last);
        int fd = file_open(&f);
        for (uint32_t policy = 0; policy < 4; policy++) {
            outcome expected = {.status = TFW_END, .offset = -1, .record = -1};
            for (size_t i = 0; i < last; i++) {
                size_t at = file_begin(&whole, i);
                outcome_add(&expected, at + 12, whole.ends[i] - at - 16, i);
            }
            if (cut != begin && policy == TFW_CORRUPT_RAISE) {
                expected.status = TFW_E_TRUNCATED;
                expected.offset = (int64_t)begin;
                expected.record = (int64_t)last;
            } else if (cut != begin) {
                expected.region_count = 1;
                expected.regions[0] = (tfw_region){
                    .begin = begin, .end = cut, .record = last, .reason = TFW_E_TRUNCATED};
            }
            size_t needed = cut - begin < 12 ? 12 : whole.ends[last] - begin;
            for (int with_file = 0; with_file < 2; with_file++) {
                tfw_reader_options options = options_for(policy);
                feeding how = in_pieces(3);
                options.fd = with_file ? fd : -1;
                outcome found = read_all(&f, &options, &how);
                CHECK_OUTCOME(&expected, &found);
                if (found.region_count != 0) {
                    CHECK_EQ(needed, found.regions[0].needed);
                }
            }
        }
        close(fd);
    }
    free(whole.data);
}

static bool ends_at(const file *f, size_t at) {
    for (size_t i = 0; i < f->count; i++) {
        if (f->ends[i] == at) {
            return true;
        }
    }
    return false;
}

/* A writer dies in a record and another appends: all that was appended is found, wherever the
 * first one died, although the torn record's length reaches into the new ones. Only where it
 * reaches just up to the end of one, nobody can tell the torn record from a damaged one. */
static void records_appended_after_a_torn_one_are_found(void) {
    file torn = file_random(13, 3, 60), appended = file_random(14, 4, 30);
    for (size_t cut = torn.ends[1] + 1; cut < torn.len; cut++) {
        if (ends_at(&appended, torn.len - cut)) {
            continue;
        }
        file f = {0};
        outcome expected = {.status = TFW_END, .offset = -1, .record = -1, .region_count = 1};
        file_append(&f, torn.data, cut);
        file_append(&f, appended.data, appended.len);
        for (size_t i = 0; i < 6; i++) {
            const file *from = i < 2 ? &torn : &appended;
            size_t k = i < 2 ? i : i - 2, begin = file_begin(from, k);
            outcome_add(&expected, begin + 12 + (i < 2 ? 0 : cut), from->ends[k] - begin - 16,
                        i < 2 ? i : i + 1);
        }
        tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
        feeding how = in_pieces(11);
        outcome found = read_all(&f, &options, &how);
        expected.regions[0] = (tfw_region){.begin = torn.ends[1], .end = cut, .record = 2,
                                           .reason = found.regions[0].reason};
        CHECK_OUTCOME(&expected, &found);
        free(f.data);
    }
    free(torn.data);
    free(appended.data);
}

/* Neighbours that are damaged make one region; the numbers after count each of them. */
static void neighbouring_regions_are_one(void) {
    file f = file_random(15, 6, 50);
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    feeding how = in_pieces(9);
    f.data[f.ends[1] - 1] ^= 1;
    f.data[f.ends[2] - 1] ^= 1;
    f.data[f.ends[3] - 1] ^= 1;
    outcome found = read_all(&f, &options, &how);
    CHECK_EQ(1, found.region_count);
    CHECK_EQ(f.ends[0], found.regions[0].begin);
    CHECK_EQ(f.ends[3], found.regions[0].end);
    CHECK_EQ(1, found.regions[0].record);
    CHECK_EQ(3, found.regions[0].records);
    CHECK_EQ(3, found.count);
    CHECK_EQ(4, found.records[1].number);
    f.data[f.ends[3]] ^= 1; /* no header follows record 3: it and what is searched count as one */
    found = read_all(&f, &options, &how);
    CHECK_EQ(1, found.region_count);
    CHECK_EQ(f.ends[4], found.regions[0].end);
    CHECK_EQ(-3, found.regions[0].records);
    CHECK_EQ(4, found.records[1].number);
    free(f.data);
}

static void skipped_regions_are_copied_from_any_first(void) {
    file f = file_random(16, 9, 20);
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_region regions[4];
    for (size_t i = 1; i < 9; i += 2) {
        f.data[f.ends[i] - 1] ^= 1;
    }
    options.fd = file_open(&f);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
    }
    CHECK_EQ(4, tfw_reader_skipped(reader, 0, NULL, 0));
    CHECK_EQ(4, tfw_reader_skipped(reader, 2, regions, 4));
    CHECK_EQ(f.ends[4], regions[0].begin);
    CHECK_EQ(f.ends[6], regions[1].begin);
    CHECK_EQ(4, tfw_reader_skipped(reader, SIZE_MAX, regions, 4));
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

/* The first ones and the last: damage everywhere takes no more memory than here and there. */
static void of_very_many_regions_not_all_are_kept(void) {
    enum { PAIRS = TFW_MOST_REGIONS + 100, SIZE = 32 };
    file f = {0};
    f.data = calloc(PAIRS, SIZE);
    f.len = (size_t)PAIRS * SIZE;
    for (size_t at = 0; at < f.len; at += SIZE) { /* a record with a wrong checksum, a good one */
        tfw_span spans[2] = {{at + 12, 0}, {at + 28, 0}};
        CHECK_EQ(TFW_OK, tfw_frame(f.data, f.len, spans, 2, NULL));
        f.data[at + 12] ^= 1;
    }
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_region region;
    uint64_t count = 0, bytes = 0;
    options.buffer_size = 0;
    options.fd = file_open(&f);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    while (tfw_reader_next(reader, 0, &batch, NULL) == TFW_OK) {
        count += batch.count;
    }
    CHECK_EQ(PAIRS, count);
    CHECK_EQ(PAIRS, tfw_reader_skipped_total(reader, &bytes));
    CHECK_EQ(16 * PAIRS, bytes);
    CHECK_EQ(TFW_MOST_REGIONS, tfw_reader_skipped(reader, TFW_MOST_REGIONS - 2, &region, 1));
    CHECK_EQ((TFW_MOST_REGIONS - 2) * (uint64_t)SIZE, region.begin);
    CHECK_EQ(TFW_MOST_REGIONS, tfw_reader_skipped(reader, TFW_MOST_REGIONS - 1, &region, 1));
    CHECK_EQ((PAIRS - 1) * (uint64_t)SIZE, region.begin);
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

/* Damage of all kinds at random, against the slow model. */
static void random_damage_is_met_as_the_model_says(void) {
    for (uint64_t seed = 1; seed < 1500; seed++) {
        uint64_t state = seed;
        file f = file_random(seed, seed % 12 + 1, seed % 4 == 0 ? 500 : 40);
        for (uint64_t n = check_random(&state) % 4; n > 0; n--) {
            size_t at = (size_t)(check_random(&state) % f.len);
            size_t len = (size_t)(check_random(&state) % 40 + 1);
            len = len < f.len - at ? len : f.len - at;
            switch (check_random(&state) % 5) {
            case 0: f.data[at] ^= (uint8_t)(1 << seed % 8); break;
            case 1: memset(f.data + at, 0, len); break;
            case 2: f.len -= len; memmove(f.data + at, f.data + at + len, f.len - at); break;
            case 3: f.len -= at < f.len / 2 ? 0 : len; break;
            default: file_append_header(&f, check_random(&state) >> len); /* small and large */
            }
            if (f.len == 0) {
                break;
            }
        }
        int fd = file_open(&f);
        for (uint32_t n = 0; n < 8; n++) {
            tfw_reader_options options = options_for(n / 2);
            options.fd = n % 2 ? fd : -1;
            options.flags = seed % 7 == 0 ? TFW_NO_DATA_CRC : 0;
            options.max_record_size = seed % 3 == 0 ? 300 : 0;
            options.buffer_size = seed % 5 == 0 ? 4096 : 64;
            feeding how = {.piece = seed % 4, .seed = seed, .max_records = seed % 3};
            outcome expected = model(&f, &options);
            outcome found = read_all(&f, &options, &how);
            CHECK_OUTCOME(&expected, &found);
        }
        close(fd);
        free(f.data);
    }
}

/* The trap: a payload that is itself a record file cannot be told from records. While the
 * header around it is sound it is stepped over whole; with that gone, its records are delivered. */
static void a_record_file_inside_a_record_is_a_trap_only_without_its_header(void) {
    file inner = file_random(17, 3, 20), f = {0};
    file_append_record(&f, "before", 6);
    file_append_record(&f, inner.data, inner.len);
    file_append_record(&f, "behind", 6);
    tfw_reader_options options = options_for(TFW_CORRUPT_SKIP);
    for (int where = 0; where < 2; where++) {
        size_t at = where == 0 ? f.ends[1] - 1 : f.ends[0];
        feeding how = in_pieces(13);
        f.data[at] ^= 1;
        outcome found = read_all(&f, &options, &how);
        CHECK_EQ(where == 0 ? 2 : 5, found.count);
        CHECK_EQ(where == 0 ? 1 : 2, found.region_count); /* then: header, and footer */
        CHECK_EQ(f.ends[1] + 12, found.records[found.count - 1].offset);
        f.data[at] ^= 1;
    }
    free(inner.data);
    free(f.data);
}

/* ---- Words ---------------------------------------------------------------------------------- */

static void check_text(const void *bytes, size_t len, int status, const char *text) {
    file f = {0};
    tfw_reader_options options = options_for(TFW_CORRUPT_RAISE);
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error;
    file_append(&f, bytes, len);
    options.fd = file_open(&f);
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, NULL));
    do {
        error.status = tfw_reader_next(reader, 0, &batch, &error);
    } while (error.status == TFW_OK);
    CHECK_EQ(status, error.status);
    CHECK(strcmp(text, error.text) == 0);
    if (strcmp(text, error.text) != 0) {
        fprintf(stderr, "  %s\n", error.text);
    }
    tfw_reader_free(reader);
    close(options.fd);
    free(f.data);
}

static void damage_is_put_into_words(void) {
    file f = file_random(20, 2, 0); /* two empty records: 16 bytes each */
    check_text("\x1f\x8b\x08\0\0\0\0\0\0\x03\0\0\0\0\0", 15, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like gzip");
    check_text("\x78\x9c\x01\x02\x03\x04\x05\x06\x07\x08\x09\0\0", 13, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like zlib");
    check_text("id,label\n1,cat\n2,dog\n", 21, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like text");
    check_text("TFWINDEX\x01\0\0\0\0\0\0\0", 16, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like an index that tfwire saved");
    check_text("<!DOCTYPE html><html>", 21, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like HTML");
    check_text("<HTML>\n", 7, TFW_E_TRUNCATED, "not a TFRecord file? it begins like HTML");
    check_text("<htm", 4, TFW_E_TRUNCATED, "not a TFRecord file? it begins like text");
    check_text("PAR1\x15\x04\x15\x10\x15\x10\x4c\x15\x02", 13, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like Parquet");
    check_text("\x93NUMPY\x01\0\x76\0{'descr'", 18, TFW_E_LENGTH_CRC,
               "not a TFRecord file? it begins like an array of NumPy");
    check_text("hello\n", 6, TFW_E_TRUNCATED, "not a TFRecord file? it begins like text");
    check_text("\x01\x02\x03", 3, TFW_E_TRUNCATED,
               "3 stray bytes and no record, which takes 16 or more");
    check_text(f.data, 16 + 7, TFW_E_TRUNCATED, "7 stray bytes after record 0");
    check_text(f.data, 16 + 13, TFW_E_TRUNCATED, "record takes 16 bytes but only 13 are left");
    f.data[16] = 1;
    check_text(f.data, 32, TFW_E_LENGTH_CRC,
               "length checksum is 0x41de7501 but the header says 0x07980329");
    f.data[0] = 1;
    check_text(f.data, 32, TFW_E_LENGTH_CRC,
               "length checksum is 0x41de7501 but the header says 0x07980329");
    f.data[0] = 0;
    f.data[12] = 0;
    check_text(f.data, 32, TFW_E_DATA_CRC,
               "payload checksum is 0xa282ead8 but the footer says 0xa282ea00");
    f.len = 0;
    file_append_header(&f, UINT64_MAX);
    char text[TFW_ERROR_TEXT_SIZE];
    snprintf(text, sizeof text, "record of 18446744073709551615 bytes, above the limit of %llu",
             (unsigned long long)tfwi_length_limit(0));
    check_text(f.data, 12, TFW_E_TOO_LARGE, text);
    free(f.data);
}

int main(void) {
    RUN(every_flipped_bit_costs_its_record_and_no_other);
    RUN(every_truncation_keeps_the_records_before_it);
    RUN(records_appended_after_a_torn_one_are_found);
    RUN(neighbouring_regions_are_one);
    RUN(skipped_regions_are_copied_from_any_first);
    RUN(of_very_many_regions_not_all_are_kept);
    RUN(random_damage_is_met_as_the_model_says);
    RUN(a_record_file_inside_a_record_is_a_trap_only_without_its_header);
    RUN(damage_is_put_into_words);
    return check_report("resync");
}
