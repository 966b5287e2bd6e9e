/* SPDX-License-Identifier: Apache-2.0 */
/* Damage met by the sequential reader: raised, corrected, or left out as a region. */
#include "records/damage.h"

#include "records/correct.h"
#include "records/describe.h"
#include "records/scan.h"
#include "records/window.h"

/* Room for one more item. Beyond a limit, only the first items and the newest are kept, so that
 * memory stays bounded however much is damaged. */
#define ROOM_FOR_ONE(items)                                           \
    ((items).count -= (items).count == TFW_MOST_REGIONS ? 1 : 0, TFWI_RESERVE_MORE(items, 1))

/* ---- Regions left out ----------------------------------------------------------------------- */

/* One more record in a region. */
static void count_lost(tfw_region *region, bool exact) {
    int32_t count = region->records < 0 ? -region->records : region->records;
    count += count < INT32_MAX ? 1 : 0;
    region->records = exact && region->records >= 0 ? count : -count;
}

/* Moves the end of the last region. */
static void extend_region(tfw_reader *reader, uint64_t end) {
    tfw_region *last = &reader->regions.of[reader->regions.count - 1];
    reader->skipped_bytes += end - last->end;
    last->end = end;
}

/* Notes [begin, end) for the current damage, as part of the last region if it touches that. A
 * record that is cut stays apart: it may not be complete yet. exact: this is one record. */
static int note_region(tfw_reader *reader, uint64_t begin, uint64_t end, bool exact) {
    if (reader->regions.count != 0 && reader->regions.of[reader->regions.count - 1].end == begin &&
        reader->damage.status != TFW_E_TRUNCATED) {
        extend_region(reader, end);
        count_lost(&reader->regions.of[reader->regions.count - 1], exact);
        return TFW_OK;
    }
    if (!ROOM_FOR_ONE(reader->regions)) {
        return TFW_E_MEMORY;
    }
    const tfw_error *damage = &reader->damage;
    reader->regions.of[reader->regions.count++] = (tfw_region){
        .begin = begin,
        .end = end,
        .record = reader->record,
        .needed = damage->status == TFW_E_TRUNCATED ? (uint64_t)damage->expected : 0,
        .reason = damage->status,
        .records = exact ? 1 : -1,
    };
    reader->skipped_regions++;
    reader->skipped_bytes += end - begin;
    return TFW_OK;
}

size_t tfw_reader_skipped(const tfw_reader *reader, size_t first, tfw_region *out_regions,
                          size_t capacity) {
    for (size_t i = 0; i < capacity && first + i < reader->regions.count; i++) {
        out_regions[i] = reader->regions.of[first + i];
    }
    return reader->regions.count;
}

uint64_t tfw_reader_skipped_total(const tfw_reader *reader, uint64_t *out_bytes) {
    *out_bytes = reader->skipped_bytes;
    return reader->skipped_regions;
}

/* ---- Damage --------------------------------------------------------------------------------- */

/* Completes the damage noted for the record at begin: where it is, and in words. */
static void describe_damage(tfw_reader *reader) {
    reader->damage.record = (int64_t)reader->record;
    reader->damage.offset = (int64_t)tfwi_file_offset(reader, reader->begin);
    tfwi_describe(tfwi_window(reader) + reader->begin, &reader->damage);
}

int tfwi_reader_finish(tfw_reader *reader) {
    tfwi_fail(&reader->outcome, TFW_END, "");
    return TFW_OK;
}

static int finish_with_damage(tfw_reader *reader) {
    describe_damage(reader);
    reader->outcome = reader->damage;
    return TFW_OK;
}

/* Ends the file at the damage without an error: the rest becomes a region. */
static int finish_with_region(tfw_reader *reader) {
    uint64_t begin = tfwi_file_offset(reader, reader->begin);
    uint64_t end = tfwi_reader_input_end(reader);
    if (end == UINT64_MAX) {
        end = tfwi_file_offset(reader, reader->end);
    }
    int status = note_region(reader, begin, end, false);
    return status == TFW_OK ? tfwi_reader_finish(reader) : status;
}

/* Whether the damaged payload at begin is followed by a header or the end of the input. If not, its
 * length cannot be trusted: a writer may have died in it, and another continued the file. */
static int length_is_right(const tfw_reader *reader, uint64_t size, bool *out_right) {
    const uint8_t *next = tfwi_window(reader) + reader->begin + size;
    size_t left = reader->end - reader->begin - (size_t)size;
    if (left < TFW_HEADER_SIZE && !reader->ended) {
        return TFW_NEED_INPUT;
    }
    *out_right = left < TFW_HEADER_SIZE || tfwi_header_verifies(tfwi_crc32c_current(), next);
    return TFW_OK;
}

