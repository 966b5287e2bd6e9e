/* SPDX-License-Identifier: Apache-2.0 */
/* The core as look.html uses it, compiled to WebAssembly by make_look.py: a fed reader that goes on
 * after damage, and a walk over one message. Pointers and sizes have 32 bits; offsets and numbers
 * of records are doubles, which hold integers up to 2^53. */
#include "base/memory.h"
#include "wire/message.h"
#include "wire/varint.h"

#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

/* ---- Records -------------------------------------------------------------------------------- */

static tfw_reader *reader;
static tfw_batch batch;
static size_t room;

/* Begins to read at an offset, where the record of that number begins. */
EXPORT(begin) int look_begin(double offset, double record) {
    const tfw_reader_options options = {.size = sizeof options,
                                        .fd = -1,
                                        .on_corrupt = TFW_CORRUPT_SKIP};
    tfw_reader_free(reader);
    const int status = tfw_reader_create(&options, &reader, NULL);
    return status != TFW_OK || offset == 0
               ? status
               : tfw_reader_seek(reader, (uint64_t)offset, (uint64_t)record, NULL);
}

/* Where input goes, and how many bytes of it; NULL: there is no memory. */
EXPORT(reserve) uint8_t *look_reserve(void) {
    uint8_t *data = NULL;
    return tfw_reader_reserve(reader, &data, &room, NULL) == TFW_OK ? data : NULL;
}
EXPORT(room) size_t look_room(void) { return room; }

EXPORT(commit) int look_commit(size_t len) { return tfw_reader_commit(reader, len, NULL); }

/* The next records: TFW_OK, TFW_NEED_INPUT or TFW_END. */
EXPORT(next) int look_next(void) {
    batch = (tfw_batch){.size = sizeof batch};
    return tfw_reader_next(reader, 0, &batch, NULL);
}

EXPORT(count) size_t look_count(void) { return (size_t)batch.count; }
EXPORT(payload_bytes) double look_payload_bytes(void) { return (double)batch.payload_bytes; }
EXPORT(length) size_t look_length(size_t i) { return (size_t)batch.spans[i].length; }

EXPORT(payload) const uint8_t *look_payload(size_t i) {
    return batch.data + batch.spans[i].offset;
}

EXPORT(number) double look_number(size_t i) {
    return (double)(batch.numbers != NULL ? batch.numbers[i] : batch.first_record + i);
}

EXPORT(offset) double look_offset(size_t i) {
    return (double)(batch.offset + batch.spans[i].offset) - TFW_HEADER_SIZE;
}

/* Stretches that were left out: how many, and begin, end, reason and first record of one. */
EXPORT(regions) size_t look_regions(void) {
    return reader == NULL ? 0 : tfw_reader_skipped(reader, 0, NULL, 0);
}

EXPORT(region) const double *look_region(size_t i) {
    static double found[4];
    tfw_region region = {0};
    (void)tfw_reader_skipped(reader, i, &region, 1);
    found[0] = (double)region.begin;
    found[1] = (double)region.end;
    found[2] = region.reason;
    found[3] = (double)region.record;
    return found;
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* A feature, or a step of a feature list; a list comes before its steps. */
typedef struct feature {
    const uint8_t *key;
    size_t key_len;
    int32_t kind;
    int32_t place;   /* enum place */
    uint32_t count;  /* values; of a list: steps */
    uint32_t values; /* place of the first one among all that are 8 bytes each */
} feature;

enum place { FEATURE = 0, LIST = 1, STEP = 2 };

static TFWI_ARRAY(feature) features;
static tfwi_int64s values; /* int64, the bits of a double, or address and length of a string */

static bool add_value(const void *value) {
    if (!TFWI_RESERVE_MORE(values, 1)) {
        return false;
    }
    memcpy(&values.of[values.count++], value, sizeof(int64_t));
    return true;
}

/* The values so far of this feature are void. */
static void restart(void *self, int32_t kind) {
    (void)kind;
    values.count = ((const feature *)self)->values;
}

static bool add_bytes(void *self, const uint8_t *data, size_t len) {
    const uint32_t pair[2] = {(uint32_t)(uintptr_t)data, (uint32_t)len};
    (void)self;
    return add_value(pair);
}

static bool add_floats(void *self, const uint8_t *block, size_t count) {
    (void)self;
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, block + 4 * i, sizeof value);
        const double wide = value;
        if (!add_value(&wide)) {
            return false;
        }
    }
    return true;
}

