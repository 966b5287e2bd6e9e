/* The buffered sequential reader: a window that moves over a file or over bytes that are fed.
 *
 * The window, in offsets from data:
 *
 *     0 ......... begin ............... end ........... capacity
 *     used up     not yet scanned       room for input
 *
 * In front of it lie HEADROOM bytes, behind end PADDING zero bytes, so that wide loads around a
 * record stay in our memory. tfw_reader_next repeats one step until there are spans to deliver or
 * the end is reached: scan the window; if a record is incomplete, get more input; if it is
 * damaged, do as the policy says.
 *
 * Everything is amortised: a byte is moved only when at least as many were used up, memory grows
 * by at most what is there already, and a payload is checksummed once, when it is complete.
 */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L

#include "correct.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADROOM = 64,
    PADDING = 64,
    SPANS = 4096,            /* most records per scan: their spans stay in the cache */
    DOUBTFUL_SPANS = 32,     /* the same, where much may be damaged */
    SMALLEST_BUFFER = 64,
    DEFAULT_BUFFER = 1 << 18,
    READER_FLAGS = TFW_NO_DATA_CRC | TFW_CORRECT | TFW_CORRECT_AMBIGUOUS,
    LARGEST_READ = 1 << 30   /* some systems refuse to read more than INT_MAX bytes */
};

struct tfw_reader {
    size_t buffer_size;
    uint64_t max_record_size;
    int fd; /* -1: fed */
    unsigned flags;
    enum tfw_on_corrupt on_corrupt;

    uint8_t *memory; /* HEADROOM, capacity, PADDING */
    size_t capacity;
    size_t begin;
    size_t end;
    size_t reserved; /* bytes behind end that the caller may be filling */
    uint64_t offset; /* file offset of data[0] */
    uint64_t needed; /* bytes that the incomplete record at begin takes, as far as known */
    bool ended;      /* no more input will come */
    uint64_t input_end; /* what input_end() found; 0: nothing yet */

    tfw_span *spans; /* found by the last scan, relative to data + scanned */
    size_t span_count;
    size_t span_next; /* first one not yet delivered */
    size_t scanned;
    uint64_t record; /* number of the next record to deliver; gathered: to be found */
    uint64_t *numbers; /* skipping: of the spans, if gathered: there is damage between them */
    bool gathered;

    tfw_error damage;  /* of the record at begin; status TFW_OK: none known */
    bool examined;     /* whether that is one flipped bit is known */
    tfw_error outcome; /* once status is not TFW_OK, the answer to every further call */

    bool searching;    /* for the next record behind damage; the last region is still open */
    uint64_t doubtful; /* up to this file offset lies what a record with a wrong length claimed */
    tfwi_resync resync;
    tfw_region *regions;
    size_t region_count;
    size_t region_capacity;
    uint64_t skipped_regions; /* in all, also those that were not kept */
    uint64_t skipped_bytes;
    tfw_flip *flips;
    size_t flip_count;
    size_t flip_capacity;
};

static uint8_t *window(const tfw_reader *reader) { return reader->memory + HEADROOM; }

static uint64_t file_offset(const tfw_reader *reader, size_t at) { return reader->offset + at; }

static int fail_here(const tfw_reader *reader, tfw_error *error, int status, const char *text) {
    tfwi_fail(error, status, text);
    if (error != NULL) {
        error->record = (int64_t)reader->record;
        error->offset = (int64_t)file_offset(reader, reader->begin);
    }
    return status;
}

/* ---- Creation ------------------------------------------------------------------------------- */

static const char *objection(const tfw_reader_options *options) {
    if (options == NULL || options->size != sizeof *options) {
        return "options->size is not sizeof(tfw_reader_options)";
    }
    if (options->fd < -1) {
        return "fd must be a file descriptor or -1";
    }
    if ((options->flags & ~(uint32_t)READER_FLAGS) != 0 || options->reserved != 0) {
        return "unknown flags";
    }
    if (options->on_corrupt > TFW_CORRUPT_STOP) {
        return "unknown on_corrupt";
    }
    if (options->offset > INT64_MAX || options->buffer_size > SIZE_MAX / 4) {
        return "offset or buffer_size is too large";
    }
    return NULL;
}