/* Leaves out the damaged record at begin: it alone, or all bytes up to the next that verifies. */
static int skip_damaged(tfw_reader *reader) {
    uint64_t begin = tfwi_file_offset(reader, reader->begin);
    uint64_t claimed = 0;
    bool exact = false;
    if (reader->damage.status == TFW_E_DATA_CRC) {
        claimed = tfwi_load64(tfwi_window(reader) + reader->begin) + TFWI_FRAME_SIZE;
        int status = length_is_right(reader, claimed, &exact);
        if (status != TFW_OK) {
            return status;
        }
    }
    int status = note_region(reader, begin, begin + (exact ? claimed : 1), exact);
    if (status == TFW_OK) {
        if (!exact && begin + claimed > reader->doubtful) {
            reader->doubtful = begin + claimed;
        }
        reader->begin += (size_t)(exact ? claimed : 1);
        reader->record++; /* at least one; what a longer region held is unknown */
        reader->damage.status = TFW_OK;
        reader->needed = 0;
        reader->searching = !exact;
    }
    return status;
}

int tfwi_reader_meet_damage(tfw_reader *reader) {
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

/* Notes a flipped bit and flips it back, unless it is ambiguous and ambiguous ones are refused. The
 * record at begin then verifies when it is scanned again. */
static int apply_flip(tfw_reader *reader, tfw_flip flip) {
    if (!ROOM_FOR_ONE(reader->flips)) {
        return TFW_E_MEMORY;
    }
    flip.record = reader->record;
    flip.offset = tfwi_file_offset(reader, reader->begin);
    flip.applied = !flip.ambiguous || (reader->flags & TFW_CORRECT_AMBIGUOUS) != 0;
    reader->flips.of[reader->flips.count++] = flip;
    reader->flips_found++;
    if (flip.applied) {
        reader->flips_applied++;
        tfwi_window(reader)[reader->begin + flip.byte] ^= (uint8_t)(1u << flip.bit);
        tfwi_resync_moved(&reader->resync);
        reader->damage.status = TFW_OK;
        reader->needed = 0;
    }
    return TFW_OK;
}

/* Checks whether the damage at begin is one flipped bit. */
int tfwi_reader_correct_damage(tfw_reader *reader) {
    uint64_t limit = tfwi_reader_input_end(reader);
    tfwi_damaged damaged = {
        .data = tfwi_window(reader),
        .begin = reader->begin,
        .end = reader->end,
        .available = limit == UINT64_MAX ? limit : limit - tfwi_file_offset(reader, reader->begin),
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

/* Payloads within what a record with a wrong length claimed are not corrected: of many records that
 * claim all that follows, some would seem to be one bit away from verifying, and would swallow the
 * true records in them. */
bool tfwi_reader_may_be_corrected(const tfw_reader *reader) {
    if ((reader->flags & TFW_CORRECT) == 0 || reader->examined) {
        return false;
    }
    if (reader->damage.status == TFW_E_DATA_CRC) {
        return tfwi_file_offset(reader, reader->begin) >= reader->doubtful;
    }
    return reader->damage.status == TFW_E_LENGTH_CRC;
}

size_t tfw_reader_flips(const tfw_reader *reader, size_t first, tfw_flip *out_flips,
                        size_t capacity) {
    for (size_t i = 0; i < capacity && first + i < reader->flips.count; i++) {
        out_flips[i] = reader->flips.of[first + i];
    }
    return reader->flips.count;
}

uint64_t tfw_reader_flips_total(const tfw_reader *reader, uint64_t *out_applied) {
    *out_applied = reader->flips_applied;
    return reader->flips_found;
}

/* Looks for the next record that verifies and extends the open region up to it. */
int tfwi_reader_search(tfw_reader *reader) {
    uint64_t limit = tfwi_reader_input_end(reader);
    uint64_t available = limit == UINT64_MAX ? UINT64_MAX : limit - reader->offset;
    int status = tfwi_resync_find(&reader->resync, tfwi_window(reader), reader->end, available,
                                  reader->max_record_size, &reader->begin);
    if (status == TFW_NEED_INPUT && reader->ended) {
        reader->begin = reader->end;
    }
    extend_region(reader, tfwi_file_offset(reader, reader->begin));
    if (status == TFW_OK) {
        reader->searching = false;
    }
    return status;
}
