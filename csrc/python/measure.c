/* SPDX-License-Identifier: Apache-2.0 */
/* The size of what decoding makes of a message. */
#include "python/measure.h"

/* ---- Counting ------------------------------------------------------------------------------- */

static void count_restart(void *self, int32_t kind) {
    tfwi_counter *c = self;
    c->values = c->bytes = 0;
    c->restarts++;
    c->kind = kind;
}

static bool count_bytes(void *self, const uint8_t *data, size_t len) {
    tfwi_counter *c = self;
    (void)data;
    c->values++;
    c->bytes += len;
    return true;
}

static bool count_floats(void *self, const uint8_t *block, size_t count) {
    tfwi_counter *c = self;
    (void)block;
    c->values += count;
    c->bytes += sizeof(float) * count;
    return true;
}

static bool count_int64(void *self, int64_t value) {
    tfwi_counter *c = self;
    (void)value;
    c->values++;
    c->bytes += sizeof value;
    return true;
}

static bool count_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    tfwi_counter *c = self;
    int64_t values[TFWI_VARINTS_AT_ONCE];
    while (p != end) {
        size_t count;
        p = tfwi_read_block(&c->blocks, p, end, values, TFWI_VARINTS_AT_ONCE, &count, fault);
        if (p == NULL) {
            return false;
        }
        c->values += count;
        c->bytes += sizeof *values * count;
    }
    return true;
}

static const tfwi_sink count_sink = {count_restart, count_bytes, count_floats, count_int64,
                                     count_varints};

bool tfwi_count_piece(tfwi_counter *c, const uint8_t *p, const uint8_t *end) {
    return tfwi_walk_feature(&count_sink, c, p, end, &c->kind, &c->fault);
}

/* Adds the counted Feature. */
static void end_feature(const tfwi_counter *c, tfw_extent *extent) {
    extent->objects += c->kind == TFW_BYTES ? c->values : 0;
    extent->bytes += c->bytes;
}

bool tfwi_count_value(tfwi_counter *c, tfwi_entry entry) {
    const uint8_t *p, *end;
    tfwi_begin_count(c);
    while (tfwi_next_piece(&entry, &p, &end)) {
        if (!tfwi_count_piece(c, p, end)) {
            return false;
        }
    }
    return true;
}

/* Adds a piece of a FeatureList. */
static bool measure_steps(tfwi_counter *c, const uint8_t *p, const uint8_t *end,
                          tfw_extent *extent) {
    tfwi_field step;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &step, &c->fault)) {
        tfwi_begin_count(c);
        if (!tfwi_count_piece(c, step.data, step.data + step.len)) {
            return false;
        }
        extent->objects++;
        end_feature(c, extent);
    }
    return p == end;
}

static bool measure_entry(tfwi_counter *c, tfwi_entry entry, bool is_list, tfw_extent *extent) {
    extent->features++;
    extent->objects += 1 + tfwi_objects_of_key(&entry);
    extent->bytes += entry.key_len;
    if (!is_list) {
        const bool counted = tfwi_count_value(c, entry);
        end_feature(c, extent);
        return counted;
    }
    const uint8_t *p, *end;
    while (tfwi_next_piece(&entry, &p, &end)) {
        if (!measure_steps(c, p, end, extent)) {
            return false;
        }
    }
    return true;
}

const uint32_t tfwi_map_tags[2] = {TFWI_TAG(1, TFWI_WIRE_LEN), TFWI_TAG(2, TFWI_WIRE_LEN)};

static bool measure_map(tfwi_counter *c, const uint8_t *p, const uint8_t *end, bool is_list,
                        tfw_extent *extent) {
    tfwi_field map, field;
    while (tfwi_find_field(&p, end, tfwi_map_tags[is_list], &map, &c->fault)) {
        const uint8_t *q = map.data, *map_end = map.data + map.len;
        while (tfwi_find_field(&q, map_end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &c->fault)) {
            tfwi_entry entry;
            if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &c->fault) ||
                !measure_entry(c, entry, is_list, extent)) {
                return false;
            }
        }
        if (q != map_end) {
            return false;
        }
    }
    return p == end;
}

tfwi_counter tfwi_counter_of(const uint8_t *limit) {
    return (tfwi_counter){.blocks = {.varints = tfwi_matcher_best()->varints, .limit = limit}};
}

int tfwi_measure(const uint8_t *message, size_t len, tfw_extent extents[2], tfw_error *error) {
    static const uint8_t nothing[1];
    message = message != NULL ? message : nothing;
    tfwi_counter c = tfwi_counter_of(message + len);
    extents[0] = extents[1] = (tfw_extent){.features = 0};
    if (measure_map(&c, message, message + len, false, &extents[0]) &&
        measure_map(&c, message, message + len, true, &extents[1])) {
        return TFW_OK;
    }
    tfwi_fail(error, c.fault.status, c.fault.text);
    if (c.fault.status == TFW_E_WIRE) {
        TFWI_SET(error, offset, c.fault.at - message);
    }
    return c.fault.status;
}

int tfw_measure(const uint8_t *message, size_t len, tfw_extent *out_extent, tfw_error *error) {
    tfw_extent extents[2];
    const uint8_t nothing = 0;
    int status = tfwi_measure(len != 0 ? message : &nothing, len, extents, error);
    if (status == TFW_OK) {
        *out_extent = (tfw_extent){extents[0].features + extents[1].features,
                                   extents[0].objects + extents[1].objects,
                                   extents[0].bytes + extents[1].bytes};
    }
    return status;
}
