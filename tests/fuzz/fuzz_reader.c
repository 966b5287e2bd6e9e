/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_reader against the slow model of what a reader should find: every policy, fed in pieces or
 * reading a file whose reads are short and interrupted, in small batches, with a failing
 * allocation. The model knows no pieces, so two ways to feed never differ.
 *
 * Of correction there is no model here: what one way to feed gives, another must give, and the
 * bits that were flipped back lead to a file in which a reader without correction finds the same
 * records. Where stretches were left out, it may find others: flipping a bit of a record back also
 * mends the one whose payload holds that record, which the search had passed. */
#include "common/script.h"

/* Stretches do not touch, but for a record that is cut. */
static void check_skipped(const outcome *o, size_t len) {
    for (size_t i = 0; i < o->region_count; i++) {
        const tfw_region *r = &o->regions[i];
        const uint64_t before = i == 0 ? 0 : r[-1].end;
        CHECK(r->begin < r->end && r->end <= len);
        CHECK(i == 0 || before < r->begin ||
              (before == r->begin && r->reason == TFW_E_TRUNCATED));
    }
}

/* Reads f, payloads and all, with an allocation that may fail, which is followed by another try. */
static outcome read_corrected(const file *f, const tfw_reader_options *options, size_t piece,
                              long failing, tfw_flip *out_flips, size_t *out_count) {
    outcome o = {0};
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error = {0};
    size_t fed = (size_t)options->offset;
    feeding feeding = {.piece = piece, .seed = 1};
    CHECK_EQ(TFW_OK, tfw_reader_create(options, &reader, &error));
    tfwi_test_fail_allocation = failing;
    while (o.status >= 0 && o.status != TFW_END) {
        o.status = tfw_reader_next(reader, 0, &batch, &error);
        for (size_t i = 0; o.status == TFW_OK && i < batch.count; i++) {
            const tfw_span *s = &batch.spans[i];
            uint64_t hash = fuzz_hash(record_number(&batch, i), batch.data + s->offset,
                                      (size_t)s->length);
            outcome_add(&o, batch.offset + s->offset, s->length, hash);
        }
        if (o.status == TFW_NEED_INPUT) {
            o.status = feed(reader, f, &fed, &feeding, &error);
        }
        if (o.status == TFW_E_MEMORY) {
            CHECK_EQ(-1, tfwi_test_fail_allocation);
            o.status = TFW_OK;
        }
    }
    tfwi_test_fail_allocation = -1;
    o.offset = o.status != TFW_END ? error.offset : -1;
    o.record = o.status != TFW_END ? error.record : -1;
    o.region_count = tfw_reader_skipped(reader, 0, o.regions, LOG_MAX);
    *out_count = tfw_reader_flips(reader, 0, out_flips, LOG_MAX);
    tfw_reader_free(reader);
    return o;
}

/* Every record without damage is delivered corrected or not, and no two ways to feed differ. */
static void check_correction(file *f, tfw_reader_options options, size_t piece, long failing,
                             bool ambiguous) {
    static outcome once, again, plain;
    static tfw_flip flips[LOG_MAX], same[LOG_MAX];
    size_t count = 0, same_count = 0;
    options.fd = -1;
    options.flags = TFW_CORRECT | (ambiguous ? TFW_CORRECT_AMBIGUOUS : 0);
    once = read_corrected(f, &options, 1 << 20, -1, flips, &count);
    again = read_corrected(f, &options, piece, failing, same, &same_count);
    if (options.on_corrupt != TFW_CORRUPT_STOP) { /* whose region depends on what was fed */
        CHECK_OUTCOME(&once, &again);
    }
    CHECK_EQ(count, same_count);
    CHECK(count != same_count || memcmp(flips, same, count * sizeof *flips) == 0);
    for (size_t i = 0; i < count && count <= LOG_MAX; i++) {
        CHECK(flips[i].offset + flips[i].byte < f->len);
        CHECK(flips[i].applied == (!flips[i].ambiguous || ambiguous));
        if (flips[i].applied && check_failures == 0) {
            f->data[flips[i].offset + flips[i].byte] ^= (uint8_t)(1u << flips[i].bit);
        }
    }
    options.flags = 0;
    if (once.region_count == 0) {
        plain = read_corrected(f, &options, 1 << 20, -1, same, &same_count);
        CHECK_OUTCOME(&plain, &once);
    }
    for (size_t i = 0; i < once.count && i < LOG_MAX; i++) {
        size_t begin = (size_t)once.records[i].offset - TFW_HEADER_SIZE;
        CHECK_EQ(TFW_OK, model_check(f, begin, script_model_limit(options.max_record_size), 0));
    }
}

