/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: checked copies of the features asked for, and a hash table of their keys. */
#include "parse/schema.h"

#include "base/memory.h"

#include <limits.h>

/* Keeps the table at most a quarter full, so that nearly every search takes one probe. */
#define HASH_SLOTS_PER_FEATURE 4

#define MAX_FEATURES ((size_t)1 << 20)

/* The most values or bytes that a feature may have. */
#define MAX_COUNT (SIZE_MAX / 2 / sizeof(int64_t))

static int invalid(tfw_error *error, size_t feature, const char *text) {
    tfwi_fail(error, TFW_E_SCHEMA, text);
    TFWI_SET(error, feature, (int32_t)feature);
    return TFW_E_SCHEMA;
}

static bool has_default_values(const tfw_feature *feature) {
    return feature->has_default && feature->count != 0 && feature->default_values != NULL;
}

/* Feature lists have no default but the flag: what kind of columns a schema is for is known only
 * later, so its absence is not judged here. */
static int check_default(const tfw_feature *feature, size_t i, tfw_error *error) {
    if (!feature->has_default) {
        return TFW_OK;
    }
    if (feature->layout != TFW_DENSE) {
        return invalid(error, i, "only a dense feature can have a default");
    }
    if (!has_default_values(feature) || feature->kind != TFW_BYTES) {
        return TFW_OK;
    }
    const int64_t *offsets = feature->default_offsets;
    if (offsets == NULL || offsets[0] < 0) {
        return invalid(error, i, "a default of strings needs offsets");
    }
    for (uint64_t k = 0; k < feature->count; k++) {
        if (offsets[k] > offsets[k + 1]) {
            return invalid(error, i, "the offsets of a default decrease");
        }
    }
    return TFW_OK;
}

static int check_feature(const tfw_feature *feature, size_t i, tfw_error *error) {
    if (feature->kind < TFW_BYTES || feature->kind > TFW_INT64) {
        return invalid(error, i, "unknown kind");
    }
    if (feature->layout < TFW_DENSE || feature->layout > TFW_REPEATED) {
        return invalid(error, i, "unknown layout");
    }
    if (feature->reserved != 0) {
        return invalid(error, i, "reserved is not 0");
    }
    if (feature->name == NULL && feature->name_len != 0) {
        return invalid(error, i, "a name is missing");
    }
    if (feature->name_len >= INT_MAX ||
        (feature->layout != TFW_VARIABLE && feature->count > MAX_COUNT)) {
        return invalid(error, i, "a size is too large");
    }
    return check_default(feature, i, error);
}

/* Bytes of the block of defaults that a feature takes. Offsets come first: they want alignment,
 * so every share is rounded up. */
static size_t default_size(const tfw_feature *feature) {
    if (!has_default_values(feature)) {
        return 0;
    }
    size_t count = (size_t)feature->count;
    if (feature->kind != TFW_BYTES) {
        return (count * tfwi_value_size(feature->kind) + 7) & ~(size_t)7;
    }
    const int64_t *offsets = feature->default_offsets;
    size_t bytes = (size_t)(offsets[count] - offsets[0]);
    return (count + 1) * sizeof(int64_t) + ((bytes + 7) & ~(size_t)7);
}

/* Copies a default to its share of the block and leads the feature's pointers there. */
static void copy_default(tfw_feature *feature, uint8_t *share) {
    size_t count = (size_t)feature->count;
    const void *values = feature->default_values;
    if (feature->kind != TFW_BYTES) {
        memcpy(share, values, count * tfwi_value_size(feature->kind));
        feature->default_values = share;
        return;
    }
    int64_t first = feature->default_offsets[0];
    size_t bytes = (size_t)(feature->default_offsets[count] - first);
    int64_t *offsets = (int64_t *)(void *)share;
    for (size_t i = 0; i <= count; i++) {
        offsets[i] = feature->default_offsets[i] - first;
    }
    uint8_t *strings = share + (count + 1) * sizeof(int64_t);
    if (bytes != 0) {
        memcpy(strings, (const uint8_t *)values + first, bytes);
    }
    feature->default_offsets = offsets;
    feature->default_values = strings;
}

/* The slot that holds the key, or the free one where it belongs. */
static tfwi_slot *find_slot(const tfw_schema *schema, const uint8_t *key, size_t len,
                            uint32_t *out_hash) {
    uint64_t hash = tfwi_hash(&schema->seed, key, len);
    uint32_t upper = (uint32_t)(hash >> 32);
    size_t i = (size_t)hash & schema->mask;
    *out_hash = upper;
    while (schema->slots[i].feature != 0) {
        const tfwi_slot *slot = &schema->slots[i];
        if (slot->hash == upper && tfwi_key_is(&schema->features[slot->feature - 1], key, len)) {
            break;
        }
        i = (i + 1) & schema->mask;
    }
    return &schema->slots[i];
}

size_t tfwi_schema_find(const tfw_schema *schema, const uint8_t *key, size_t len) {
    uint32_t hash;
    const tfwi_slot *slot = find_slot(schema, key, len, &hash);
    return slot->feature != 0 ? slot->feature - 1 : TFWI_NOT_FOUND;
}

