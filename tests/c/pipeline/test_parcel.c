/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels find the records of a file in the pieces that they get, and give up their memory. */
#include "pipeline.h"

/* The records of a file in a parcel that gets all of it. */
static tfw_batch whole_batch(tfw_parcel *parcel, const file *f, int expected) {
    tfw_batch batch;
    CHECK_EQ(TFW_OK, tfw_parcel_begin(parcel, NULL, NULL));
    CHECK_EQ(expected, tfw_parcel_add(parcel, f->data, f->len, &batch, NULL));
    return batch;
}

static void damage_ends_a_parcel_at_its_record(void) {
    file f = file_of_examples(1, 9, false);
    tfw_parcel *parcel;
    tfw_batch batch;
    tfw_error error;
    CHECK_EQ(TFW_OK, tfw_parcel_create(0, 0, &parcel, NULL));
    batch = whole_batch(parcel, &f, TFW_OK);
    CHECK(batch.count == 9 && batch.payload_bytes == f.len - 9 * 16);
    for (size_t at = 0; at < f.len; at++) {
        size_t record = 0;
        while (f.ends[record] <= at) {
            record++;
        }
        const bool in_header = at - file_begin(&f, record) < TFW_HEADER_SIZE;
        f.data[at] ^= 4;
        batch = whole_batch(parcel, &f, in_header ? TFW_E_LENGTH_CRC : TFW_E_DATA_CRC);
        CHECK_EQ(record, batch.count);
        const int status = tfw_parcel_add(parcel, f.data, 1, &batch, &error); /* the same again */
        CHECK_EQ(in_header ? TFW_E_LENGTH_CRC : TFW_E_DATA_CRC, status);
        CHECK(error.record == (int64_t)record && error.offset == (int64_t)file_begin(&f, record));
        f.data[at] ^= 4;
    }
    tfw_parcel_free(parcel);
    tfw_parcel_free(NULL);
    free(f.data);
}

static void limits_are_those_of_scans(void) {
    file f = file_of_examples(1, 9, false);
    tfw_parcel *parcel;
    CHECK_EQ(TFW_OK, tfw_parcel_create(1, 0, &parcel, NULL));
    CHECK_EQ(0, whole_batch(parcel, &f, TFW_E_TOO_LARGE).count);
    tfw_parcel_free(parcel);
    CHECK_EQ(TFW_OK, tfw_parcel_create(0, TFW_NO_DATA_CRC, &parcel, NULL));
    f.data[TFW_HEADER_SIZE] ^= 1;
    CHECK_EQ(9, whole_batch(parcel, &f, TFW_OK).count);
    tfw_parcel_free(parcel);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_parcel_create(0, 2, &parcel, NULL));
    CHECK(parcel == NULL);
    free(f.data);
}

/* Thousands of records at a time, and a long one: more than is kept. */
static void parcels_grow_and_are_used_again(void) {
    const size_t sizes[] = {1000000, 0, 6000000, 100};
    tfw_parcel *parcels[2];
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(TFW_OK, tfw_parcel_create(0, 0, &parcels[i], NULL));
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        file f = {0};
        uint8_t *data = malloc(sizes[i] + 1);
        tfw_batch batch, rest;
        memset(data, 0xaa, sizes[i] + 1);
        for (size_t k = 0; k < (sizes[i] < 1000 ? 2000 : 2); k++) {
            file_append_record(&f, data, sizes[i]);
        }
        batch = whole_batch(parcels[0], &f, TFW_OK);
        CHECK_EQ(f.count, batch.count);
        CHECK(batch.data_len == f.len + 64 && memcmp(batch.data, f.data, f.len) == 0);
        for (size_t k = 0; k < 64; k++) {
            CHECK(batch.data[f.len + k] == 0);
        }
        CHECK_EQ(TFW_NEED_INPUT, tfw_parcel_add(parcels[0], f.data, 3, &batch, NULL));
        CHECK_EQ(TFW_OK, tfw_parcel_begin(parcels[1], parcels[0], NULL));
        CHECK_EQ(TFW_OK, tfw_parcel_add(parcels[1], f.data + 3, f.len - 3, &rest, NULL));
        CHECK(rest.count == f.count && rest.first_record == f.count && rest.offset == f.len);
        const tfw_span last = rest.spans[f.count - 1];
        CHECK(last.offset == f.len - sizes[i] - 4 && last.length == sizes[i]);
        free(data);
        free(f.data);
    }
    tfw_parcel_free(parcels[0]);
    tfw_parcel_free(parcels[1]);
}

