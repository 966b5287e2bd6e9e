/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that records have and a schema has not. They are few, and mostly come in the same order. */
#include "parse/unknown.h"

static bool is_noted(tfwi_unknown *u, const uint8_t *key, size_t len, bool is_list) {
    for (size_t i = 0; i < u->count; i++) {
        const size_t at = (u->guess + i) % u->count;
        if (u->of[at].is_list == is_list && tfwi_is_named(&u->of[at].key, key, len)) {
            u->guess = at + 1;
            return true;
        }
    }
    return false;
}

void tfwi_unknown_note(tfwi_unknown *u, const uint8_t *key, size_t len, bool is_list,
                       uint64_t record) {
    len = len < TFWI_MOST_UNKNOWN_LEN ? len : TFWI_MOST_UNKNOWN_LEN;
    if (u->has_more || is_noted(u, key, len, is_list)) {
        return;
    }
    uint8_t *copy = u->count < TFWI_MOST_UNKNOWN ? tfwi_realloc(NULL, len) : NULL;
    if (copy == NULL) {
        u->has_more = true;
        return;
    }
    if (len != 0) {
        memcpy(copy, key, len);
    }
    u->of[u->count++] = (tfwi_unknown_key){{.name = copy, .len = len}, is_list, record};
}

void tfwi_unknown_clear(tfwi_unknown *u) {
    for (size_t i = 0; u != NULL && i < u->count; i++) {
        tfw_free(u->of[i].key.name);
    }
    if (u != NULL) {
        u->count = u->guess = 0;
        u->has_more = false;
    }
}
