/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_schema_create: any features are judged as its contract says, and a schema that is created
 * finds every key, whichever order the keys of a message have. */
#include "common/fuzz.h"

#include "encode/prefix.h"

enum { MAX_KEYS = 40, PRIME = 41, MAX_NAME = 80, MESSAGE = 32 * MAX_KEYS + 2 * MAX_KEYS * MAX_NAME };

typedef struct wanted {
    tfw_feature features[MAX_KEYS];
    char names[MAX_KEYS][MAX_NAME];
    int64_t offsets[MAX_KEYS][4];
    size_t count;
} wanted;

/* Names are pieces of the input, or the name before with one byte changed. */
static void make_name(wanted *w, size_t i, input *in) {
    uint8_t choice = input_byte(in);
    size_t len = choice % MAX_NAME, got;
    if ((choice & 128) != 0 && i > 0) {
        len = (size_t)w->features[i - 1].name_len;
        memcpy(w->names[i], w->names[i - 1], len);
        w->names[i][choice % (len + 1) % MAX_NAME] ^= (char)input_byte(in);
    } else {
        const uint8_t *bytes = input_bytes(in, len, &got);
        memcpy(w->names[i], bytes, got);
        memset(w->names[i] + got, 'n', len - got);
    }
    w->features[i].name = w->names[i];
    w->features[i].name_len = len;
}

/* What the default of a feature says; how much memory its values have is not to be seen. */
static void make_default(wanted *w, size_t i, input *in) {
    static const uint8_t values[3 * 8];
    tfw_feature *f = &w->features[i];
    uint8_t choice = input_byte(in);
    f->has_default = choice & 1;
    if (f->count <= 3 && (choice & 2) != 0) {
        f->default_values = values;
        for (int k = 0; k < 4; k++) {
            w->offsets[i][k] = (choice & 4) != 0 ? (int64_t)input_byte(in) % 26 - 1 : k;
        }
        f->default_offsets = (choice & 8) != 0 ? NULL : w->offsets[i];
    }
}

static void make_features(wanted *w, input *in) {
    w->count = input_byte(in) % (MAX_KEYS + 1);
    for (size_t i = 0; i < w->count; i++) {
        uint8_t choice = input_byte(in);
        tfw_feature *f = &w->features[i];
        *f = (tfw_feature){.kind = (choice & 64) != 0 ? choice % 6 - 1 : 1 + choice % 3,
                           .layout = (choice & 128) != 0 ? (choice >> 3) % 6 - 1
                                                         : 1 + (choice >> 3) % 3};
        f->count = (choice & 7) == 7 ? input_number(in, 8) : (choice >> 4) % 4u;
        make_name(w, i, in);
        make_default(w, i, in);
    }
}

/* ---- What is to be refused ------------------------------------------------------------------ */

static bool is_valid(const tfw_feature *f) {
    bool dense = f->layout == TFW_DENSE;
    if (f->kind < TFW_BYTES || f->kind > TFW_INT64 || f->layout < TFW_DENSE ||
        f->layout > TFW_REPEATED || (f->layout != TFW_VARIABLE && f->count > SIZE_MAX / 16) ||
        (f->has_default && !dense)) {
        return false;
    }
    if (!f->has_default || f->count == 0 || f->default_values == NULL || f->kind != TFW_BYTES) {
        return true;
    }
    bool fine = f->default_offsets != NULL && f->default_offsets[0] >= 0;
    for (uint64_t i = 0; fine && i < f->count; i++) {
        fine = f->default_offsets[i] <= f->default_offsets[i + 1];
    }
    return fine;
}

static bool same_name(const tfw_feature *a, const tfw_feature *b) {
    return a->name_len == b->name_len && memcmp(a->name, b->name, (size_t)a->name_len) == 0;
}

/* The feature to be blamed: the first that is wrong by itself, else the first that was there
 * before; or -1. */
static int64_t first_wrong(const wanted *w) {
    for (size_t i = 0; i < w->count; i++) {
        if (!is_valid(&w->features[i])) {
            return (int64_t)i;
        }
    }
    for (size_t i = 0; i < w->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (same_name(&w->features[i], &w->features[k])) {
                return (int64_t)i;
            }
        }
    }
    return -1;
}

