/* SPDX-License-Identifier: Apache-2.0 */
/* From a file to columns in one call: records are read, verified and parsed a piece at a time,
 * while the piece is in the cache. Here Records and Examples meet in C, as they do in Python.
 *
 * The buffer, in offsets from its beginning:
 *
 *     0 ......... begin ............... end ........... capacity
 *     used up     the file from offset on    room for more of it
 *
 * Nothing unusual is handled here. Damage, a record that does not fit the columns, or one that is
 * longer than the buffer ends the call at that record. All records before it are in the columns.
 */
#include "pipeline/read_columns.h"

#include "parse/cells.h"
#include "records/describe.h"
#include "records/read_at.h"
#include "records/scan.h"

enum {
    PARSED_SPANS = 1024,      /* most records that are verified and then parsed */
    PIECE = 1 << 18,          /* the same in bytes: they stay in the cache; also read at a time */
    UNMOVED_RECORD = 1 << 15, /* from this size on a read costs less than moving half of one */
    SLACK = 256 /* bytes after the records, so that the last one can be looked at as others are */
};

/* How many of the next len bytes of the file may be read. */
static size_t readable(const tfwi_stretch *s, size_t len) {
    const uint64_t stop = s->stop < INT64_MAX ? s->stop : INT64_MAX;
    const uint64_t have = s->end - s->begin;
    if (s->offset > stop || stop - s->offset <= have) {
        return 0;
    }
    return stop - s->offset - have < len ? (size_t)(stop - s->offset - have) : len;
}

/* Appends at most len bytes of the file to the buffer. TFW_END: there are none. */
static int append_bytes(tfwi_stretch *s, size_t len, tfw_error *error) {
    size_t got = 0;
    len = readable(s, len);
    int status = len == 0 ? TFW_OK
                          : tfw_read_at(s->fd, s->buffer + s->end, len,
                                         s->offset + (s->end - s->begin), &got, error);
    s->end += got;
    return status == TFW_OK && got == 0 ? TFW_END : status;
}

/* What is wrong with a record that takes needed bytes, of which the file has some. */
static tfw_error cut_off(uint64_t needed, uint64_t have) {
    tfw_error found;
    tfwi_fail(&found, TFW_E_TRUNCATED, "");
    found.expected = tfwi_saturated(needed);
    found.found = tfwi_saturated(have);
    return found;
}

/* Reports what is wrong with record number `record` of a call, which is at begin. */
static int report_damage(const tfwi_stretch *s, tfw_error found, size_t record, tfw_error *error) {
    return tfwi_report_damage(error, found, s->buffer + s->begin, record, s->offset);
}

int tfwi_report_cut(const tfwi_stretch *s, uint64_t needed, uint64_t there, size_t record,
                    tfw_error *error) {
    return report_damage(s, cut_off(needed, there), record, error);
}

/* ---- Records to columns --------------------------------------------------------------------- */

static int parse_records(const tfwi_reading *r, const tfw_span *spans, size_t count,
                         size_t *out_done, tfw_error *error) {
    const uint8_t *data = r->s->buffer + r->s->begin;
    const size_t len = r->s->end - r->s->begin;
    if ((r->flags & TFW_SEQUENCE) == 0) {
        return tfw_parse(r->context, data, len, spans, count, r->flags, out_done, error);
    }
    return tfw_parse_sequence(r->context, r->lists, data, len, spans, count,
                              r->flags & ~(unsigned)TFW_SEQUENCE, out_done, error);
}

/* Copies the records of a piece that are chosen. */
static bool copy_selected(const tfwi_reading *r, const tfw_span *spans, size_t count) {
    const tfwi_stretch *s = r->s;
    const uint8_t *data = s->buffer + s->begin;
    const tfw_span *last = &spans[count - 1];
    const size_t size = (size_t)(last->offset + last->length), more = s->end - s->begin - size;
    tfwi_selection *to = r->selection;
    uint32_t chosen[PARSED_SPANS];
    const size_t found = to->select(data, size + (more < SLACK ? more : SLACK), spans, count,
                                    to->wanted, chosen);
    uint64_t bytes = 0;
    for (size_t i = 0; i < found; i++) {
        bytes += spans[chosen[i]].length;
    }
    if (!TFWI_RESERVE_MORE(to->spans, found) || !TFWI_RESERVE_MORE(to->places, found) ||
        !TFWI_RESERVE_MORE(to->data, bytes)) {
        return false;
    }
    for (size_t i = 0; i < found; i++) {
        const tfw_span *span = &spans[chosen[i]];
        to->spans.of[to->spans.count++] = (tfw_span){to->data.count, span->length};
        to->places.of[to->places.count++] = (tfw_place){
            .record = r->done + chosen[i], .offset = s->offset + span->offset - TFW_HEADER_SIZE};
        if (span->length != 0) {
            memcpy(to->data.of + to->data.count, data + span->offset, (size_t)span->length);
            to->data.count += (size_t)span->length;
        }
    }
    return true;
}

static bool takes_first(const tfwi_reading *r) { return r->first != NULL && r->done == 0; }