int tfw_reader_create(const tfw_reader_options *options, tfw_reader **out_reader,
                      tfw_error *error) {
    *out_reader = NULL;
    const char *text = objection(options);
    if (text != NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, text);
    }
    tfw_reader *reader = tfwi_calloc(1, sizeof *reader);
    tfw_span *spans = tfwi_realloc(NULL, SPANS * sizeof *spans);
    const bool skips = options->on_corrupt == TFW_CORRUPT_SKIP;
    uint64_t *numbers = skips ? tfwi_realloc(NULL, SPANS * sizeof *numbers) : NULL;
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
        tfw_free(reader->regions);
        tfw_free(reader->flips);
        tfw_free(reader);
    }
}

/* ---- The window ----------------------------------------------------------------------------- */

static bool spans_pending(const tfw_reader *reader) {
    return reader->span_next < reader->span_count;
}

/* Forgets what is used up, if that is at least as much as what must be moved for it. */
static void compact(tfw_reader *reader) {
    size_t live = reader->end - reader->begin;
    if (reader->begin == 0 || reader->begin < live || spans_pending(reader)) {
        return;
    }
    memmove(window(reader), window(reader) + reader->begin, live);
    reader->offset += reader->begin;
    reader->begin = 0;
    reader->end = live;
    memset(window(reader) + live, 0, PADDING);
    tfwi_resync_moved(&reader->resync);
}

/* Makes room for at least half a buffer of input. */
static int make_room(tfw_reader *reader) {
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
        tfwi_add_overflows(capacity, HEADROOM + PADDING, &total)) {
        return TFW_E_MEMORY;
    }
    uint8_t *memory = tfwi_realloc(reader->memory, total);
    if (memory == NULL) {
        return TFW_E_MEMORY;
    }
    if (reader->memory == NULL) {
        memset(memory, 0, HEADROOM);
    }
    reader->memory = memory;
    reader->capacity = capacity;
    return TFW_OK;
}

/* How much to take in next. A long record is read to its end and the next header, so that
 * nothing of what follows has to be moved. */
static size_t input_size(const tfw_reader *reader) {
    size_t room = reader->capacity - reader->end;
    uint64_t want = reader->buffer_size;
    uint64_t there = reader->end - reader->begin;
    if (reader->needed > there && reader->needed - there + TFW_HEADER_SIZE > want) {
        want = reader->needed - there + TFW_HEADER_SIZE;
    }
    if (want > LARGEST_READ) {
        want = LARGEST_READ;
    }
    return want < room ? (size_t)want : room;
}

static void arrived(tfw_reader *reader, size_t len) {
    reader->end += len;
    reader->ended = len == 0;
    reader->input_end = 0;
    memset(window(reader) + reader->end, 0, PADDING);
}

/* ---- The file source ------------------------------------------------------------------------ */

#ifdef TFW_TEST_FAULTS
/* Test builds may put a source that misbehaves in the place of pread. */
ssize_t (*tfwi_test_pread)(int fd, void *out, size_t len, off_t offset) = pread;
#define pread tfwi_test_pread
#endif

/* The file offset at which the input ends, or UINT64_MAX where that is not known. A file that
 * is shorter than what was read of it has been cut, or lies about its size: neither helps. Asked
 * once per input that arrives, as there may be damage every few bytes. */
static uint64_t input_end(tfw_reader *reader) {
    uint64_t read_so_far = file_offset(reader, reader->end);
    if (reader->ended) {
        return read_so_far;
    }
    if (reader->input_end == 0) {
        struct stat info;
        bool known = reader->fd >= 0 && fstat(reader->fd, &info) == 0 && S_ISREG(info.st_mode) &&
                     (uint64_t)info.st_size >= read_so_far;
        reader->input_end = known ? (uint64_t)info.st_size : UINT64_MAX;
    }
    return reader->input_end;
}

static int read_file(tfw_reader *reader, tfw_error *error) {
    uint64_t offset = file_offset(reader, reader->end);
    ssize_t got;
    if (offset > INT64_MAX - LARGEST_READ) {
        got = 0; /* no file is that long */
    } else {
        do {
            got = pread(reader->fd, window(reader) + reader->end, input_size(reader),
                        (off_t)offset);
        } while (got < 0 && errno == EINTR);
    }
    if (got < 0) {
        int code = errno;
        fail_here(reader, error, TFW_E_IO, "reading failed");
        if (error != NULL) {
            error->os_errno = code;
            error->offset = (int64_t)offset;
        }
        return TFW_E_IO;
    }
    arrived(reader, (size_t)got);
    return TFW_OK;
}