/* Reads some records, and then all from another place on: as a reader that begins there. */
static void check_seek(const file *f, tfw_reader_options options, size_t batches, size_t offset) {
    static outcome expected, found;
    tfw_reader *reader = NULL;
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error = {0};
    options.on_corrupt = TFW_CORRUPT_RAISE; /* which notes no regions */
    CHECK_EQ(TFW_OK, tfw_reader_create(&options, &reader, &error));
    for (size_t i = 0; i < batches; i++) {
        tfw_reader_next(reader, 1, &batch, &error);
    }
    CHECK_EQ(TFW_OK, tfw_reader_seek(reader, offset, 0, &error));
    memset(&found, 0, sizeof found);
    while ((found.status = tfw_reader_next(reader, 0, &batch, &error)) == TFW_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            outcome_add(&found, batch.offset + batch.spans[i].offset, batch.spans[i].length,
                        record_number(&batch, i));
        }
    }
    found.offset = found.status != TFW_END ? error.offset : -1;
    found.record = found.status != TFW_END ? error.record : -1;
    tfw_reader_free(reader);
    options.offset = offset;
    options.max_record_size = script_model_limit(options.max_record_size);
    expected = model(f, &options);
    CHECK_OUTCOME(&expected, &found);
}

static void run(input *in) {
    static outcome expected, found;
    static const size_t pieces[8] = {0, 1, 2, 3, 7, 64, 4096, 1 << 20};
    static const uint64_t buffers[4] = {5000, 1, 200, 1500};
    uint8_t choice = input_byte(in), how = input_byte(in), batch = input_byte(in);
    uint8_t failing = input_byte(in), offset = input_byte(in);
    tfw_reader_options options = options_for(choice & 3);
    options.flags = choice >> 2 & TFW_NO_DATA_CRC;
    options.max_record_size = script_limits[choice >> 3 & 3];
    options.buffer_size = buffers[choice >> 5 & 3];
    feeding feeding = {.piece = pieces[how & 7], .max_records = batch % 8, .retry = true,
                       .seed = how * UINT64_C(0x9e3779b97f4a7c15) + 1};
    file f = {0};
    script_run(&f, in);
    if (feeding.piece != 0) { /* not thousands of them: what is long is fed faster */
        feeding.piece += f.len / 256;
    }
    options.offset = offset % (f.len + 1);
    if ((how & 8) != 0) {
        options.fd = script_open(&f, (how & 16) != 0 ? feeding.seed : 0);
    }
    tfw_reader_options plain = options;
    plain.max_record_size = script_model_limit(options.max_record_size);
    expected = model(&f, &plain);
    tfwi_test_fail_allocation = (long)failing - 1;
    found = read_all(&f, &options, &feeding);
    tfwi_test_fail_allocation = -1;
    CHECK(feeding.failures <= 1);
    CHECK_OUTCOME(&expected, &found);
    check_skipped(&found, f.len);
    if (options.fd >= 0) {
        check_seek(&f, options, batch >> 3 & 3, (size_t)failing * offset % (f.len + 1));
    }
    if ((choice & 128) != 0) {
        check_correction(&f, options, feeding.piece, (long)failing - 1, (how & 32) != 0);
    }
    free(f.data);
}

FUZZ_TARGET(run)
