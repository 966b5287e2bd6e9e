/* SPDX-License-Identifier: Apache-2.0 */
/* How much a message holds, as tfw_measure and tfw_shorten count it. */
#ifndef TFWIRE_MEASURE_H
#define TFWIRE_MEASURE_H

#include "parse/parse.h"
#include "tfwire_python.h"
#include "wire/message.h"

/* The values of a Feature. */
typedef struct tfwi_counter {
    uint64_t values;
    uint64_t bytes;
    uint64_t restarts; /* how often a kind was set that was not set before */
    int32_t kind;
    tfwi_blocks blocks;
    tfwi_fault fault;
} tfwi_counter;

/* A counter of messages in memory that ends at limit. */
tfwi_counter tfwi_counter_of(const uint8_t *limit);

TFWI_INLINE void tfwi_begin_count(tfwi_counter *c) {
    c->values = c->bytes = c->restarts = 0;
    c->kind = TFW_NONE;
}

/* Counts the values of a Feature, or of a piece of one. */
bool tfwi_count_piece(tfwi_counter *c, const uint8_t *p, const uint8_t *end);

/* Counts the Feature that is the value of a map entry. */
bool tfwi_count_value(tfwi_counter *c, tfwi_entry entry);

/* Bytes of a key that count for nothing. Longer ones count as objects, byte by byte: those that are
 * not UTF-8 take Python as long as that. */
enum { TFWI_SHORT_KEY = 256 };

TFWI_INLINE uint64_t tfwi_objects_of_key(const tfwi_entry *entry) {
    return entry->key_len > TFWI_SHORT_KEY ? entry->key_len - TFWI_SHORT_KEY : 0;
}

/* The tags of the maps of a SequenceExample; the first is that of an Example, too. */
extern const uint32_t tfwi_map_tags[2];

/* The extents of the features and of the feature lists. */
int tfwi_measure(const uint8_t *message, size_t len, tfw_extent extents[2], tfw_error *error);

#endif /* TFWIRE_MEASURE_H */
