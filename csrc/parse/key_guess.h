/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses the feature of a key where keys come in any order: eight bytes of the key choose a slot
 * of a table, without a branch on the key or on its length. The caller compares the whole key, and
 * looks it up by its seeded hash if the guess was wrong. So keys that share a slot, by chance or by
 * choice, cost one comparison each and no more. */
#ifndef TFWIRE_KEY_GUESS_H
#define TFWIRE_KEY_GUESS_H

#include "base/hash.h"

/* Only shorter keys are guessed. This many bytes are read at a key of any length. */
#define TFWI_GUESSED_LEN 128

/* Which bytes of a key are taken. */
typedef struct tfwi_key_bytes {
    uint64_t mask; /* without those past the end of the key */
    uint64_t at;
} tfwi_key_bytes;

typedef struct tfwi_guesses {
    tfwi_key_bytes windows[UINT8_MAX + 1]; /* by the length of the key */
    uint64_t multiplier;
    unsigned shift;
    uint16_t *features; /* the slots; a free one holds the number of features */
} tfwi_guesses;

/* The slot that a key chooses. REQUIRES: as below. */
TFWI_INLINE uint16_t *tfwi_guess_slot(const tfwi_guesses *guesses, const uint8_t *key, size_t len) {
    const tfwi_key_bytes *window = &guesses->windows[len];
    uint64_t word = (tfwi_load64(key + window->at) & window->mask) ^ len;
    return &guesses->features[word * guesses->multiplier >> guesses->shift];
}

/* The index of a feature: no other has this key, unless both keys share a slot. The number of
 * features: none has this key. REQUIRES: TFWI_GUESSED_LEN bytes can be read at the key, and it is
 * shorter. With a len up to UINT8_MAX the result means nothing, but is still such an index. */
TFWI_INLINE size_t tfwi_guess(const tfwi_guesses *guesses, const uint8_t *key, size_t len) {
    return *tfwi_guess_slot(guesses, key, len);
}

/* Chooses the windows and the multiplier by which the fewest keys share a slot; false: out of
 * memory. The owner passes the slots to tfw_free. */
bool tfwi_guesses_init(tfwi_guesses *guesses, const tfw_feature *features, size_t count,
                       const tfwi_seed *seed);

#endif /* TFWIRE_KEY_GUESS_H */
