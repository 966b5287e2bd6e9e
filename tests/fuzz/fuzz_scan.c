/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_scan against a plain model of the format; what it finds, packed and framed again, is the
 * input, and its checksums add up to that of the input. */
#include "common/script.h"
#include "tfwire_pipeline.h"

typedef struct scan {
    tfw_span spans[LOG_MAX];
    size_t count;
    size_t consumed;
    int status;
    tfw_error error;
} scan;

static void run_scan(scan *s, const uint8_t *data, size_t len, uint64_t limit, unsigned flags,
                     size_t capacity) {
    s->status = tfw_scan(data, len, limit, flags, s->spans, capacity, &s->count, &s->consumed,
                         &s->error);
}

/* Walks the file record by record as the format says. */
static void check_against_model(const scan *s, const file *f, uint64_t limit, unsigned flags,
                                size_t capacity) {
    size_t at = 0, count = 0;
    int status = TFW_OK;
    limit = script_model_limit(limit);
    while (at < f->len && count < capacity) {
        status = model_check(f, at, limit, flags);
        if (status != TFW_OK) {
            break;
        }
        uint64_t length = tfwi_load64(f->data + at);
        CHECK(count < s->count);
        CHECK_EQ(at + TFW_HEADER_SIZE, s->spans[count].offset);
        CHECK_EQ(length, s->spans[count].length);
        count++;
        at += (size_t)length + TFWI_FRAME_SIZE;
    }
    CHECK_EQ(count, s->count);
    CHECK_EQ(at, s->consumed);
    CHECK_EQ(status == TFW_E_TRUNCATED ? TFW_NEED_INPUT : status, s->status);
    if (status != TFW_OK) {
        CHECK_EQ(at, s->error.offset);
        CHECK_EQ(count, s->error.record);
    }
    if (status == TFW_E_TRUNCATED) {
        CHECK(s->error.expected >= TFW_HEADER_SIZE);
        CHECK(s->error.expected > (int64_t)(f->len - at));
    }
}

/* The records in a prefix of the file are the first of the file. */
static void check_prefix(const scan *whole, const file *f, size_t cut, uint64_t limit,
                         unsigned flags) {
    static scan part;
    uint8_t *data = fuzz_copy(f->data, cut);
    run_scan(&part, data, cut, limit, flags, LOG_MAX);
    CHECK(part.count <= whole->count);
    CHECK(part.consumed <= cut);
    CHECK(memcmp(part.spans, whole->spans, part.count * sizeof part.spans[0]) == 0);
    CHECK(part.status == TFW_OK || part.status == TFW_NEED_INPUT || part.status == whole->status);
    free(data);
}

/* Parcels find the same in the file, whatever the pieces are that they get. */
static void check_parcels(const scan *whole, const file *f, size_t piece, uint64_t limit,
                          unsigned flags) {
    tfw_parcel *parcels[2];
    tfw_batch batch;
    tfw_error error;
    size_t count = 0, fed = 0;
    int status = TFW_OK;
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(TFW_OK, tfw_parcel_create(limit, flags, &parcels[i], NULL));
    }
    do {
        const size_t len = f->len - fed < piece ? f->len - fed : piece;
        status = tfw_parcel_add(parcels[0], f->data + fed, len, &batch, &error);
        fed += len;
        CHECK_EQ(count, batch.first_record);
        for (size_t i = 0; i < batch.count && (batch.count > 1 || fed == f->len || status < 0); i++) {
            const tfw_span *span = &batch.spans[i], *expected = &whole->spans[count++];
            CHECK_EQ(expected->offset, batch.offset + span->offset);
            CHECK_EQ(expected->length, span->length);
            CHECK(memcmp(f->data + expected->offset, batch.data + span->offset,
                         (size_t)span->length + TFW_FOOTER_SIZE) == 0);
        }
        if (count != batch.first_record) {
            CHECK_EQ(TFW_OK, tfw_parcel_begin(parcels[1], parcels[0], NULL));
            tfw_parcel *other = parcels[0];
            parcels[0] = parcels[1];
            parcels[1] = other;
        }
    } while (status >= 0 && fed < f->len);
    CHECK_EQ(whole->count, count);
    CHECK_EQ(whole->status, status);
    if (status != TFW_OK) {
        CHECK_EQ(whole->error.offset, error.offset);
        CHECK_EQ(whole->error.record, error.record);
        CHECK_EQ(whole->error.expected, error.expected);
    }
    tfw_parcel_free(parcels[0]);
    tfw_parcel_free(parcels[1]);
}

