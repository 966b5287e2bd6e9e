/* The table of guesses: which bytes of the keys to take, and where they lead. */
#include "parse/guess.h"

#include "base/memory.h"

/* Keys of larger schemas are not guessed: neither their columns nor the table would be cached. */
#define MOST_FEATURES 4096

/* So that one of the multipliers leads 40 keys to 40 slots, and 300 keys to nearly as many. */
#define SLOTS_PER_FEATURE 16

#define WORD sizeof(uint64_t)

/* Keys mostly differ at their end. Where they do not, the windows move towards the beginning. */
enum { STEP_BACK = 4, MULTIPLIERS = 8, CHOICES = 12 * MULTIPLIERS };

/* Windows that end so many bytes before the end of a key, if it is long enough. */
static void set_windows(tfwi_guesses *guesses, size_t back) {
    for (size_t len = 0; len < TFWI_GUESSED_LEN; len++) {
        guesses->windows[len] = (tfwi_key_bytes){
            .mask = len < WORD ? (UINT64_C(1) << 8 * len) - 1 : UINT64_MAX,
            .at = len > WORD + back ? len - WORD - back : 0,
        };
    }
}

/* Fills the slots; returns how many keys found theirs taken. */
static size_t fill_slots(tfwi_guesses *guesses, size_t slots, const tfw_feature *features,
                         size_t count) {
    size_t taken = 0;
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
    size_t slots = 2, least = SIZE_MAX;
    guesses->shift = 63;
    for (; count <= MOST_FEATURES && slots < count * SLOTS_PER_FEATURE; slots *= 2) {
        guesses->shift--;
    }
    guesses->features = tfwi_calloc(slots, sizeof *guesses->features);
    if (guesses->features == NULL || count > MOST_FEATURES) {
        return guesses->features != NULL; /* every guess is feature 0 */
    }
    tfwi_guesses best = *guesses;
    for (size_t i = 0; i < CHOICES && least != 0; i++) {
        set_windows(guesses, i / MULTIPLIERS * STEP_BACK);
        guesses->multiplier = tfwi_fold(seed->a + i, seed->b) | 1;
        size_t taken = fill_slots(guesses, slots, features, count);
        if (taken < least) {
            least = taken;
            best = *guesses;
        }
    }
    *guesses = best;
    fill_slots(guesses, slots, features, count);
    return true;
}
