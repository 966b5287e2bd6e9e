/* SPDX-License-Identifier: Apache-2.0 */
/* The table of guesses: which bytes of the keys to take, and where they lead. */
#include "parse/key_guess.h"

#include "base/memory.h"

/* Keys of larger schemas are not guessed: neither their columns nor the table would be cached. */
#define MOST_FEATURES 4096

/* Enough that one of them leads 40 keys to 40 slots, and 300 keys to nearly as many. */
#define GUESS_SLOTS_PER_FEATURE 16

/* Enough slots that few of the keys not asked for share a slot with one that is. */
enum { LEAST_SHIFT = 64 - 10, LEAST_SLOTS = 1 << 10 };

#define WORD sizeof(uint64_t)

/* Keys mostly differ at their end. Where they do not, the windows move towards the beginning. */
enum { STEP_BACK = 4, MULTIPLIERS = 8, CHOICES = 12 * MULTIPLIERS };

/* Windows that end this many bytes before the end of a key, if it is long enough. */
static void set_windows(tfwi_guesses *guesses, size_t back) {
    for (size_t len = 0; len < TFWI_GUESSED_LEN; len++) {
        guesses->windows[len] = (tfwi_key_bytes){
            .mask = len < WORD ? (UINT64_C(1) << 8 * len) - 1 : UINT64_MAX,
            .at = len > WORD + back ? len - WORD - back : 0,
        };
    }
}

/* Makes a choice of windows and multiplier and fills the slots; returns how many keys found theirs
 * taken. */
static size_t fill_slots(tfwi_guesses *guesses, size_t slots, size_t choice,
                         const tfw_feature *features, size_t count, const tfwi_seed *seed) {
    size_t taken = 0;
    set_windows(guesses, choice / MULTIPLIERS * STEP_BACK);
    guesses->multiplier = tfwi_fold(seed->a + choice, seed->b) | 1;
    for (size_t i = 0; i < slots; i++) {
        guesses->features[i] = (uint16_t)count;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t key[TFWI_GUESSED_LEN] = {0};
        size_t len = (size_t)features[i].name_len;
        if (len < TFWI_GUESSED_LEN) {
            memcpy(key, len != 0 ? features[i].name : "", len);
            uint16_t *slot = tfwi_guess_slot(guesses, key, len);
            taken += *slot != count;
            *slot = *slot != count ? *slot : (uint16_t)i;
        }
    }
    return taken;
}

bool tfwi_guesses_init(tfwi_guesses *guesses, const tfw_feature *features, size_t count,
                       const tfwi_seed *seed) {
    size_t slots = LEAST_SLOTS, best = 0, taken = SIZE_MAX, least = SIZE_MAX;
    guesses->shift = LEAST_SHIFT;
    for (; count <= MOST_FEATURES && slots < count * GUESS_SLOTS_PER_FEATURE; slots *= 2) {
        guesses->shift--;
    }
    guesses->features = tfwi_calloc(slots, sizeof *guesses->features);
    if (guesses->features == NULL || count > MOST_FEATURES) {
        return guesses->features != NULL; /* every guess is feature 0 */
    }
    for (size_t i = 0; i < CHOICES && least != 0; i++) {
        taken = fill_slots(guesses, slots, i, features, count, seed);
        if (taken < least) {
            least = taken;
            best = i;
        }
    }
    if (taken != least) {
        fill_slots(guesses, slots, best, features, count, seed);
    }
    return true;
}