static void check_packing(const scan *s, const file *f, bool verified) {
    size_t len = 0;
    uint8_t *packed = fuzz_alloc(s->consumed);
    int status = tfw_pack(f->data, f->len, s->spans, s->count, packed, s->consumed, &len, NULL);
    CHECK_EQ(TFW_OK, status);
    CHECK_EQ(s->consumed, len);
    CHECK(!verified || memcmp(packed, f->data, len) == 0);
    uint8_t *framed = fuzz_copy(f->data, s->consumed);
    CHECK_EQ(TFW_OK, tfw_frame(framed, s->consumed, s->spans, s->count, NULL));
    CHECK(memcmp(packed, framed, len) == 0);
    if (s->consumed != 0) { /* room for one byte less */
        status = tfw_pack(f->data, f->len, s->spans, s->count, packed, s->consumed - 1, &len, NULL);
        CHECK_EQ(TFW_E_ARGUMENT, status);
        status = tfw_frame(framed, s->consumed - 1, s->spans, s->count, NULL);
        CHECK_EQ(TFW_E_ARGUMENT, status);
    }
    free(packed);
    free(framed);
}

/* The records add up to their part of the file, and one by one to the same hash. */
static void check_tally(const scan *s, const file *f, unsigned flags, size_t cut) {
    tfw_tally all = {0}, parts = {0}, spans = {0};
    uint8_t *data = fuzz_copy(f->data, s->consumed);
    CHECK_EQ(TFW_OK, tfw_tally_block(&all, data, s->consumed, flags, NULL));
    CHECK_EQ(s->count, all.records);
    CHECK_EQ(tfw_crc32c(0, data, s->consumed), all.file_crc);
    CHECK_EQ(TFW_OK, tfw_tally_spans(&spans, data, s->consumed, s->spans, s->count, flags, NULL));
    CHECK(memcmp(&all, &spans, sizeof all) == 0);
    for (size_t i = 0; i < s->count; i++) {
        const tfw_span *span = &s->spans[i];
        uint32_t footer = tfwi_load32(data + span->offset + span->length);
        tfw_tally_record(&parts, tfw_crc32c_unmask(footer), span->length);
    }
    CHECK(all.hash == parts.hash && all.payload_bytes == parts.payload_bytes);
    int status = tfw_tally_block(&parts, data, cut, flags, NULL);
    bool ends = cut == 0;
    for (size_t i = 0; i < s->count; i++) {
        ends = ends || s->spans[i].offset + s->spans[i].length + TFW_FOOTER_SIZE == cut;
    }
    CHECK_EQ(ends ? TFW_OK : TFW_E_ARGUMENT, status);
    CHECK(ends || parts.records == s->count);
    free(data);
}

static void run(input *in) {
    static scan whole, few;
    uint8_t choice = input_byte(in);
    unsigned flags = choice & TFW_NO_DATA_CRC;
    uint64_t limit = script_limits[choice >> 1 & 3];
    size_t capacity = input_byte(in), cut = (size_t)input_number(in, 2);
    file f = {0};
    script_run(&f, in);
    uint8_t *data = fuzz_copy(f.data, f.len);
    run_scan(&whole, data, f.len, limit, flags, LOG_MAX);
    run_scan(&few, data, f.len, limit, flags, capacity);
    check_against_model(&whole, &f, limit, flags, LOG_MAX);
    check_against_model(&few, &f, limit, flags, capacity);
    check_prefix(&whole, &f, cut % (f.len + 1), limit, flags);
    if (whole.count < LOG_MAX) {
        check_parcels(&whole, &f, 1 + cut % (f.len + 1), limit, flags);
    }
    check_packing(&whole, &f, flags == 0);
    check_tally(&whole, &f, flags, cut % (whole.consumed + 1));
    free(data);
    free(f.data);
}

FUZZ_TARGET(run)