int tfw_reader_seek(tfw_reader *reader, uint64_t offset, uint64_t record, tfw_error *error) {
    if (reader->fd < 0 || offset > INT64_MAX) {
        return tfwi_fail(error, TFW_E_ARGUMENT,
                         reader->fd < 0 ? "this reader is fed" : "no file offset");
    }
    reader->offset = offset;
    reader->record = record;
    reader->begin = reader->end = reader->scanned = 0;
    reader->span_count = reader->span_next = 0;
    reader->gathered = false;
    reader->needed = 0;
    reader->ended = reader->examined = reader->searching = false;
    reader->doubtful = reader->input_end = 0;
    reader->damage.status = reader->outcome.status = TFW_OK;
    tfwi_resync_moved(&reader->resync);
    if (reader->memory != NULL) {
        memset(window(reader), 0, PADDING);
    }
    return TFW_OK;
}

/* ---- The fed source ------------------------------------------------------------------------- */

/* Input goes on behind an end that was reached and left nothing: as if the reader began there. */
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
    if (make_room(reader) != TFW_OK) {
        return fail_here(reader, error, TFW_E_MEMORY, "no memory for more input");
    }
    reader->reserved = input_size(reader);
    *out_data = window(reader) + reader->end;
    *out_len = reader->reserved;
    return TFW_OK;
}

int tfw_reader_commit(tfw_reader *reader, size_t len, tfw_error *error) {
    if (reader->fd >= 0 || reader->ended || len > reader->reserved) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more was committed than had been reserved");
    }
    reader->reserved = 0;
    if (len != 0) {
        arrived(reader, len);
    }
    reader->ended = len == 0;
    return TFW_OK;
}

/* ---- Regions left out ----------------------------------------------------------------------- */

/* Moves the end of the last region. */
static void extend_region(tfw_reader *reader, uint64_t end) {
    tfw_region *last = &reader->regions[reader->region_count - 1];
    reader->skipped_bytes += end - last->end;
    last->end = end;
}

/* Room for one more region. Of very many only the newest is kept beside the first ones, so that
 * damage everywhere takes no more memory than damage here and there. */
static int make_room_for_region(tfw_reader *reader) {
    if (reader->region_count == TFW_MOST_REGIONS) {
        reader->region_count--;
    }
    if (reader->region_count < reader->region_capacity) {
        return TFW_OK;
    }
    size_t capacity = reader->region_capacity + reader->region_capacity / 2 + 8;
    tfw_region *grown = tfwi_realloc(reader->regions, capacity * sizeof *grown);
    if (grown == NULL) {
        return TFW_E_MEMORY;
    }
    reader->regions = grown;
    reader->region_capacity = capacity;
    return TFW_OK;
}

