/* SPDX-License-Identifier: Apache-2.0 */
/* A summary of the records that a reader finds: one call reads, verifies and adds up many. */
#include "records/frame.h"

static void add_batch(tfw_summary *summary, const tfw_batch *batch) {
    const size_t count = (size_t)batch->count, last = count - 1;
    const tfw_span *span = &batch->spans[last];
    summary->records += count;
    summary->payload_bytes += batch->payload_bytes;
    tfw_span_lengths(batch->spans, count, &summary->shortest, &summary->longest);
    summary->next_record =
        1 + (batch->numbers != NULL ? batch->numbers[last] : batch->first_record + last);
    summary->next_offset = batch->offset + span->offset + span->length + TFW_FOOTER_SIZE;
}

int tfw_reader_summarize(tfw_reader *reader, uint64_t max_bytes, unsigned flags,
                         tfw_summary *summary, tfw_tally *tally, tfw_error *error) {
    int status = tfwi_check_flags(flags, TFW_NO_DATA_CRC, error);
    uint64_t done = 0;
    if (summary->size != sizeof *summary) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "summary->size is not sizeof(tfw_summary)");
    }
    while (status == TFW_OK && done < max_bytes) {
        tfw_batch batch = {.size = sizeof batch};
        status = tfw_reader_next(reader, 0, &batch, error);
        if (status == TFW_OK && tally != NULL) {
            status = tfw_tally_spans(tally, batch.data, (size_t)batch.data_len, batch.spans,
                                     (size_t)batch.count, flags, error);
        }
        if (status == TFW_OK) {
            add_batch(summary, &batch);
            done += batch.payload_bytes + batch.count * TFWI_FRAME_SIZE;
        }
    }
    return status;
}
