/* SPDX-License-Identifier: Apache-2.0 */
/* The buffered sequential reader: a window that moves over a file, or over bytes that it is fed.
 *
 * The window, in offsets from data:
 *
 *     0 ......... begin ............... end ........... capacity
 *     used up     not yet scanned       room for input
 *
 * Before it lie TFWI_HEADROOM bytes, after end TFWI_PADDING zero bytes, so that wide loads around a
 * record stay in our memory. tfw_reader_next repeats one step until there are spans to
 * deliver or the end is reached: scan the window; if a record is incomplete, get more input; if it
 * is damaged, follow the policy.
 *
 * Everything is amortised: a byte is moved only when at least as many were used up, memory grows
 * by at most what is there already, and a payload is checksummed once, when it is complete.
 */
#include "records/damage.h"
#include "records/scan.h"
#include "records/window.h"

enum {
    SCANNED_SPANS = 4096, /* most records per scan: their spans stay in the cache */
    DOUBTFUL_SPANS = 32,  /* the same, where much may be damaged */
    SMALLEST_BUFFER = 64,
    DEFAULT_BUFFER = 1 << 18,
    READER_FLAGS = (int)TFW_NO_DATA_CRC | TFW_CORRECT | TFW_CORRECT_AMBIGUOUS
};

/* ---- Creation ------------------------------------------------------------------------------- */

static int check_options(const tfw_reader_options *options, tfw_error *error) {
    if (options == NULL || options->size != sizeof *options) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "options->size is not sizeof(tfw_reader_options)");
    }
    if (options->fd < -1) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "fd must be a file descriptor or -1");
    }
    if (options->on_corrupt > TFW_CORRUPT_STOP || options->reserved != 0) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "unknown on_corrupt, or reserved is not 0");
    }
    if (options->offset > INT64_MAX || options->buffer_size > SIZE_MAX / 4) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "offset or buffer_size is too large");
    }
    return tfwi_check_flags(options->flags, READER_FLAGS, error);
}

int tfw_reader_create(const tfw_reader_options *options, tfw_reader **out_reader,
                      tfw_error *error) {
    *out_reader = NULL;
    int status = check_options(options, error);
    if (status != TFW_OK) {
        return status;
    }
    tfw_reader *reader = tfwi_calloc(1, sizeof *reader);
    tfw_span *spans = tfwi_realloc(NULL, SCANNED_SPANS * sizeof *spans);
    const bool skips = options->on_corrupt == TFW_CORRUPT_SKIP;
    uint64_t *numbers = skips ? tfwi_realloc(NULL, SCANNED_SPANS * sizeof *numbers) : NULL;
    if (reader == NULL || spans == NULL || (skips && numbers == NULL)) {
        tfw_free(reader);
        tfw_free(spans);
        tfw_free(numbers);
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a reader");
    }
    size_t buffer_size = options->buffer_size != 0 ? (size_t)options->buffer_size : DEFAULT_BUFFER;
    reader->buffer_size = buffer_size < SMALLEST_BUFFER ? SMALLEST_BUFFER : buffer_size;
    reader->max_record_size = options->max_record_size;
    reader->fd = options->fd;
    reader->flags = options->flags;
    reader->on_corrupt = (enum tfw_on_corrupt)options->on_corrupt;
    reader->offset = options->offset;
    reader->spans = spans;
    reader->numbers = numbers;
    *out_reader = reader;
    return TFW_OK;
}

