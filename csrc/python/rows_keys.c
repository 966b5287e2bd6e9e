/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of rows: their order, their prefixes. */
#include "python/rows.h"

#ifdef TFW_PYTHON

/* ---- Order of the keys ---------------------------------------------------------------------- */

static bool comes_before(const tfwi_rows *r, uint32_t i, uint32_t j) {
    const tfwi_key *a = &r->keys.of[r->pairs.of[i].key];
    const tfwi_key *b = &r->keys.of[r->pairs.of[j].key];
    int order = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);
    return order != 0 ? order < 0 : a->len < b->len;
}

/* Sorts order[0, count) by merging halves; spare is as long. */
static void sort(const tfwi_rows *r, uint32_t *order, uint32_t *spare, size_t count) {
    if (count < 2) {
        return;
    }
    size_t half = count / 2;
    sort(r, order, spare, half);
    sort(r, order + half, spare, count - half);
    memcpy(spare, order, half * sizeof *order);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        if (j < count && comes_before(r, order[j], spare[i])) {
            order[k] = order[j++];
        } else {
            order[k] = spare[i++];
        }
    }
}

int tfwi_rows_order(tfwi_rows *r) {
    size_t count = r->pairs.count;
    r->order.count = 0;
    r->stamp++;
    if (count > UINT32_MAX / 2) {
        return TFWI_UNKNOWN;
    }
    if (!TFWI_RESERVE_MORE(r->order, 2 * count) ||
        !TFWI_RESERVE_MORE(r->scalars, count)) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t *stamp = &r->keys.of[r->pairs.of[i].key].stamp;
        if (*stamp == r->stamp) {
            return TFWI_UNKNOWN; /* the same key as str and as bytes */
        }
        *stamp = r->stamp;
        r->order.of[i] = (uint32_t)i;
    }
    if (r->sort_keys && count > 1) {
        sort(r, r->order.of, r->order.of + count, count);
    }
    return TFW_OK;
}

/* ---- Prefixes ------------------------------------------------------------------------------- */

static uint64_t *take_words(tfwi_rows *r, size_t words) {
    if (!TFWI_RESERVE_MORE(r->blocks, 1)) {
        return NULL;
    }
    void *block = tfwi_calloc(words, sizeof(uint64_t));
    if (block != NULL) {
        r->blocks.of[r->blocks.count++] = block;
    }
    return block;
}

int tfwi_rows_make_places(tfwi_rows *r) {
    size_t more = r->keys.count - r->prefixes.count;
    if (!TFWI_RESERVE_MORE(r->prefixes, more)) {
        return TFW_E_MEMORY;
    }
    memset(r->prefixes.of + r->prefixes.count, 0, more * sizeof *r->prefixes.of);
    r->prefixes.count += more;
    return TFW_OK;
}

/* Makes a prefix, or its template. */
static int make_prefix(tfwi_rows *r, uint32_t index, int32_t kind, uint32_t use) {
    const tfwi_key *key = &r->keys.of[index];
    tfwi_prefix *f = &r->prefixes.of[index].of[kind - 1];
    uint64_t *memory = take_words(r, use == 0 ? tfwi_prefix_text_words(key->len)
                                              : tfwi_prefix_template_words(key->len));
    if (memory == NULL) {
        return TFW_E_MEMORY;
    }
    if (use == 0) {
        tfwi_prefix_init(f, (const char *)key->name, key->len, kind, memory);
    } else {
        tfwi_prefix_prepare(f, memory);
        tfwi_scalar scalar;
        if (tfwi_scalar_init(&scalar, f, kind, NULL)) {
            r->prefixes.of[index].scalars[kind - 1] = scalar;
        }
    }
    return TFW_OK;
}

int tfwi_rows_prepare(tfwi_rows *r, uint32_t key, int32_t kind) {
    if (key >= r->prefixes.count && tfwi_rows_make_places(r) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    tfwi_key_prefixes *k = &r->prefixes.of[key];
    if (k->kind != TFW_NONE && k->kind != TFWI_ANY_KIND && k->kind != kind) {
        return TFWI_OTHER_KIND;
    }
    uint32_t use = k->uses[kind - 1];
    if ((use == 0 || use == TFWI_TEMPLATE_USES) && make_prefix(r, key, kind, use) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    k->uses[kind - 1] = use + 1;
    k->ready[kind - 1] = use == TFWI_TEMPLATE_USES;
    return TFW_OK;
}

void tfwi_rows_forget(tfwi_rows *r) {
    for (size_t i = 0; i < r->blocks.count; i++) {
        tfw_free(r->blocks.of[i]);
    }
    r->blocks.count = 0;
    r->prefixes.count = 0;
    r->settled.count = 0;
    r->is_settled = false;
    for (size_t i = 0; i < r->known; i++) {
        Py_CLEAR(r->pairs.of[i].name);
    }
    r->known = r->pairs.count = 0;
    tfwi_keys_clear(&r->keys);
}

#endif /* TFW_PYTHON */
