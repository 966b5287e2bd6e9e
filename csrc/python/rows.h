/* SPDX-License-Identifier: Apache-2.0 */
/* The row encoder, and what it remembers of keys. */
#ifndef TFWIRE_ROWS_H
#define TFWIRE_ROWS_H

#include "encode/numbers.h"
#include "python/unpickler.h"

/* The prefixes of a key, by kind less one. */
typedef struct tfwi_key_prefixes {
    tfwi_scalar scalars[3]; /* where the prefix has a template; else all 0 */
    tfwi_prefix of[3];
    uint32_t uses[3]; /* 0: not made yet */
} tfwi_key_prefixes;

struct tfw_rows {
    tfwi_unpickler u;
    TFWI_ARRAY(tfwi_key_prefixes) prefixes;  /* by key */
    TFWI_ARRAY(void *) blocks;               /* their memory */
    TFWI_ARRAY(uint32_t) order;              /* of the pairs, by name */
    TFWI_ARRAY(const tfwi_scalar *) scalars; /* of a run of numbers */
    const tfwi_writer *writer;
    bool sort_keys; /* what order was made for */
    uint64_t stamp;
    size_t guess; /* bytes of the last message's length */
};

/* From this use of a key on, its template pays. */
#define TFWI_TEMPLATE_USES 4

/* Finds the order of the pairs, whose keys are not those of the row before. TFWI_UNKNOWN: a key
 * occurs twice; TFW_E_MEMORY. */
int tfwi_rows_order(tfw_rows *r);

/* Makes the prefix of a key and a kind at its first use, the template at a later one. */
int tfwi_rows_prepare(tfw_rows *r, uint32_t key, int32_t kind);

/* Forgets all keys. */
void tfwi_rows_forget(tfw_rows *r);

/* The prefix for a key and a kind; NULL: out of memory. */
TFWI_INLINE tfwi_prefix *tfwi_rows_prefix(tfw_rows *r, uint32_t key, int32_t kind) {
    bool ready = key < r->prefixes.count &&
                 r->prefixes.of[key].uses[kind - 1] > TFWI_TEMPLATE_USES;
    if (TFWI_UNLIKELY(!ready) && tfwi_rows_prepare(r, key, kind) != TFW_OK) {
        return NULL;
    }
    return &r->prefixes.of[key].of[kind - 1];
}

#endif /* TFWIRE_ROWS_H */