void tfw_reader_free(tfw_reader *reader) {
    if (reader != NULL) {
        tfwi_resync_free(&reader->resync);
        tfw_free(reader->memory);
        tfw_free(reader->spans);
        tfw_free(reader->numbers);
        tfw_free(reader->regions.of);
        tfw_free(reader->flips.of);
        tfw_free(reader);
    }
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* As tfwi_scan, within the bytes that a record with a wrong length claimed. These were checksummed
 * already: with many such records, everything after them would be checksummed again for each. */
static int scan_doubtful(tfw_reader *reader, tfw_span *spans, size_t capacity, size_t *out_count,
                         size_t *out_consumed, tfw_error *found) {
    int status = tfwi_scan(tfwi_window(reader) + reader->begin, reader->end - reader->begin,
                           reader->max_record_size, TFW_NO_DATA_CRC, spans,
                           capacity < DOUBTFUL_SPANS ? capacity : DOUBTFUL_SPANS, out_count,
                           out_consumed, found);
    for (size_t i = 0; i < *out_count; i++) {
        size_t payload = reader->begin + (size_t)spans[i].offset;
        bool verifies = false;
        int verified = tfwi_resync_verify(&reader->resync, tfwi_window(reader), payload,
                                          payload + (size_t)spans[i].length, &verifies);
        if (verified != TFW_OK || !verifies) {
            *out_consumed = payload - TFW_HEADER_SIZE - reader->begin;
            *out_count = i;
            return tfwi_fail(found, verified != TFW_OK ? verified : TFW_E_DATA_CRC, "");
        }
    }
    return status;
}

/* Takes over the spans that a scan found at begin, after those already there. */
static void add_spans(tfw_reader *reader, size_t count) {
    tfw_span *spans = reader->spans + reader->span_count;
    for (size_t i = 0; reader->has_gaps && i < count; i++) {
        spans[i].offset += reader->begin - reader->scanned;
        reader->numbers[reader->span_count + i] = reader->record++;
    }
    reader->span_count += count;
}

static int scan(tfw_reader *reader) {
    size_t consumed = 0, count = 0;
    tfw_error found;
    int status;
    if (reader->memory == NULL) {
        return TFW_NEED_INPUT;
    }
    if (!tfwi_spans_pending(reader)) {
        reader->span_next = reader->span_count = 0;
        reader->scanned = reader->begin;
        reader->has_gaps = false;
    }
    tfw_span *spans = reader->spans + reader->span_count;
    const size_t capacity = SCANNED_SPANS - reader->span_count;
    if (tfwi_file_offset(reader, reader->begin) < reader->doubtful) {
        status = scan_doubtful(reader, spans, capacity, &count, &consumed, &found);
    } else {
        status = tfwi_scan(tfwi_window(reader) + reader->begin, reader->end - reader->begin,
                           reader->max_record_size, reader->flags, spans, capacity, &count,
                           &consumed, &found);
    }
    if (status == TFW_E_MEMORY) {
        return status;
    }
    add_spans(reader, count);
    reader->begin += consumed;
    reader->needed = status == TFW_NEED_INPUT ? (uint64_t)found.expected : 0;
    if (status < 0) {
        reader->damage = found;
        reader->examined = false;
        return TFW_OK;
    }
    return count != 0 ? TFW_OK : TFW_NEED_INPUT;
}

/* The input ends, or is known to end, within the record at begin. */
static void cut_short(tfw_reader *reader, uint64_t left) {
    tfwi_fail(&reader->damage, TFW_E_TRUNCATED, "");
    reader->damage.expected = (int64_t)reader->needed;
    reader->damage.found = (int64_t)left;
}

/* Gets more input for the incomplete record at begin, or notes that there is no more. */
static int more_input(tfw_reader *reader, tfw_error *error) {
    size_t left = reader->end - reader->begin;
    if (reader->ended) {
        if (left == 0) {
            return tfwi_reader_finish(reader);
        }
        cut_short(reader, left);
        return TFW_OK;
    }
    if (reader->fd < 0) {
        return TFW_NEED_INPUT;
    }
    /* Before memory grows for a long record, the file must be long enough to hold it. */
    if (reader->needed > left && reader->needed - left > reader->buffer_size) {
        uint64_t end = tfwi_reader_input_end(reader);
        if (end != UINT64_MAX && end - tfwi_file_offset(reader, reader->begin) < reader->needed) {
            cut_short(reader, end - tfwi_file_offset(reader, reader->begin));
            return TFW_OK;
        }
    }
    if (tfwi_reader_make_room(reader) != TFW_OK) {
        return tfwi_fail_here(reader, error, TFW_E_MEMORY, "no memory for more input");
    }
    return tfwi_reader_read_file(reader, error);
}

/* One step within the window. */
static int advance(tfw_reader *reader) {
    if (reader->damage.status != TFW_OK) {
        return tfwi_reader_may_be_corrected(reader) ? tfwi_reader_correct_damage(reader)
                                                    : tfwi_reader_meet_damage(reader);
    }
    return reader->searching ? tfwi_reader_search(reader) : scan(reader);
}

static int step(tfw_reader *reader, tfw_error *error) {
    int status = advance(reader);
    if (status == TFW_E_MEMORY) {
        return tfwi_fail_here(reader, error, status, "no memory to note damage");
    }
    return status == TFW_NEED_INPUT ? more_input(reader, error) : status;
}

/* Adds the records of the window that follow damage which is left out: if every second record is
 * damaged, batches of one would cost far more than the records. */
static int go_on_past_damage(tfw_reader *reader) {
    if (reader->numbers == NULL || reader->damage.status == TFW_OK || reader->has_gaps) {
        return TFW_OK;
    }
    for (size_t i = reader->span_next; i < reader->span_count; i++) {
        reader->numbers[i] = reader->record++;
    }
    reader->has_gaps = true;
    int status = TFW_OK;
    while (reader->span_count < SCANNED_SPANS && status == TFW_OK) {
        status = advance(reader);
    }
    return status == TFW_E_MEMORY ? status : TFW_OK;
}

/* Without gaps, only frames lie between the records. */
static uint64_t payload_bytes_of(const tfw_reader *reader, const tfw_span *spans, size_t count) {
    const tfw_span *last = &spans[count - 1];
    uint64_t sum = 0;
    if (!reader->has_gaps) {
        return last->offset + last->length - spans->offset - (count - 1) * TFWI_FRAME_SIZE;
    }
    for (size_t i = 0; i < count; i++) {
        sum += spans[i].length;
    }
    return sum;
}

static void deliver(tfw_reader *reader, size_t max_records, tfw_batch *out_batch) {
    const uint64_t *numbers = reader->has_gaps ? reader->numbers + reader->span_next : NULL;
    const tfw_span *spans = reader->spans + reader->span_next;
    size_t count = reader->span_count - reader->span_next;
    if (max_records != 0 && count > max_records) {
        count = max_records;
    }
    *out_batch = (tfw_batch){
        .size = sizeof *out_batch,
        .data = tfwi_window(reader) + reader->scanned,
        .data_len = reader->end - reader->scanned + TFWI_PADDING,
        .spans = spans,
        .count = count,
        .payload_bytes = payload_bytes_of(reader, spans, count),
        .offset = tfwi_file_offset(reader, reader->scanned),
        .first_record = numbers != NULL ? numbers[0] : reader->record,
        .numbers = numbers,
    };
    reader->span_next += count;
    reader->record += numbers != NULL ? 0 : count;
}

int tfw_reader_next(tfw_reader *reader, size_t max_records, tfw_batch *out_batch,
                    tfw_error *error) {
    if (out_batch->size != sizeof *out_batch) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "batch->size is not sizeof(tfw_batch)");
    }
    *out_batch = (tfw_batch){.size = sizeof *out_batch};
    while (!tfwi_spans_pending(reader)) {
        if (reader->outcome.status != TFW_OK) {
            if (error != NULL && reader->outcome.status != TFW_END) {
                *error = reader->outcome;
            }
            return reader->outcome.status;
        }
        int status = step(reader, error);
        if (status != TFW_OK) {
            return status;
        }
    }
    if (go_on_past_damage(reader) != TFW_OK) { /* the records are delivered by the next call */
        return tfwi_fail_here(reader, error, TFW_E_MEMORY, "no memory to note damage");
    }
    deliver(reader, max_records, out_batch);
    return TFW_OK;
}
