/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of rows, for all ways of reading rows. */
#include "python/unpickler.h"

int tfwi_find_key(tfwi_unpickler *u, const tfwi_item *string, uint32_t *out_key) {
    uint32_t *known = string->memo != 0 ? &u->memos.of[string->memo - 1].key : NULL;
    if (known != NULL && *known != 0) {
        *out_key = *known - 1;
        return TFW_OK;
    }
    int status = tfwi_keys_find(&u->keys, u->stream + string->a, (size_t)string->b, out_key);
    if (known != NULL && status == TFW_OK) {
        *known = *out_key + 1;
    }
    return status;
}

int tfwi_guess_key(tfwi_unpickler *u, const tfwi_item *name, bool is_text, uint32_t guess,
                   uint32_t *out_key) {
    const uint8_t *text = u->stream + name->a;
    const tfwi_key *guessed = guess < u->keys.count ? &u->keys.of[guess] : NULL;
    if (guessed != NULL && tfwi_is_named(guessed, text, (size_t)name->b)) {
        *out_key = guess;
        return is_text && guessed->no_text ? TFWI_UNKNOWN : TFW_OK;
    }
    if (is_text && tfwi_has_surrogates(text, (size_t)name->b)) {
        return TFWI_UNKNOWN;
    }
    return tfwi_find_key(u, name, out_key);
}
