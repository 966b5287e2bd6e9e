/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the messages of an Example by the rules of protobuf. The values go to a sink, whose
 * functions are inlined into the walk.
 */
#ifndef TFWIRE_MESSAGE_H
#define TFWIRE_MESSAGE_H

#include "wire/field.h"

/* ---- Map entries ---------------------------------------------------------------------------- */

/* An entry of a map from string to message. */
typedef struct tfwi_entry {
    const uint8_t *key; /* an absent key is the empty one */
    size_t key_len;
    const uint8_t *next; /* where the search for the value's next piece begins */
    const uint8_t *end;
} tfwi_entry;

/* Reads the key, and checks the entry at its own level: values are not looked into. */
TFWI_INLINE bool tfwi_read_entry(const uint8_t *p, const uint8_t *end, tfwi_entry *out_entry,
                                 tfwi_fault *fault) {
    *out_entry = (tfwi_entry){.key = p, .next = p, .end = end};
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, fault)) {
        out_entry->key = field.data;
        out_entry->key_len = field.len;
    }
    return p == end;
}

/* The next piece of the value (pieces of a message are merged); false after the last. */
TFWI_INLINE bool tfwi_next_piece(tfwi_entry *entry, const uint8_t **out_begin,
                                 const uint8_t **out_end) {
    tfwi_fault none; /* tfwi_read_entry has checked it */
    tfwi_field field;
    if (!tfwi_find_field(&entry->next, entry->end, TFWI_TAG(2, TFWI_WIRE_LEN), &field, &none)) {
        return false;
    }
    *out_begin = field.data;
    *out_end = field.data + field.len;
    return true;
}

/* ---- Feature -------------------------------------------------------------------------------- */

/* What a walk over a Feature reports to; false: out of memory. */
typedef struct tfwi_sink {
    /* A kind is set that was not set before: the values so far are void. */
    void (*restart)(void *self, int32_t kind);
    bool (*bytes)(void *self, const uint8_t *data, size_t len);
    bool (*floats)(void *self, const uint8_t *block, size_t count);
    bool (*int64)(void *self, int64_t value);
    /* A packed block; sets the fault itself. */
    bool (*varints)(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault);
} tfwi_sink;

/* One field of a BytesList, FloatList or Int64List. */
TFWI_INLINE bool tfwi_walk_values(const tfwi_sink *sink, void *self, int32_t kind,
                                  const tfwi_field *field, tfwi_fault *fault) {
    bool stored = true;
    bool string = field->tag == TFWI_TAG(1, TFWI_WIRE_LEN);
    if (string && kind == TFW_INT64) {
        return sink->varints(self, field->data, field->data + field->len, fault);
    }
    if (string && kind == TFW_FLOAT) {
        if (field->len % 4 != 0) {
            tfwi_malformed(fault, field->data, "packed floats end inside a value");
            return false;
        }
        stored = sink->floats(self, field->data, field->len / 4);
    } else if (string) {
        stored = sink->bytes(self, field->data, field->len);
    } else if (field->tag == TFWI_TAG(1, TFWI_WIRE_FIXED32) && kind == TFW_FLOAT) {
        stored = sink->floats(self, field->data, 1);
    } else if (field->tag == TFWI_TAG(1, TFWI_WIRE_VARINT) && kind == TFW_INT64) {
        stored = sink->int64(self, (int64_t)field->value);
    }
    return stored || tfwi_out_of_memory(fault);
}

TFWI_INLINE bool tfwi_walk_list(const tfwi_sink *sink, void *self, int32_t kind, const uint8_t *p,
                                const uint8_t *end, tfwi_fault *fault) {
    while (p != end) {
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, fault);
        if (p == NULL || !tfwi_walk_values(sink, self, kind, &field, fault)) {
            return false;
        }
    }
    return true;
}

/* A Feature or a piece of one. *kind is what earlier pieces set, TFW_NONE at first. Lists of one
 * kind are merged; of a oneof's different kinds the last that is set counts. */
TFWI_INLINE bool tfwi_walk_feature(const tfwi_sink *sink, void *self, const uint8_t *p,
                                   const uint8_t *end, int32_t *kind, tfwi_fault *fault) {
    while (p != end) {
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, fault);
        if (p == NULL) {
            return false;
        }
        int32_t number = (int32_t)(field.tag >> 3);
        if ((field.tag & 7) != TFWI_WIRE_LEN || number > TFW_INT64) {
            continue;
        }
        if (*kind != number) {
            *kind = number;
            sink->restart(self, number);
        }
        if (!tfwi_walk_list(sink, self, *kind, field.data, field.data + field.len, fault)) {
            return false;
        }
    }
    return true;
}

/* ---- Other messages ------------------------------------------------------------------------- */

/* Whether a well-formed message in which no feature was found is one of ours: it holds nothing,
 * or empty maps in fields of numbers up to this one. False: the fault says so. */
TFWI_INLINE bool tfwi_is_empty(const uint8_t *p, size_t len, uint32_t most, tfwi_fault *fault) {
    const uint8_t *begin = p, *end = p + len;
    while (p != end) {
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, fault);
        if ((field.tag & 7) != TFWI_WIRE_LEN || field.tag >> 3 > most || field.len != 0) {
            tfwi_malformed(fault, begin, "no features, but other fields");
            return false;
        }
    }
    return true;
}

#endif /* TFWIRE_MESSAGE_H */
