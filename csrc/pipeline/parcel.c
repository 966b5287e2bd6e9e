/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: what somebody else inflates or receives of a file is copied into one, which finds and
 * verifies the records there. A pipeline takes its memory as it is. Any thread may fill a parcel,
 * whatever the pipeline is at. */
#include "pipeline/pipeline.h"

#include "records/frame.h"

enum { FOUND = 1 << 10 }; /* records at a time, at least */

int tfw_parcel_create(uint64_t max_record_size, uint32_t flags, tfw_parcel **out_parcel,
                      tfw_error *error) {
    *out_parcel = NULL;
    const int status = tfwi_check_flags(flags, TFW_NO_DATA_CRC, error);
    if (status != TFW_OK) {
        return status;
    }
    *out_parcel = tfwi_calloc(1, sizeof **out_parcel);
    if (*out_parcel == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    (*out_parcel)->max_record_size = max_record_size;
    (*out_parcel)->flags = flags;
    return TFW_OK;
}

void tfw_parcel_free(tfw_parcel *parcel) {
    if (parcel != NULL) {
        tfw_free(parcel->data.of);
        tfw_free(parcel->spans.of);
        tfw_free(parcel);
    }
}

void tfwi_parcel_clear(tfw_parcel *parcel) {
    parcel->data.count = parcel->spans.count = parcel->end = 0;
    if (parcel->data.capacity > TFWI_MOST_PUSHED_KEPT) {
        tfw_free(parcel->data.of);
        parcel->data = (tfwi_bytes){0};
    }
}

int tfw_parcel_begin(tfw_parcel *parcel, const tfw_parcel *before, tfw_error *error) {
    tfwi_parcel_clear(parcel);
    parcel->record = parcel->offset = 0;
    if (before == NULL) {
        return TFW_OK;
    }
    const size_t rest = before->data.count - before->end;
    if (!TFWI_RESERVE(parcel->data, rest + TFWI_PUSHED_SLACK)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (rest != 0) {
        memcpy(parcel->data.of, before->data.of + before->end, rest);
    }
    parcel->data.count = rest;
    parcel->record = before->record + before->spans.count;
    parcel->offset = before->offset + before->end;
    return TFW_OK;
}

/* Copies bytes to the end; false: out of memory. */
static bool add_bytes(tfw_parcel *parcel, const uint8_t *data, size_t len) {
    if (len > SIZE_MAX / 4 || !TFWI_RESERVE_MORE(parcel->data, len + TFWI_PUSHED_SLACK)) {
        return false;
    }
    if (len != 0) {
        memcpy(parcel->data.of + parcel->data.count, data, len);
    }
    parcel->data.count += len;
    memset(parcel->data.of + parcel->data.count, 0, TFWI_PUSHED_SLACK);
    return true;
}

/* Finds some of the records after those that were found, as tfw_scan does. */
static int find_more(tfw_parcel *parcel, tfw_error *error) {
    size_t count, consumed;
    if (!TFWI_RESERVE_MORE(parcel->spans, FOUND)) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    tfw_span *spans = parcel->spans.of + parcel->spans.count;
    const int status = tfw_scan(parcel->data.of + parcel->end, parcel->data.count - parcel->end,
                                parcel->max_record_size, parcel->flags, spans,
                                parcel->spans.capacity - parcel->spans.count, &count, &consumed,
                                error);
    for (size_t i = 0; i < count; i++) {
        spans[i].offset += parcel->end;
    }
    parcel->spans.count += count;
    parcel->end += consumed;
    return status;
}

int tfw_parcel_add(tfw_parcel *parcel, const uint8_t *data, size_t len, tfw_batch *out_batch,
                   tfw_error *error) {
    int status = add_bytes(parcel, data, len) ? TFW_OK
                                              : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    while (status == TFW_OK && parcel->end != parcel->data.count) {
        status = find_more(parcel, error);
    }
    if (status != TFW_OK && status != TFW_E_MEMORY) {
        TFWI_SET(error, record, tfwi_saturated(parcel->record + parcel->spans.count));
        TFWI_SET(error, offset, tfwi_saturated(parcel->offset + parcel->end));
    }
    *out_batch = tfwi_parcel_batch(parcel);
    return status;
}

tfw_batch tfwi_parcel_batch(const tfw_parcel *parcel) {
    const size_t count = parcel->spans.count;
    return (tfw_batch){
        .size = sizeof(tfw_batch),
        .data = parcel->data.of,
        .data_len = count != 0 ? parcel->data.count + TFWI_PUSHED_SLACK : 0,
        .spans = parcel->spans.of,
        .count = count,
        .payload_bytes = parcel->end - count * TFWI_FRAME_SIZE,
        .offset = parcel->offset,
        .first_record = parcel->record,
    };
}