static int index_keys(tfw_schema *schema, tfw_error *error) {
    for (size_t i = 0; i < schema->count; i++) {
        const tfw_feature *feature = &schema->features[i];
        uint32_t hash;
        tfwi_slot *slot =
            find_slot(schema, (const uint8_t *)feature->name, (size_t)feature->name_len, &hash);
        if (slot->feature != 0) {
            return invalid(error, i, "a key occurs twice");
        }
        *slot = (tfwi_slot){.hash = hash, .feature = (uint32_t)i + 1};
    }
    return TFW_OK;
}

/* Checks every feature and adds up what the copies take. */
static int measure(const tfw_feature *features, size_t count, size_t *out_names,
                   size_t *out_defaults, tfw_error *error) {
    *out_names = 0;
    *out_defaults = 0;
    for (size_t i = 0; i < count; i++) {
        int status = check_feature(&features[i], i, error);
        if (status != TFW_OK) {
            return status;
        }
        if (tfwi_add_overflows(*out_names, (size_t)features[i].name_len, out_names) ||
            tfwi_add_overflows(*out_defaults, default_size(&features[i]), out_defaults)) {
            return invalid(error, i, "a size is too large");
        }
    }
    return TFW_OK;
}

static void copy_features(tfw_schema *schema, const tfw_feature *features) {
    uint8_t *name = schema->names;
    uint8_t *share = schema->defaults;
    for (size_t i = 0; i < schema->count; i++) {
        tfw_feature *feature = &schema->features[i];
        *feature = features[i];
        size_t share_size = default_size(feature);
        if (feature->name_len != 0) {
            memcpy(name, feature->name, (size_t)feature->name_len);
        }
        feature->name = (const char *)name;
        name += feature->name_len;
        if (share_size != 0) {
            copy_default(feature, share);
        }
        share += share_size;
    }
}

int tfw_schema_create(const tfw_feature *features, size_t count, uint64_t seed,
                      tfw_schema **out_schema, tfw_error *error) {
    *out_schema = NULL;
    if (count > MAX_FEATURES || (features == NULL && count != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no features, or too many");
    }
    size_t names_size, defaults_size;
    int status = measure(features, count, &names_size, &defaults_size, error);
    if (status != TFW_OK) {
        return status;
    }
    size_t slots = 8;
    while (slots < count * HASH_SLOTS_PER_FEATURE) {
        slots *= 2;
    }
    tfw_schema *schema = tfwi_calloc(1, sizeof *schema);
    if (schema == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    atomic_init(&schema->shares, 1);
    schema->count = count;
    schema->mask = slots - 1;
    schema->seed = tfwi_seed_of(seed);
    schema->features = tfwi_calloc(count, sizeof *schema->features);
    schema->names = tfwi_realloc(NULL, names_size);
    schema->defaults = tfwi_realloc(NULL, defaults_size);
    schema->slots = tfwi_calloc(slots, sizeof *schema->slots);
    if (schema->features == NULL || schema->names == NULL || schema->defaults == NULL ||
        schema->slots == NULL ||
        !tfwi_guesses_init(&schema->guesses, features, count, &schema->seed)) {
        status = tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    } else {
        copy_features(schema, features);
        status = index_keys(schema, error);
    }
    if (status != TFW_OK) {
        tfw_schema_free(schema);
        return status;
    }
    *out_schema = schema;
    return TFW_OK;
}

void tfwi_schema_share(const tfw_schema *schema) {
    if (schema != NULL) {
        atomic_fetch_add(&((tfw_schema *)schema)->shares, 1);
    }
}

void tfwi_schema_unshare(const tfw_schema *shared) {
    tfw_schema *schema = (tfw_schema *)shared;
    if (schema == NULL || atomic_fetch_sub(&schema->shares, 1) != 1) {
        return;
    }
    tfw_free(schema->features);
    tfw_free(schema->names);
    tfw_free(schema->defaults);
    tfw_free(schema->slots);
    tfw_free(schema->guesses.features);
    tfw_free(schema);
}

/* ---- What is kept --------------------------------------------------------------------------- */

/* In the places of a schema that its creator has freed: nothing is kept there any more. */
static tfwi_kept nothing_more;

tfwi_kept *tfwi_schema_take(const tfw_schema *schema, size_t place) {
    if (schema == NULL) {
        return NULL;
    }
    _Atomic(tfwi_kept *) *kept = &((tfw_schema *)schema)->kept[place];
    tfwi_kept *found = atomic_load(kept);
    while (found != &nothing_more && !atomic_compare_exchange_weak(kept, &found, NULL)) {
    }
    return found != &nothing_more ? found : NULL;
}

void tfwi_schema_keep(const tfw_schema *schema, size_t place, tfwi_kept *kept) {
    tfwi_kept *old = schema == NULL ? &nothing_more : atomic_load(&schema->kept[place]);
    while (old != &nothing_more &&
           !atomic_compare_exchange_weak(&((tfw_schema *)schema)->kept[place], &old, kept)) {
    }
    old = old == &nothing_more ? kept : old;
    if (old != NULL) {
        old->end(old);
    }
}

void tfw_schema_free(tfw_schema *schema) {
    for (size_t i = 0; schema != NULL && i < TFWI_PLACES; i++) {
        tfwi_kept *kept = atomic_exchange(&schema->kept[i], &nothing_more);
        if (kept != NULL) {
            kept->end(kept);
        }
    }
    tfwi_schema_unshare(schema);
}
