/* SPDX-License-Identifier: Apache-2.0 */
/* The window of the sequential reader and the source of its input: a file that is read here, or
 * bytes that the caller feeds. */
#include "records/window.h"

#include "base/system.h"
#include "records/read_at.h"

#include <errno.h>

/* ---- The window ----------------------------------------------------------------------------- */

/* Drops used bytes, if there are at least as many as must be moved for that. */
static void compact(tfw_reader *reader) {
    size_t live = reader->end - reader->begin;
    if (reader->begin == 0 || reader->begin < live || tfwi_spans_pending(reader)) {
        return;
    }
    memmove(tfwi_window(reader), tfwi_window(reader) + reader->begin, live);
    reader->offset += reader->begin;
    reader->begin = 0;
    reader->end = live;
    memset(tfwi_window(reader) + live, 0, TFWI_PADDING);
    tfwi_resync_moved(&reader->resync);
}

/* Makes room for at least half a buffer of input. */
int tfwi_reader_make_room(tfw_reader *reader) {
    if (reader->memory != NULL) {
        compact(reader);
        if (reader->capacity - reader->end >= reader->buffer_size / 2) {
            return TFW_OK;
        }
    }
    size_t live = reader->end - reader->begin;
    size_t more = live > reader->buffer_size ? live : reader->buffer_size;
    size_t capacity = 0;
    size_t total = 0;
    if (tfwi_add_overflows(reader->end, more, &capacity) ||
        tfwi_add_overflows(capacity, TFWI_HEADROOM + TFWI_PADDING, &total)) {
        return TFW_E_MEMORY;
    }
    uint8_t *memory = tfwi_realloc(reader->memory, total);
    if (memory == NULL) {
        return TFW_E_MEMORY;
    }
    if (reader->memory == NULL) {
        memset(memory, 0, TFWI_HEADROOM);
    }
    reader->memory = memory;
    reader->capacity = capacity;
    return TFW_OK;
}

/* How much to read next. A long record is read to its end and the next header, so that
 * nothing of what follows has to be moved. */
static size_t input_size(const tfw_reader *reader) {
    size_t room = reader->capacity - reader->end;
    uint64_t want = reader->buffer_size;
    uint64_t there = reader->end - reader->begin;
    if (reader->needed > there && reader->needed - there + TFW_HEADER_SIZE > want) {
        want = reader->needed - there + TFW_HEADER_SIZE;
    }
    if (want > TFWI_LARGEST_READ) {
        want = TFWI_LARGEST_READ;
    }
    return want < room ? (size_t)want : room;
}

static void arrived(tfw_reader *reader, size_t len) {
    reader->end += len;
    reader->ended = len == 0;
    reader->input_end = 0;
    memset(tfwi_window(reader) + reader->end, 0, TFWI_PADDING);
}

/* ---- The file source ------------------------------------------------------------------------ */

/* A file that is shorter than what was read of it has been cut, or reports a wrong size: then the
 * end is not known. Asked once per input that arrives, as there may be damage every few bytes. */
uint64_t tfwi_reader_input_end(tfw_reader *reader) {
    uint64_t read_so_far = tfwi_file_offset(reader, reader->end);
    if (reader->ended) {
        return read_so_far;
    }
    if (reader->input_end == 0) {
        uint64_t size;
        bool known = tfwi_system_size(reader->fd, &size) && size >= read_so_far;
        reader->input_end = known ? size : UINT64_MAX;
    }
    return reader->input_end;
}

int tfwi_reader_read_file(tfw_reader *reader, tfw_error *error) {
    uint64_t offset = tfwi_file_offset(reader, reader->end);
    ptrdiff_t got = 0;
    if (offset <= INT64_MAX - TFWI_LARGEST_READ) { /* no file is longer */
        got = tfwi_system_read(reader->fd, tfwi_window(reader) + reader->end, input_size(reader),
                               offset);
    }
    if (got < 0) {
        int code = errno;
        tfwi_fail_here(reader, error, TFW_E_IO, "reading failed");
        TFWI_SET(error, os_errno, code);
        TFWI_SET(error, offset, (int64_t)offset);
        return TFW_E_IO;
    }
    arrived(reader, (size_t)got);
    return TFW_OK;
}

/* Drops the regions that reading from an offset on meets again. */
static void forget_regions(tfw_reader *reader, uint64_t offset) {
    for (; reader->regions.count != 0; reader->regions.count--) {
        const tfw_region *last = &reader->regions.of[reader->regions.count - 1];
        if (last->begin < offset) {
            return;
        }
        reader->skipped_regions--;
        reader->skipped_bytes -= last->end - last->begin;
    }
}

int tfw_reader_seek(tfw_reader *reader, uint64_t offset, uint64_t record, tfw_error *error) {
    if (offset > INT64_MAX) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no file offset");
    }
    forget_regions(reader, offset);
    reader->offset = offset;
    reader->record = record;
    reader->begin = reader->end = reader->scanned = 0;
    reader->reserved = 0;
    reader->span_count = reader->span_next = 0;
    reader->has_gaps = false;
    reader->needed = 0;
    reader->ended = reader->examined = reader->searching = false;
    reader->doubtful = reader->input_end = 0;
    reader->damage.status = reader->outcome.status = TFW_OK;
    tfwi_resync_moved(&reader->resync);
    if (reader->memory != NULL) {
        memset(tfwi_window(reader), 0, TFWI_PADDING);
    }
    return TFW_OK;
}

/* ---- The fed source ------------------------------------------------------------------------- */

/* More input after an end with nothing left over: as if the reader began there. */
static void reopen(tfw_reader *reader) {
    if (reader->outcome.status == TFW_END && reader->begin == reader->end) {
        reader->outcome.status = TFW_OK;
        reader->ended = reader->searching = false;
    }
}

int tfw_reader_reserve(tfw_reader *reader, uint8_t **out_data, size_t *out_len,
                       tfw_error *error) {
    *out_data = NULL;
    *out_len = 0;
    reopen(reader);
    if (reader->fd >= 0 || reader->ended) {
        return tfwi_fail(error, TFW_E_ARGUMENT,
                         reader->fd >= 0 ? "this reader reads a file" : "the input has ended");
    }
    if (tfwi_reader_make_room(reader) != TFW_OK) {
        return tfwi_fail_here(reader, error, TFW_E_MEMORY, "no memory for more input");
    }
    reader->reserved = input_size(reader);
    *out_data = tfwi_window(reader) + reader->end;
    *out_len = reader->reserved;
    return TFW_OK;
}

int tfw_reader_commit(tfw_reader *reader, size_t len, tfw_error *error) {
    if (reader->fd >= 0 || reader->ended || len > reader->reserved) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more bytes were committed than reserved");
    }
    reader->reserved = 0;
    if (len != 0) {
        arrived(reader, len);
    }
    reader->ended = len == 0;
    return TFW_OK;
}
