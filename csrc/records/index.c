/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the records of a file by their headers. Nothing here keeps state, so any number of
 * threads may read one file. */
#include "records/describe.h"
#include "records/indexed.h"
#include "records/read_at.h"
#include "records/scan.h"
#include "records/walk.h"

enum {
    WALKED_SPANS = 256,       /* found at a time by the walk */
    GROWTH = 8,               /* of the walk's reads while records are short */
};

/* ---- The walk over headers ------------------------------------------------------------------ */

/* Notes the record of size bytes that begins with the window's last header, at w->offset. */
static int leap(tfwi_walk *w, uint64_t size) {
    w->offsets[w->count++] = (int64_t)w->offset;
    w->offset += size;
    w->last_size = size;
    return TFW_OK;
}

/* Notes where the records begin that were found in data which begins at an offset. Vectors do it,
 * as nothing is an alias of anything else. */
static void note_offsets(int64_t *restrict out, const tfw_span *restrict spans, size_t count,
                         uint64_t offset) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (int64_t)(offset + spans[i].offset - TFW_HEADER_SIZE);
    }
}

/* Finds the records that begin in a window of the file at w->offset, which holds no whole header
 * from the limit on. Inlined, for there is a window for every long record. */
TFWI_INLINE int walk_window(tfwi_walk *w, const uint8_t *data, size_t len, tfw_error *error) {
    tfw_span spans[WALKED_SPANS];
    tfw_error found;
    size_t at = 0;
    int status = TFW_OK;
    while (status == TFW_OK && at < len && w->count < w->capacity) {
        size_t room = w->capacity - w->count;
        size_t scanned = 0;
        size_t consumed = 0;
        status = tfwi_scan(data + at, len - at, w->max_record_size, TFW_NO_DATA_CRC, spans,
                           room < WALKED_SPANS ? room : WALKED_SPANS, &scanned, &consumed, &found);
        note_offsets(w->offsets + w->count, spans, scanned, w->offset);
        w->count += scanned;
        w->offset += consumed;
        at += consumed;
    }
    if (status == TFW_NEED_INPUT) {
        if (w->offset >= w->limit) {
            return TFW_OK;
        }
        const uint64_t left = w->end - w->offset;
        const bool has_header = len - at >= TFW_HEADER_SIZE;
        if (has_header && (uint64_t)found.expected <= left) {
            return leap(w, (uint64_t)found.expected);
        }
        if (!has_header && at != 0 && left >= TFW_HEADER_SIZE) {
            return TFW_OK; /* the next window begins with it */
        }
        /* A window that begins with less than a header is the rest of the file, which may have been
         * cut since the caller asked for its size. */
        found = tfwi_cut(found.expected, has_header || at != 0 ? left : len);
    }
    return status == TFW_OK
               ? TFW_OK
               : tfwi_report_damage(error, found, data + at, w->first + w->count, w->offset);
}

/* How many of the next bytes to read, at most want. */
static size_t window_len(const tfwi_walk *w, size_t want) {
    const uint64_t left = w->end - w->offset;
    const uint64_t most = w->limit - w->offset + TFW_HEADER_SIZE - 1; /* the last header's */
    const uint64_t len = left < most ? left : most;
    return len < want ? (size_t)len : want;
}

int tfwi_walk_on(tfwi_walk *w, tfw_error *error) {
    size_t want = TFW_HEADER_SIZE;
    int status = TFW_OK;
    while (status == TFW_OK && w->count < w->capacity && w->offset < w->limit) {
        size_t len = window_len(w, want);
        status = tfw_read_at(w->fd, w->buffer, len, w->offset, &len, error);
        if (status == TFW_OK && len == 0) { /* cut since the caller asked for its size */
            status = tfwi_report_damage(error, tfwi_cut(TFW_HEADER_SIZE, 0), w->buffer,
                                        w->first + w->count, w->offset);
        } else if (status == TFW_OK) {
            w->last_size = 0;
            status = walk_window(w, w->buffer, len, error);
        }
        want = want < w->buffer_len / GROWTH ? want * GROWTH : w->buffer_len;
        if (w->last_size >= TFWI_LEAPT_RECORD) {
            want = TFW_HEADER_SIZE;
        }
    }
    return status == TFW_OK && w->offset >= w->limit ? TFW_END : status;
}

int tfw_walk(int32_t fd, uint64_t end, uint64_t *offset, uint8_t *buffer, size_t buffer_len,
             int64_t *out_offsets, size_t capacity, size_t *out_count, tfw_error *error) {
    tfwi_walk w = {.fd = fd, .end = end, .limit = end, .offset = *offset, .buffer = buffer,
                   .buffer_len = buffer_len, .offsets = out_offsets, .capacity = capacity};
    *out_count = 0;
    if (end > INT64_MAX || *offset > end || buffer_len < TFW_HEADER_SIZE) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "offset past the end, or no room for a header");
    }
    const int status = tfwi_walk_on(&w, error);
    *offset = w.offset;
    *out_count = w.count;
    return status;
}