/* Makes room to note the records of a piece. */
static bool reserve_notes(const tfwi_reading *r, const tfw_span *spans, size_t count) {
    return (r->offsets == NULL || TFWI_RESERVE_MORE(*r->offsets, count)) &&
           (r->spans == NULL || TFWI_RESERVE_MORE(*r->spans, count)) &&
           (!takes_first(r) || TFWI_RESERVE_MORE(*r->first, spans[0].length));
}

static void note_records(const tfwi_reading *r, const tfw_span *spans, size_t count) {
    const tfwi_stretch *s = r->s;
    if (r->lengths != NULL) {
        tfw_span_lengths(spans, count, &r->lengths[0], &r->lengths[1]);
    }
    for (size_t i = 0; i < count && r->offsets != NULL; i++) {
        r->offsets->of[r->offsets->count++] = s->offset + spans[i].offset - TFW_HEADER_SIZE;
    }
    if (r->spans != NULL) {
        tfw_span *out = r->spans->of + r->spans->count;
        for (size_t i = 0; i < count; i++) {
            out[i] = (tfw_span){s->begin + spans[i].offset, spans[i].length};
        }
        r->spans->count += count;
    }
    if (takes_first(r) && spans[0].length != 0) {
        const size_t len = (size_t)spans[0].length;
        memcpy(r->first->of + r->first->count, s->buffer + s->begin + spans[0].offset, len);
        r->first->count += len;
    }
}

/* Parses the records of a piece, and goes past those that fit. */
static int take_records(tfwi_reading *r, const tfw_span *spans, size_t count, tfw_error *error) {
    tfwi_stretch *s = r->s;
    size_t done = count;
    const bool kept = reserve_notes(r, spans, count) &&
                      (r->selection == NULL || copy_selected(r, spans, count));
    int status = kept ? TFW_OK : TFW_E_MEMORY;
    if (status != TFW_OK) {
        tfwi_fail(error, status, "out of memory");
        done = 0;
    } else if (r->context != NULL || (r->flags & TFW_SEQUENCE) != 0) {
        status = parse_records(r, spans, count, &done, error);
    }
    if (done != 0) {
        const tfw_span *last = &spans[done - 1];
        const size_t size = (size_t)(last->offset + last->length) + TFW_FOOTER_SIZE;
        if (r->tally != NULL) {
            (void)tfw_tally_block(r->tally, s->buffer + s->begin, size, s->flags, NULL);
        }
        note_records(r, spans, done);
        s->begin += size;
        s->offset += size;
        r->done += done;
    }
    if (status != TFW_OK) {
        TFWI_SET(error, record, tfwi_saturated(r->done));
    }
    return status;
}

/* Gets more of the incomplete record at begin, which takes needed bytes as far as known. The bytes
 * present move to the front, so that the same memory is reused while it is in the cache. A long
 * record is read up to its end and the next header, so that little has to be moved. */
static int read_on(tfwi_reading *r, uint64_t needed, tfw_error *error) {
    tfwi_stretch *s = r->s;
    const size_t have = s->end - s->begin;
    const bool moves = r->spans == NULL;
    const size_t most = moves ? s->capacity : s->capacity - s->begin;
    size_t wanted = r->piece != 0 ? r->piece : PIECE;
    if (needed > most) {
        tfwi_fail(error, TFW_NEED_SPACE, "");
        TFWI_SET(error, expected, tfwi_saturated(needed));
        return TFW_NEED_SPACE;
    }
    if (needed > UNMOVED_RECORD) {
        wanted = (size_t)needed - have + TFW_HEADER_SIZE;
    }
    if (moves && (have < UNMOVED_RECORD || s->capacity - s->end < wanted)) {
        memmove(s->buffer, s->buffer + s->begin, have);
        s->begin = 0;
        s->end = have;
    }
    const size_t room = s->capacity - s->end;
    int status = append_bytes(s, wanted < room ? wanted : room, error);
    if (status < 0) {
        TFWI_SET(error, record, tfwi_saturated(r->done));
    }
    if (status == TFW_END && have != 0) {
        status = report_damage(s, cut_off(needed, have), r->done, error);
    }
    return status;
}

int tfwi_read_records(tfwi_reading *r, size_t max_records, tfw_error *error) {
    tfw_span spans[PARSED_SPANS];
    tfwi_stretch *s = r->s;
    size_t reach = PIECE; /* more for a record that is longer */
    int status = TFW_OK;
    while (status == TFW_OK && r->done < max_records) {
        if (r->stop != NULL && atomic_load_explicit(r->stop, memory_order_relaxed)) {
            return TFW_NEED_INPUT;
        }
        const size_t have = s->end - s->begin, missing = max_records - r->done;
        size_t count = 0, consumed = 0;
        tfw_error found = {.expected = TFW_HEADER_SIZE};
        int scanned = TFW_NEED_INPUT;
        if (have != 0) {
            scanned = tfwi_scan(s->buffer + s->begin, have < reach ? have : reach,
                                s->max_record_size, s->flags, spans,
                                missing < PARSED_SPANS ? missing : PARSED_SPANS, &count,
                                &consumed, &found);
        }
        reach = PIECE;
        if (count != 0) {
            status = take_records(r, spans, count, error);
        } else if (scanned < 0) {
            status = report_damage(s, found, r->done, error);
        } else if ((uint64_t)found.expected <= have) {
            reach = (size_t)found.expected;
        } else {
            status = read_on(r, (uint64_t)found.expected, error);
        }
    }
    return status;
}