/* Notes [begin, end) for the damage at hand, as part of the last region if it touches that. */
static int note_region(tfw_reader *reader, uint64_t begin, uint64_t end) {
    if (reader->region_count != 0 && reader->regions[reader->region_count - 1].end == begin) {
        extend_region(reader, end);
        return TFW_OK;
    }
    if (make_room_for_region(reader) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    const tfw_error *damage = &reader->damage;
    reader->regions[reader->region_count++] = (tfw_region){
        .begin = begin,
        .end = end,
        .record = reader->record,
        .needed = damage->status == TFW_E_TRUNCATED ? (uint64_t)damage->expected : 0,
        .reason = damage->status,
    };
    reader->skipped_regions++;
    reader->skipped_bytes += end - begin;
    return TFW_OK;
}

size_t tfw_reader_skipped(const tfw_reader *reader, size_t first, tfw_region *out_regions,
                          size_t capacity) {
    for (size_t i = 0; i < capacity && first + i < reader->region_count; i++) {
        out_regions[i] = reader->regions[first + i];
    }
    return reader->region_count;
}

uint64_t tfw_reader_skipped_total(const tfw_reader *reader, uint64_t *out_bytes) {
    *out_bytes = reader->skipped_bytes;
    return reader->skipped_regions;
}

/* ---- Damage --------------------------------------------------------------------------------- */

/* What a file without records looks like, or NULL. */
static const char *other_format(const uint8_t *data, size_t len) {
    if (len >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        return "gzip";
    }
    if (len >= 2 && (data[0] & 0x0f) == 8 && ((data[0] << 8) | data[1]) % 31 == 0) {
        return "zlib";
    }
    for (size_t i = 0; i < len && i < TFW_HEADER_SIZE; i++) {
        bool printable = data[i] >= 0x20 && data[i] < 0x7f;
        if (!printable && data[i] != '\t' && data[i] != '\n' && data[i] != '\r') {
            return NULL;
        }
    }
    return "text";
}

/* Completes the damage noted for the record at begin: where it is, and in words. */
static void describe_damage(tfw_reader *reader) {
    tfw_error *damage = &reader->damage;
    const uint8_t *data = window(reader) + reader->begin;
    const size_t left = reader->end - reader->begin;
    damage->record = (int64_t)reader->record;
    damage->offset = (int64_t)file_offset(reader, reader->begin);
    const bool stray = damage->status == TFW_E_TRUNCATED && left < TFW_HEADER_SIZE;
    const char *format = NULL;
    if (damage->offset == 0 && (stray || damage->status == TFW_E_LENGTH_CRC)) {
        format = other_format(data, left);
    }
    if (format != NULL) {
        snprintf(damage->text, sizeof damage->text, "not a TFRecord file? it begins like %s",
                 format);
    } else if (stray && damage->record > 0) {
        snprintf(damage->text, sizeof damage->text, "%zu stray bytes after record %" PRId64, left,
                 damage->record - 1);
    } else if (stray) {
        snprintf(damage->text, sizeof damage->text,
                 "%zu stray bytes and no record, which takes 16 or more", left);
    } else {
        tfwi_describe(data, damage);
    }
}

static int finish(tfw_reader *reader) {
    tfwi_fail(&reader->outcome, TFW_END, "");
    return TFW_OK;
}

static int finish_with_damage(tfw_reader *reader) {
    describe_damage(reader);
    reader->outcome = reader->damage;
    return TFW_OK;
}

/* Ends the file quietly at the damage: the rest becomes a region. */
static int finish_with_region(tfw_reader *reader) {
    uint64_t begin = file_offset(reader, reader->begin);
    uint64_t end = input_end(reader);
    if (end == UINT64_MAX) {
        end = file_offset(reader, reader->end);
    }
    int status = note_region(reader, begin, end);
    return status == TFW_OK ? finish(reader) : status;
}

/* Whether the damaged payload at begin is followed by a header or the end of the input. If not,
 * its length is not to be trusted: the writer may have died in it and another gone on behind. */
static int length_is_right(const tfw_reader *reader, uint64_t size, bool *out_right) {
    const uint8_t *next = window(reader) + reader->begin + size;
    size_t left = reader->end - reader->begin - (size_t)size;
    if (left < TFW_HEADER_SIZE && !reader->ended) {
        return TFW_NEED_INPUT;
    }
    *out_right = left < TFW_HEADER_SIZE || tfwi_header_verifies(tfwi_crc32c_current(), next);
    return TFW_OK;
}

/* Leaves out the damaged record at begin: exactly it, or all up to the next one that verifies. */
static int skip_damaged(tfw_reader *reader) {
    uint64_t begin = file_offset(reader, reader->begin);
    uint64_t claimed = 0;
    bool exact = false;
    if (reader->damage.status == TFW_E_DATA_CRC) {
        claimed = tfwi_load64(window(reader) + reader->begin) + TFWI_FRAME_SIZE;
        int status = length_is_right(reader, claimed, &exact);
        if (status != TFW_OK) {
            return status;
        }
    }
    int status = note_region(reader, begin, begin + (exact ? claimed : 1));
    if (status == TFW_OK) {
        if (!exact && begin + claimed > reader->doubtful) {
            reader->doubtful = begin + claimed;
        }
        reader->begin += (size_t)(exact ? claimed : 1);
        reader->record++; /* one at least; what a longer region held nobody knows */
        reader->damage.status = TFW_OK;
        reader->needed = 0;
        reader->searching = !exact;
    }
    return status;
}

static int meet_damage(tfw_reader *reader) {
    switch (reader->on_corrupt) {
    case TFW_CORRUPT_SKIP: return skip_damaged(reader);
    case TFW_CORRUPT_STOP: return finish_with_region(reader);
    case TFW_CORRUPT_TAIL:
        if (reader->damage.status == TFW_E_TRUNCATED) {
            return finish_with_region(reader);
        }
        break;
    case TFW_CORRUPT_RAISE: break;
    }
    return finish_with_damage(reader);
}

/* Notes a flipped bit and, unless it is doubtful and that is not wanted, flips it back: the record
 * at begin verifies then, when it is scanned again. */
static int apply_flip(tfw_reader *reader, tfw_flip flip) {
    if (reader->flip_count == reader->flip_capacity) {
        size_t capacity = reader->flip_capacity + reader->flip_capacity / 2 + 8;
        tfw_flip *grown = tfwi_realloc(reader->flips, capacity * sizeof *grown);
        if (grown == NULL) {
            return TFW_E_MEMORY;
        }
        reader->flips = grown;
        reader->flip_capacity = capacity;
    }
    flip.record = reader->record;
    flip.offset = file_offset(reader, reader->begin);
    flip.applied = !flip.ambiguous || (reader->flags & TFW_CORRECT_AMBIGUOUS) != 0;
    reader->flips[reader->flip_count++] = flip;
    if (flip.applied) {
        window(reader)[reader->begin + flip.byte] ^= (uint8_t)(1u << flip.bit);
        tfwi_resync_moved(&reader->resync);
        reader->damage.status = TFW_OK;
        reader->needed = 0;
    }
    return TFW_OK;
}

/* Examines whether the damage at begin is one flipped bit. */
static int correct_damage(tfw_reader *reader) {
    uint64_t limit = input_end(reader);
    tfwi_damaged damaged = {
        .data = window(reader),
        .begin = reader->begin,
        .end = reader->end,
        .available = limit == UINT64_MAX ? limit : limit - file_offset(reader, reader->begin),
        .max_record_size = reader->max_record_size,
        .resync = &reader->resync,
    };
    tfw_flip flip;
    int status = tfwi_correct(&damaged, &flip, &reader->needed);
    if (status == TFW_NEED_INPUT || status == TFW_E_MEMORY) {
        return status;
    }
    if (status == TFW_OK && apply_flip(reader, flip) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    reader->examined = true;
    return TFW_OK;
}

static bool may_be_corrected(const tfw_reader *reader) {
    return (reader->flags & TFW_CORRECT) != 0 && !reader->examined &&
           (reader->damage.status == TFW_E_LENGTH_CRC || reader->damage.status == TFW_E_DATA_CRC);
}

size_t tfw_reader_flips(const tfw_reader *reader, size_t first, tfw_flip *out_flips,
                        size_t capacity) {
    for (size_t i = 0; i < capacity && first + i < reader->flip_count; i++) {
        out_flips[i] = reader->flips[first + i];
    }
    return reader->flip_count;
}

/* Looks for the next record that verifies and extends the open region up to it. */
static int search(tfw_reader *reader) {
    uint64_t limit = input_end(reader);
    uint64_t available = limit == UINT64_MAX ? UINT64_MAX : limit - reader->offset;
    int status = tfwi_resync_find(&reader->resync, window(reader), reader->end, available,
                                  reader->max_record_size, &reader->begin);
    if (status == TFW_NEED_INPUT && reader->ended) {
        reader->begin = reader->end;
    }
    extend_region(reader, file_offset(reader, reader->begin));
    if (status == TFW_OK) {
        reader->searching = false;
    }
    return status;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* As tfwi_scan, within what a record with a wrong length claimed, and so had checksummed already:
 * were there many of those, each would have all that follows checksummed once more. */
static int scan_doubtful(tfw_reader *reader, tfw_span *spans, size_t capacity, size_t *out_count,
                         size_t *out_consumed, tfw_error *found) {
    int status = tfwi_scan(window(reader) + reader->begin, reader->end - reader->begin,
                           reader->max_record_size, TFW_NO_DATA_CRC, spans,
                           capacity < DOUBTFUL_SPANS ? capacity : DOUBTFUL_SPANS, out_count,
                           out_consumed, found);
    for (size_t i = 0; i < *out_count; i++) {
        size_t payload = reader->begin + (size_t)spans[i].offset;
        bool verifies = false;
        int verified = tfwi_resync_verify(&reader->resync, window(reader), payload,
                                          payload + (size_t)spans[i].length, &verifies);
        if (verified != TFW_OK || !verifies) {
            *out_consumed = payload - TFW_HEADER_SIZE - reader->begin;
            *out_count = i;
            return tfwi_fail(found, verified != TFW_OK ? verified : TFW_E_DATA_CRC, "");
        }
    }
    return status;
}

/* Takes over the spans that a scan found at begin, behind those that are there already. */
static void add_spans(tfw_reader *reader, size_t count) {
    tfw_span *spans = reader->spans + reader->span_count;
    for (size_t i = 0; reader->gathered && i < count; i++) {
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
    if (!spans_pending(reader)) {
        reader->span_next = reader->span_count = 0;
        reader->scanned = reader->begin;
        reader->gathered = false;
    }
    tfw_span *spans = reader->spans + reader->span_count;
    const size_t capacity = SPANS - reader->span_count;
    if (file_offset(reader, reader->begin) < reader->doubtful) {
        status = scan_doubtful(reader, spans, capacity, &count, &consumed, &found);
    } else {
        status = tfwi_scan(window(reader) + reader->begin, reader->end - reader->begin,
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

/* Gets more input for what is incomplete at begin, or notes that there is none. */
static int more_input(tfw_reader *reader, tfw_error *error) {
    size_t left = reader->end - reader->begin;
    if (reader->ended) {
        if (left == 0) {
            return finish(reader);
        }
        cut_short(reader, left);
        return TFW_OK;
    }
    if (reader->fd < 0) {
        return TFW_NEED_INPUT;
    }
    /* Before memory grows for a long record, the file must be long enough to hold it. */
    if (reader->needed > left && reader->needed - left > reader->buffer_size) {
        uint64_t end = input_end(reader);
        if (end != UINT64_MAX && end - file_offset(reader, reader->begin) < reader->needed) {
            cut_short(reader, end - file_offset(reader, reader->begin));
            return TFW_OK;
        }
    }
    if (make_room(reader) != TFW_OK) {
        return fail_here(reader, error, TFW_E_MEMORY, "no memory for more input");
    }
    return read_file(reader, error);
}

/* One step within the window. */
static int advance(tfw_reader *reader) {
    if (reader->damage.status != TFW_OK) {
        return may_be_corrected(reader) ? correct_damage(reader) : meet_damage(reader);
    }
    return reader->searching ? search(reader) : scan(reader);
}

static int step(tfw_reader *reader, tfw_error *error) {
    int status = advance(reader);
    if (status == TFW_E_MEMORY) {
        return fail_here(reader, error, status, "no memory to note damage");
    }
    return status == TFW_NEED_INPUT ? more_input(reader, error) : status;
}

/* Adds what comes behind damage that is left out, as far as the window tells: where every second
 * record is damaged, batches of one would cost far more than the records. */
static int gather(tfw_reader *reader) {
    if (reader->numbers == NULL || reader->damage.status == TFW_OK || reader->gathered) {
        return TFW_OK;
    }
    for (size_t i = reader->span_next; i < reader->span_count; i++) {
        reader->numbers[i] = reader->record++;
    }
    reader->gathered = true;
    int status = TFW_OK;
    while (reader->span_count < SPANS && status == TFW_OK) {
        status = advance(reader);
    }
    return status == TFW_E_MEMORY ? status : TFW_OK;
}

/* The records touch each other unless they were gathered: then their frames are all that lies
 * between. */
static uint64_t payload_bytes_of(const tfw_reader *reader, const tfw_span *spans, size_t count) {
    const tfw_span *last = &spans[count - 1];
    uint64_t sum = 0;
    if (!reader->gathered) {
        return last->offset + last->length - spans->offset - (count - 1) * TFWI_FRAME_SIZE;
    }
    for (size_t i = 0; i < count; i++) {
        sum += spans[i].length;
    }
    return sum;
}

static void deliver(tfw_reader *reader, size_t max_records, tfw_batch *out_batch) {
    const uint64_t *numbers = reader->gathered ? reader->numbers + reader->span_next : NULL;
    const tfw_span *spans = reader->spans + reader->span_next;
    size_t count = reader->span_count - reader->span_next;
    if (max_records != 0 && count > max_records) {
        count = max_records;
    }
    *out_batch = (tfw_batch){
        .data = window(reader) + reader->scanned,
        .data_len = reader->end - reader->scanned + PADDING,
        .spans = spans,
        .count = count,
        .payload_bytes = payload_bytes_of(reader, spans, count),
        .offset = file_offset(reader, reader->scanned),
        .first_record = numbers != NULL ? numbers[0] : reader->record,
        .numbers = numbers,
    };
    reader->span_next += count;
    reader->record += numbers != NULL ? 0 : count;
}

int tfw_reader_next(tfw_reader *reader, size_t max_records, tfw_batch *out_batch,
                    tfw_error *error) {
    memset(out_batch, 0, sizeof *out_batch);
    while (!spans_pending(reader)) {
        if (reader->outcome.status != TFW_OK) {
            if (error != NULL) {
                *error = reader->outcome;
            }
            return reader->outcome.status;
        }
        int status = step(reader, error);
        if (status != TFW_OK) {
            return status;
        }
    }
    if (gather(reader) != TFW_OK) { /* the records are delivered by the next call */
        return fail_here(reader, error, TFW_E_MEMORY, "no memory to note damage");
    }
    deliver(reader, max_records, out_batch);
    return TFW_OK;
}