static int create(const wanted *w, tfw_schema **out_schema) {
    tfw_error error = {.status = TFW_OK, .feature = -1};
    int64_t wrong = first_wrong(w);
    int status = tfw_schema_create(w->features, w->count, SEED, out_schema, &error);
    if (status == TFW_E_MEMORY) { /* the failing allocation */
        CHECK(tfwi_test_fail_allocation == -1 && *out_schema == NULL);
        status = tfw_schema_create(w->features, w->count, SEED, out_schema, &error);
    }
    CHECK_EQ(wrong < 0 ? TFW_OK : TFW_E_SCHEMA, status);
    CHECK_EQ(wrong < 0, *out_schema != NULL);
    CHECK(wrong < 0 || error.feature == wrong);
    return status;
}

/* ---- Finding keys --------------------------------------------------------------------------- */

/* An entry whose value is one int64 below 128. */
static uint8_t *put_entry(uint8_t *p, const tfw_feature *f, uint8_t value) {
    const uint8_t feature[8] = {0x12, 5, 0x1a, 3, 0x0a, 1, value};
    size_t len = (size_t)f->name_len;
    *p++ = 0x0a;
    p = tfwi_put_length(p, 2 + len + 7);
    *p++ = 0x0a;
    *p++ = (uint8_t)len;
    memcpy(p, f->name, len);
    memcpy(p + len, feature, 7);
    return p + len + 7;
}

/* An Example with the keys from first on, every step-th until all were there. */
static size_t make_message(uint8_t *out, const wanted *w, size_t first, size_t step) {
    static uint8_t body[MESSAGE];
    uint8_t *p = body;
    for (size_t i = 0; i < PRIME; i++) {
        size_t k = (first + i * step) % PRIME;
        p = k < w->count ? put_entry(p, &w->features[k], (uint8_t)k) : p;
    }
    out[0] = 0x0a;
    uint8_t *content = tfwi_put_length(out + 1, (uint64_t)(p - body));
    memcpy(content, body, (size_t)(p - body));
    return (size_t)(content - out) + (size_t)(p - body);
}

/* Every key as one of numbers: three messages, each in another order. */
static void check_lookup(wanted *w, uint8_t order) {
    static uint8_t data[3 * (MESSAGE + 4)];
    tfw_span spans[3];
    tfw_schema *schema = NULL;
    tfw_columns *columns = NULL;
    tfw_column column;
    size_t at = 0, done = 0;
    for (size_t i = 0; i < w->count; i++) {
        tfw_feature *f = &w->features[i];
        *f = (tfw_feature){.name = f->name, .name_len = f->name_len, .kind = TFW_INT64,
                           .layout = TFW_VARIABLE};
    }
    for (size_t i = 0; i < 3; i++) {
        spans[i].offset = at;
        spans[i].length = make_message(data + at, w, order, i == 1 ? 1 + order % 40u : 1);
        at += (size_t)spans[i].length;
    }
    CHECK_EQ(TFW_OK, tfw_schema_create(w->features, w->count, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    CHECK_EQ(TFW_OK, tfw_parse(columns, data, at, spans, 3, 0, &done, NULL));
    for (size_t i = 0; i < w->count && check_failures == 0; i++) {
        CHECK_EQ(TFW_OK, tfw_columns_peek(columns, i, &column, NULL));
        CHECK_EQ(3, column.value_count);
        for (size_t k = 0; k < 3 && check_failures == 0; k++) {
            CHECK_EQ(i, ((const int64_t *)column.values)[k]);
        }
    }
    tfw_columns_free(columns);
    tfw_schema_free(schema);
}

/* failing allocation, order of keys, features. */
static void run(input *in) {
    static wanted w;
    tfw_schema *schema = NULL;
    tfw_columns *columns = NULL;
    long failing = input_byte(in) % 8 - 1;
    uint8_t order = input_byte(in);
    make_features(&w, in);
    tfwi_test_fail_allocation = failing;
    int status = create(&w, &schema);
    tfwi_test_fail_allocation = -1;
    if (status == TFW_OK) {
        status = tfw_columns_create(schema, order & TFW_FEATURE_LISTS, &columns, NULL);
        CHECK((columns != NULL) == (status == TFW_OK));
        tfw_schema_free(schema);
        tfw_columns_free(columns); /* in any order */
        check_lookup(&w, order);
    }
}

FUZZ_TARGET(run)
