/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that records have and a schema has not: the first few, each with the record that has it
 * first. Which they are depends on the records alone: a key is among the first few of all records
 * only if it is among the first few of every part that it begins in. */
#ifndef TFWIRE_UNKNOWN_H
#define TFWIRE_UNKNOWN_H

#include "base/keys.h"

enum {
    TFWI_MOST_UNKNOWN = 16,
    TFWI_MOST_UNKNOWN_LEN = 1024 /* bytes of a key; of longer ones the first count */
};

typedef struct tfwi_unknown_key {
    tfwi_key key;
    bool is_list;    /* of a feature list */
    uint64_t record;
} tfwi_unknown_key;

typedef struct tfwi_unknown {
    size_t count;
    size_t guess;  /* the key after the one that was met last */
    bool has_more; /* keys that are not here */
    tfwi_unknown_key of[TFWI_MOST_UNKNOWN];
} tfwi_unknown;

/* Notes a key of a record, unless it is known. Where memory is short it counts as more keys. */
void tfwi_unknown_note(tfwi_unknown *unknown, const uint8_t *key, size_t len, bool is_list,
                       uint64_t record);

void tfwi_unknown_clear(tfwi_unknown *unknown); /* NULL is allowed */

#endif /* TFWIRE_UNKNOWN_H */
