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
#include "files/read_columns.h"

#include "parse/cells.h"
#include "records/describe.h"
#include "records/read_at.h"
#include "records/scan.h"

enum {
    PARSED_SPANS = 1024,      /* most records that are verified and then parsed */
    PIECE = 1 << 18,          /* the same in bytes: they stay in the cache; also read at a time */
    UNMOVED_RECORD = 1 << 15, /* from this size on a read costs less than moving half of one */
    SMALLEST_PIECE = 1 << 12, /* read at a time: less costs as much */
    FIRST_PIECE = 1 << 16,    /* read while the size of the records is not known */
    HEADER_SPANS = 256,       /* found at a time by the headers alone */
    STRETCH_FLAGS = TFW_EMPTY_IS_MISSING | TFW_SINGLE | TFW_SEQUENCE
};

static int check_stretch(const tfw_stretch *s, tfw_error *error) {
    if (s == NULL || s->size != sizeof *s) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "stretch->size is not sizeof(tfw_stretch)");
    }
    if (s->begin > s->end || s->end > s->capacity || s->fd < -1 ||
        (s->fd >= 0 && s->capacity < TFW_HEADER_SIZE)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an impossible stretch");
    }
    return tfwi_check_flags(s->flags, TFW_NO_DATA_CRC, error);
}

/* The address of a byte of the buffer; an empty buffer may be NULL. */
static uint8_t *byte_at(const tfw_stretch *s, size_t at) {
    return at == 0 ? s->buffer : s->buffer + at;
}

/* How many of the next len bytes of the file may be read. */
static size_t readable(const tfw_stretch *s, size_t len) {
    const uint64_t stop = s->stop < INT64_MAX ? s->stop : INT64_MAX;
    const uint64_t have = s->end - s->begin;
    if (s->fd < 0 || s->offset > stop || stop - s->offset <= have) {
        return 0;
    }
    return stop - s->offset - have < len ? (size_t)(stop - s->offset - have) : len;
}

/* Appends at most len bytes of the file to the buffer. TFW_END: there are none. */
static int append_bytes(tfw_stretch *s, size_t len, tfw_error *error) {
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

/* Reports what is wrong with record number `record` of a call, of which the buffer holds the
 * beginning from byte at on. */
static int report_damage(const tfw_stretch *s, tfw_error found, size_t at, size_t record,
                         tfw_error *error) {
    return tfwi_report_damage(error, found, s->buffer + at, record, s->offset + (at - s->begin));
}

int tfwi_report_cut(const tfw_stretch *s, uint64_t needed, uint64_t there, size_t record,
                    tfw_error *error) {
    return report_damage(s, cut_off(needed, there), s->begin, record, error);
}

/* ---- Finding the end of a unit -------------------------------------------------------------- */

/* Bytes to read next: what the missing records take, if they are as long as those found, and what
 * the next one needs, as far as known. */
static size_t next_piece(size_t found_bytes, size_t found, size_t missing, uint64_t needed) {
    size_t piece = FIRST_PIECE;
    if (found != 0) {
        const size_t mean = found_bytes / found + 1;
        piece = missing < PIECE / mean ? missing * mean + SMALLEST_PIECE : PIECE;
    }
    return needed > piece ? (size_t)needed : piece;
}

int tfw_read_ahead(tfw_stretch *s, size_t max_records, size_t *out_count, tfw_error *error) {
    tfw_span spans[HEADER_SPANS];
    tfw_error found = {.expected = TFW_HEADER_SIZE};
    size_t count = 0;
    *out_count = 0;
    int status = check_stretch(s, error);
    size_t at = s != NULL ? s->end : 0; /* the end of the last record */
    const size_t first = at;
    while (status == TFW_OK && count < max_records) {
        size_t more = 0, consumed = 0, missing = max_records - count;
        int scanned = tfwi_scan(byte_at(s, at), s->end - at, s->max_record_size, TFW_NO_DATA_CRC,
                                spans, missing < HEADER_SPANS ? missing : HEADER_SPANS, &more,
                                &consumed, &found);
        count += more;
        at += consumed;
        if (scanned < 0) {
            status = report_damage(s, found, at, count, error);
        } else if (scanned == TFW_NEED_INPUT || at == s->end) {
            const size_t room = s->capacity - s->end;
            const uint64_t needed = scanned == TFW_OK ? 0 : (uint64_t)found.expected;
            const size_t wanted = next_piece(at - first, count, max_records - count, needed);
            if (count == max_records) {
                break;
            }
            status = room == 0 ? TFW_NEED_SPACE
                               : append_bytes(s, wanted < room ? wanted : room, error);
        }
    }
    if (status == TFW_END && at != s->end) {
        const tfw_error cut = cut_off((uint64_t)found.expected, s->end - at);
        status = report_damage(s, cut, at, count, error);
    } else if (status == TFW_E_IO) {
        TFWI_SET(error, record, tfwi_saturated(count));
    }
    if (s != NULL && status != TFW_E_ARGUMENT) {
        s->end = at;
    }
    *out_count = count;
    return status;
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

static bool takes_first(const tfwi_reading *r) { return r->first != NULL && r->done == 0; }

/* Makes room to note the records of a piece. */
static bool reserve_notes(const tfwi_reading *r, const tfw_span *spans, size_t count) {
    return (r->offsets == NULL || TFWI_RESERVE_MORE(*r->offsets, count)) &&
           (r->spans == NULL || TFWI_RESERVE_MORE(*r->spans, count)) &&
           (!takes_first(r) || TFWI_RESERVE_MORE(*r->first, spans[0].length));
}

static void note_records(const tfwi_reading *r, const tfw_span *spans, size_t count) {
    const tfw_stretch *s = r->s;
    if (r->lengths != NULL) {
        tfw_span_lengths(spans, count, &r->lengths[0], &r->lengths[1]);
    }
    for (size_t i = 0; i < count && r->offsets != NULL; i++) {
        r->offsets->of[r->offsets->count++] = s->offset + spans[i].offset - TFW_HEADER_SIZE;
    }
    for (size_t i = 0; i < count && r->spans != NULL; i++) {
        r->spans->of[r->spans->count++] = (tfw_span){s->begin + spans[i].offset, spans[i].length};
    }
    if (takes_first(r) && spans[0].length != 0) {
        const size_t len = (size_t)spans[0].length;
        memcpy(r->first->of + r->first->count, s->buffer + s->begin + spans[0].offset, len);
        r->first->count += len;
    }
}

/* Parses the records of a piece, and goes past those that fit. */
static int take_records(tfwi_reading *r, const tfw_span *spans, size_t count, tfw_error *error) {
    tfw_stretch *s = r->s;
    size_t done = count;
    int status = reserve_notes(r, spans, count) ? TFW_OK : TFW_E_MEMORY;
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
    tfw_stretch *s = r->s;
    const size_t have = s->end - s->begin;
    const bool moves = s->fd >= 0 && r->spans == NULL;
    const size_t most = moves ? s->capacity : s->capacity - s->begin;
    size_t wanted = r->piece != 0 ? r->piece : PIECE;
    if (needed > most && s->fd >= 0) {
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
        status = report_damage(s, cut_off(needed, have), s->begin, r->done, error);
    }
    return status;
}

int tfwi_read_records(tfwi_reading *r, size_t max_records, tfw_error *error) {
    tfw_span spans[PARSED_SPANS];
    tfw_stretch *s = r->s;
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
            status = report_damage(s, found, s->begin, r->done, error);
        } else if ((uint64_t)found.expected <= have) {
            reach = (size_t)found.expected;
        } else {
            status = read_on(r, (uint64_t)found.expected, error);
        }
    }
    return status;
}