/* Whichever request for memory fails, what was found is right. */
static void parcels_without_memory(void) {
    file f = file_of_examples(1, 300, false);
    for (long i = 0; i < 12; i++) {
        tfw_parcel *parcels[2] = {0};
        tfw_batch batch = {0};
        int status = TFW_OK;
        tfwi_test_fail_allocation = i;
        for (size_t k = 0; k < 2 && status == TFW_OK; k++) {
            status = tfw_parcel_create(0, 0, &parcels[k], NULL);
        }
        if (status == TFW_OK) {
            status = tfw_parcel_add(parcels[0], f.data, f.len - 1, &batch, NULL);
            CHECK(status == TFW_E_MEMORY || (status == TFW_NEED_INPUT && batch.count == 299));
        }
        if (status == TFW_NEED_INPUT) {
            status = tfw_parcel_begin(parcels[1], parcels[0], NULL);
        }
        if (status == TFW_OK) {
            status = tfw_parcel_add(parcels[1], f.data + f.len - 1, 1, &batch, NULL);
            CHECK(status == TFW_E_MEMORY || batch.count == 1);
        }
        CHECK(status == TFW_OK || status == TFW_E_MEMORY);
        CHECK(i != 0 || status == TFW_E_MEMORY);
        tfw_parcel_free(parcels[0]);
        tfw_parcel_free(parcels[1]);
        tfwi_test_fail_allocation = -1;
    }
    free(f.data);
}

/* A push that fails takes nothing. */
static void pushes_of_parcels_without_memory(void) {
    const wanted w = {.batch_size = 7, .flags = TFW_PIPELINE_KEEP_REST};
    file f = file_of_examples(1, 30, false);
    fileset none = {0};
    table t = table_new(false);
    uint64_t failed = 0;
    for (uint32_t threads = 1; threads < 3; threads++) {
        for (long i = 0; i < 30; i++) {
            tfw_pipeline *p = pipeline_of(&none, &w, &t, threads, 500);
            tfw_parcel *parcel;
            tfw_batch batch;
            CHECK_EQ(TFW_OK, tfw_parcel_create(0, 0, &parcel, NULL));
            CHECK_EQ(TFW_OK, tfw_parcel_add(parcel, f.data, f.len, &batch, NULL));
            tfwi_test_fail_allocation = i;
            const int status = tfw_pipeline_push_parcel(p, parcel, 0, NULL);
            tfwi_test_fail_allocation = -1;
            CHECK(status == TFW_OK || status == TFW_E_MEMORY);
            CHECK_EQ(TFW_OK, tfw_parcel_add(parcel, NULL, 0, &batch, NULL));
            CHECK_EQ(status == TFW_OK ? 0 : 30, batch.count);
            failed += status != TFW_OK;
            tfw_parcel_free(parcel);
            tfw_pipeline_free(p);
        }
    }
    CHECK(failed != 0);
    table_free(&t);
    free(f.data);
}

int main(void) {
    RUN(damage_ends_a_parcel_at_its_record);
    RUN(limits_are_those_of_scans);
    RUN(parcels_grow_and_are_used_again);
    RUN(parcels_without_memory);
    RUN(pushes_of_parcels_without_memory);
    return check_report("parcels");
}