static bool add_int64(void *self, int64_t value) {
    (void)self;
    return add_value(&value);
}

static bool add_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    while (p != end) {
        uint64_t value;
        p = tfwi_read_varint(p, end, &value, fault);
        if (p == NULL || !add_int64(self, (int64_t)value)) {
            return p != NULL ? tfwi_out_of_memory(fault) : false;
        }
    }
    return true;
}

static const tfwi_sink SINK = {restart, add_bytes, add_floats, add_int64, add_varints};

static bool add(feature f, tfwi_fault *fault) {
    if (!TFWI_RESERVE_MORE(features, 1)) {
        return tfwi_out_of_memory(fault);
    }
    f.count = f.place == LIST ? 0 : (uint32_t)values.count - f.values;
    features.of[features.count++] = f;
    return true;
}

static bool add_feature(feature f, tfwi_entry entry, tfwi_fault *fault) {
    const uint8_t *p, *end;
    while (tfwi_next_piece(&entry, &p, &end)) {
        if (!tfwi_walk_feature(&SINK, &f, p, end, &f.kind, fault)) {
            return false;
        }
    }
    return add(f, fault);
}

static bool add_list(feature f, tfwi_entry entry, tfwi_fault *fault) {
    const size_t place = features.count;
    const uint8_t *p, *end;
    f.place = LIST;
    if (!add(f, fault)) {
        return false;
    }
    while (tfwi_next_piece(&entry, &p, &end)) {
        tfwi_field field;
        while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, fault)) {
            const uint8_t *step_end = field.data + field.len;
            feature step = {.place = STEP, .values = (uint32_t)values.count};
            if (!tfwi_walk_feature(&SINK, &step, field.data, step_end, &step.kind, fault) ||
                !add(step, fault)) {
                return false;
            }
            features.of[place].count++;
        }
        if (p == NULL) {
            return false;
        }
    }
    return true;
}

/* Reads a map: of features, or of feature lists. */
static bool add_map(const tfwi_field *map, bool lists, tfwi_fault *fault) {
    const uint8_t *p = map->data, *end = p + map->len;
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, fault)) {
        tfwi_entry entry;
        if (!tfwi_read_entry(field.data, field.data + field.len, &entry, fault)) {
            return false;
        }
        const feature f = {entry.key, entry.key_len, .values = (uint32_t)values.count};
        if (!(lists ? add_list : add_feature)(f, entry, fault)) {
            return false;
        }
    }
    return p == end;
}

/* Reads an Example or a SequenceExample: the number of its features, lists and steps, or -1. Of a
 * key that comes twice the last one counts. */
EXPORT(decode) int look_decode(const uint8_t *message, size_t len) {
    const uint8_t *p = message, *end = message + len;
    tfwi_fault fault;
    tfwi_field field;
    features.count = values.count = 0;
    while (p != end) {
        p = tfwi_read_field(p, end, &field, &fault);
        if (p == NULL) {
            return -1;
        }
        const bool lists = field.tag == TFWI_TAG(2, TFWI_WIRE_LEN);
        if ((lists || field.tag == TFWI_TAG(1, TFWI_WIRE_LEN)) &&
            !add_map(&field, lists, &fault)) {
            return -1;
        }
    }
    return features.count != 0 || tfwi_is_empty(message, len, 2, &fault) ? (int)features.count
                                                                         : -1;
}

EXPORT(features) const void *look_features(void) { return features.of; }
EXPORT(values) const void *look_values(void) { return values.of; }