static int check_part(const tfw_part *part, tfw_error *error) {
    return part->columns == NULL || part->size == sizeof *part
               ? TFW_OK
               : tfwi_fail(error, TFW_E_ARGUMENT, "part->size is not sizeof(tfw_part)");
}

/* Whether a call can begin: what it is given, apart from the file. */
static int check_call(const tfw_columns *context, const tfw_columns *lists,
                      const tfw_stretch *stretch, unsigned flags, tfw_error *error) {
    const bool sequence = (flags & TFW_SEQUENCE) != 0;
    int status = check_stretch(stretch, error);
    if (status == TFW_OK) {
        status = tfwi_check_flags(flags, STRETCH_FLAGS, error);
    }
    if (status == TFW_OK && context == NULL && !sequence) {
        status = tfwi_fail(error, TFW_E_ARGUMENT, "no columns");
    }
    if (status == TFW_OK && ((context != NULL && context->lists) ||
                             (sequence && lists != NULL && !lists->lists))) {
        status = tfwi_fail(error, TFW_E_ARGUMENT, "context and feature lists exchanged");
    }
    return status;
}

int tfw_read_columns(tfw_columns *context, tfw_columns *lists, tfw_stretch *stretch,
                     size_t max_records, unsigned flags, tfw_tally *tally, size_t *out_done,
                     tfw_error *error) {
    tfwi_reading r = {.s = stretch, .context = context, .lists = lists, .flags = flags,
                      .tally = tally};
    *out_done = 0;
    int status = check_call(context, lists, stretch, flags, error);
    if (status == TFW_OK) {
        status = tfwi_read_records(&r, max_records, error);
    }
    *out_done = r.done;
    return status;
}

/* ---- Whole units ---------------------------------------------------------------------------- */

static int begin_part(const tfw_part *part, tfw_error *error) {
    return part->columns == NULL ? TFW_OK
                                 : tfw_columns_begin(part->columns, part->memory, part->sizes,
                                                     part->capacity, error);
}

static int peek_part(const tfw_part *part, tfw_error *error) {
    return part->columns == NULL
               ? TFW_OK
               : tfwi_columns_peek_all(part->columns, part->finished, error);
}

static int finish_part(const tfw_part *part, tfw_error *error) {
    return part->columns == NULL
               ? TFW_OK
               : tfw_columns_finish(part->columns, part->lent, part->finished, error);
}

int tfw_read_unit(const tfw_part *context, const tfw_part *lists, tfw_stretch *stretch,
                  size_t max_records, unsigned flags, tfw_tally *tally, size_t *out_done,
                  tfw_error *error) {
    const unsigned steps = flags & (TFW_BEGIN | TFW_FINISH);
    /* Before anything changes: beginning forgets all records. */
    int status = check_call(context->columns, lists->columns, stretch, flags & ~steps, error);
    status = status == TFW_OK ? check_part(context, error) : status;
    status = status == TFW_OK ? check_part(lists, error) : status;
    *out_done = 0;
    if (status == TFW_OK && (steps & TFW_BEGIN) != 0) {
        status = begin_part(context, error);
        status = status == TFW_OK ? begin_part(lists, error) : status;
    }
    if (status == TFW_OK) {
        status = tfw_read_columns(context->columns, lists->columns, stretch, max_records,
                                  flags & ~steps, tally, out_done, error);
    }
    if (status == TFW_OK && (steps & TFW_FINISH) != 0) {
        /* Both are finished, or neither is. */
        status = peek_part(context, error);
        status = status == TFW_OK ? peek_part(lists, error) : status;
        status = status == TFW_OK ? finish_part(context, error) : status;
        status = status == TFW_OK ? finish_part(lists, error) : status;
    }
    return status;
}
