/* SPDX-License-Identifier: Apache-2.0 */
/* tfwi_decode: a batch gives what its messages give one by one; another encoding gives the same; and
 * the value of a key is what tfw_parse makes of it. tfw_survey_add finds the same messages
 * well-formed, tfw_shorten keeps to its limits, and tfw_find finds those that have a value. */
#include "common/messages.h"

#include "python/decode.h"

static const char KEY[] = "a"; /* whose value is compared */

/* Decodes with the failing allocation, if any, and then again. */
static int decode(const messages *m, unsigned flags, long failing, tfwi_decoded *d,
                  size_t *out_done, tfw_error *error) {
    tfwi_messages all;
    CHECK_EQ(TFW_OK, tfwi_messages_init(&all, m->data, m->len, m->spans, m->count, flags, NULL));
    tfwi_test_fail_allocation = failing;
    int status = tfwi_decode(d, &all, m->count, flags, error);
    if (status == TFW_E_MEMORY) {
        CHECK(tfwi_test_fail_allocation == -1);
        status = tfwi_decode(d, &all, m->count, flags, error);
    }
    tfwi_test_fail_allocation = -1;
    CHECK(status == TFW_OK || status == TFW_E_WIRE);
    *out_done = status == TFW_OK ? m->count : (size_t)error->record;
    if (status == TFW_OK) {
        CHECK_EQ(m->count << (flags == TFW_SEQUENCE), d->ends.count);
    } else {
        CHECK(*out_done < m->count);
        CHECK(error->offset >= 0 && (uint64_t)error->offset <= m->spans[*out_done].length);
    }
    return status;
}

static uint64_t hash_of_strings(const tfwi_decoded *d, const tfwi_value *value) {
    uint64_t hash = TFW_BYTES;
    for (size_t i = value->begin; i < value->end; i++) {
        const tfw_span s = d->strings.of[i];
        const uint8_t *text = (const uint8_t *)(uintptr_t)s.offset;
        hash = fuzz_hash_number(hash, fuzz_hash(TFW_BYTES, text, (size_t)s.length));
    }
    return hash;
}

/* Values of a kind lie one after the other; next: where those of each begin. */
static uint64_t hash_of_value(const tfwi_decoded *d, const tfwi_value *value, size_t *next) {
    const size_t count = value->end - value->begin;
    CHECK(value->begin <= value->end && value->kind >= TFW_NONE && value->kind <= TFWI_STEPS);
    if (value->kind == TFW_NONE) {
        return TFW_NONE;
    }
    if (value->kind == TFWI_STEPS) {
        uint64_t hash = TFWI_STEPS;
        CHECK_EQ(value - d->values.of + 1, value->begin);
        CHECK(value->end <= d->values.count);
        for (size_t i = value->begin; i < value->end; i++) {
            CHECK(d->values.of[i].kind != TFWI_STEPS);
            hash = fuzz_hash_number(hash, hash_of_value(d, &d->values.of[i], next));
        }
        return hash;
    }
    CHECK_EQ(next[value->kind], value->begin);
    next[value->kind] = value->end;
    switch (value->kind) {
    case TFW_INT64:
        CHECK(value->end <= d->int64s.count);
        return count == 0 ? fuzz_hash(TFW_INT64, NULL, 0)
                          : fuzz_hash(TFW_INT64, d->int64s.of + value->begin, 8 * count);
    case TFW_FLOAT:
        CHECK(value->end <= d->floats.count);
        return count == 0 ? fuzz_hash(TFW_FLOAT, NULL, 0)
                          : fuzz_hash(TFW_FLOAT, d->floats.of + value->begin, 4 * count);
    default: CHECK(value->end <= d->strings.count); return hash_of_strings(d, value);
    }
}

/* A decoded value, of the last message. */
typedef struct found_value {
    bool found;
    int32_t kind;
    uint64_t hash;
} found_value;

/* A hash for each message; *out is the value of the key in the last. */
static void hash_messages(const tfwi_decoded *d, unsigned flags, size_t count, uint64_t *hashes,
                          found_value *out) {
    size_t next[TFWI_STEPS] = {0}, at = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t last = flags == TFW_SEQUENCE ? d->ends.of[2 * i + 1] : d->ends.of[i];
        *out = (found_value){.found = false};
        hashes[i] = flags == TFW_SEQUENCE ? d->ends.of[2 * i] - at : 1;
        CHECK(at <= last && last <= d->values.count);
        while (at < last) {
            const tfwi_value *value = &d->values.of[at];
            const uint64_t hash = hash_of_value(d, value, next);
            hashes[i] = fuzz_hash_number(hashes[i], fuzz_hash(9, value->key, value->key_len));
            hashes[i] = fuzz_hash_number(hashes[i], hash);
            if (value->key_len == strlen(KEY) && memcmp(value->key, KEY, value->key_len) == 0) {
                *out = (found_value){true, value->kind, hash};
            }
            at = value->kind == TFWI_STEPS ? value->end : at + 1;
        }
    }
}

/* Whether a message has no features; true if it was not decoded. */
static bool has_no_values(const tfwi_decoded *d, unsigned flags, size_t i) {
    const size_t each = flags == TFW_SEQUENCE ? 2 : 1;
    const size_t first = i == 0 ? 0 : d->ends.of[each * i - 1];
    return each * (i + 1) > d->ends.count || first == d->ends.of[each * (i + 1) - 1];
}

static uint64_t hash_of_column(const tfw_column *c, int32_t kind) {
    if (kind != TFW_BYTES) {
        return fuzz_hash((uint64_t)kind, c->values, (size_t)c->byte_count);
    }
    uint64_t hash = TFW_BYTES;
    for (uint64_t i = 0; i < c->value_count; i++) {
        const uint8_t *s = (const uint8_t *)c->values + c->offsets[i];
        size_t len = (size_t)(c->offsets[i + 1] - c->offsets[i]);
        hash = fuzz_hash_number(hash, fuzz_hash(TFW_BYTES, s, len));
    }
    return hash;
}

/* Parses the key's values as of one kind and compares. */
static void check_kind(const messages *one, const found_value *value, int32_t kind) {
    tfw_feature feature = {
        .name = KEY, .name_len = strlen(KEY), .kind = kind, .layout = TFW_VARIABLE};
    tfw_schema *schema = NULL;
    tfw_columns *columns = NULL;
    tfw_column column;
    CHECK_EQ(TFW_OK, tfw_schema_create(&feature, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    int status = tfw_parse(columns, one->data, one->len, one->spans, 1, 0, NULL, NULL);
    CHECK_EQ(TFW_OK, tfw_columns_take(columns, 0, &column, NULL));
    if (!value->found || value->kind == TFW_NONE) {
        CHECK_EQ(TFW_OK, status);
        CHECK_EQ(0, column.value_count);
    } else if (status == TFW_OK) {
        CHECK_EQ(kind, value->kind);
        CHECK(value->hash == hash_of_column(&column, kind));
    } else {
        CHECK_EQ(TFW_E_KIND, status);
        CHECK(value->kind != kind);
    }
    tfw_free(column.values);
    tfw_free(column.offsets);
    tfw_free(column.splits);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
}

/* Message i alone, in memory that others have used. */
static void check_single(const messages *m, size_t i, unsigned flags, tfwi_decoded *d,
                         uint64_t expected) {
    messages one = messages_single(m, i);
    tfw_error error;
    size_t done;
    uint64_t hash = 0;
    found_value value;
    CHECK_EQ(TFW_OK, decode(&one, flags, -1, d, &done, &error));
    hash_messages(d, flags, done, &hash, &value);
    CHECK(expected == hash);
    for (int32_t kind = TFW_BYTES; kind <= TFW_INT64 && flags == 0; kind++) {
        check_kind(&one, &value, kind);
    }
    if (expected % 4 == 0) {
        tfwi_decoded_clear(d);
    }
    free(one.data);
}

/* ---- Surveys -------------------------------------------------------------------------------- */

/* Adds the messages; where memory is short, those that are left once more. */
static tfw_survey *survey(const messages *m, unsigned flags, long failing, int status,
                          size_t expected) {
    tfw_survey *s;
    tfw_error error;
    size_t done;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &s, NULL));
    tfwi_test_fail_allocation = failing;
    int found = tfw_survey_add(s, m->data, m->len, m->spans, m->count, flags, &done, &error);
    tfwi_test_fail_allocation = -1;
    if (found == TFW_E_MEMORY) {
        size_t more;
        found = tfw_survey_add(s, m->data, m->len, m->spans + done, m->count - done, flags, &more,
                               &error);
        done += more;
    }
    CHECK_EQ(status, found);
    CHECK_EQ(expected, done);
    return s;
}

static bool is_same_survey(const tfw_survey *a, const tfw_survey *b) {
    bool same = tfw_survey_count(a) == tfw_survey_count(b);
    for (size_t i = 0; same && i < tfw_survey_count(a); i++) {
        tfw_feature_survey f = {.size = sizeof f}, g = {.size = sizeof g};
        tfw_survey_get(a, i, &f);
        tfw_survey_get(b, i, &g);
        same = f.name_len == g.name_len && memcmp(f.name, g.name, (size_t)f.name_len) == 0;
        g.name = f.name;
        same = same && memcmp(&f, &g, sizeof f) == 0;
    }
    return same;
}

/* Messages are added where they are decoded; one by one and in another encoding, they add up to the
 * same. */
static void check_survey(const messages *m, const messages *other, unsigned flags, long failing,
                         int status, size_t done) {
    tfw_survey *all = survey(m, flags, -1, status, done);
    tfw_survey *disguised = survey(other, flags, failing, status, done);
    CHECK(is_same_survey(all, disguised));
    tfw_survey *single;
    CHECK_EQ(TFW_OK, tfw_survey_create(SEED, &single, NULL));
    for (size_t i = 0; i <= done && i < m->count; i++) {
        messages one = messages_single(m, i);
        CHECK_EQ(i < done ? TFW_OK : status, tfw_survey_add(single, one.data, one.len, one.spans, 1,
                                                            flags, NULL, NULL));
        free(one.data);
    }
    CHECK(is_same_survey(all, single));
    tfw_survey_free(all);
    tfw_survey_free(disguised);
    tfw_survey_free(single);
}

/* ---- First parts ---------------------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *message, size_t len, tfwi_decoded *d) {
    const tfw_span span = {0, len};
    tfwi_messages one;
    uint64_t hash = 0;
    found_value value;
    CHECK_EQ(TFW_OK, tfwi_messages_init(&one, message, len, &span, 1, 0, NULL));
    CHECK_EQ(TFW_OK, tfwi_decode(d, &one, 1, TFW_SEQUENCE, NULL));
    hash_messages(d, TFW_SEQUENCE, 1, &hash, &value);
    return hash;
}

/* A message with limits: it decodes to no more than them; without any, to the same. */
static void check_shortened(const messages *one, tfw_extent most, tfwi_decoded *d) {
    enum { FEATURES = 1 << 12 };
    const uint8_t *message = one->data + one->spans[0].offset;
    const size_t len = (size_t)one->spans[0].length;
    size_t out_len, count;
    uint64_t left_out;
    tfw_extent all, found;
    tfw_cut *cuts = malloc(2 * FEATURES * sizeof *cuts);
    uint8_t *out = malloc(len != 0 ? len : 1);
    CHECK_EQ(TFW_OK, tfw_measure(message, len, &all, NULL));
    const bool fits = all.features <= most.features && all.objects <= most.objects &&
                      all.bytes <= most.bytes;
    CHECK_EQ(TFW_OK, tfw_shorten(message, len, &most, out, &out_len, cuts, 2 * FEATURES, &count,
                                 &left_out, NULL));
    CHECK(out_len <= len);
    CHECK_EQ(TFW_OK, tfw_measure(out, out_len, &found, NULL));
    CHECK(found.features + left_out == all.features && count <= found.features);
    CHECK(found.objects <= most.objects || found.objects <= found.features);
    CHECK(found.bytes <= most.bytes);
    uint64_t steps = 0, values = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(cuts[i].key_at + cuts[i].key_len <= len);
        steps += cuts[i].steps;
        values += cuts[i].values;
    }
    CHECK(left_out != 0 || found.objects + steps + values >= all.objects);
    if (fits || (most.objects == UINT64_MAX && most.bytes == UINT64_MAX && left_out == 0)) {
        CHECK(count == 0 || !fits);
        CHECK(hash_of(message, len, d) == hash_of(out, out_len, d));
    }
    free(cuts);
    free(out);
}

static void check_parts(const messages *m, size_t done, uint8_t how, tfwi_decoded *d) {
    for (size_t i = 0; i < done; i++) {
        messages one = messages_single(m, i);
        check_shortened(&one, (tfw_extent){1 << 12, UINT64_MAX, UINT64_MAX}, d);
        check_shortened(&one, (tfw_extent){how % 5, how % 7, how}, d);
        check_shortened(&one, (tfw_extent){how % 3 + 1, how, how % 64}, d);
        free(one.data);
    }
}

/* ---- Searches ------------------------------------------------------------------------------- */

static bool has_value(const tfwi_decoded *d, const tfwi_value *value, const tfw_wanted *w) {
    bool has = false;
    for (size_t k = value->begin; value->kind != TFWI_STEPS && k < value->end; k++) {
        if (value->kind == TFW_INT64) {
            has |= w->has_integer && d->int64s.of[k] == w->integer;
        } else if (value->kind == TFW_FLOAT) {
            has |= w->has_number && d->floats.of[k] == w->number;
        } else if (value->kind == TFW_BYTES && w->name != NULL) {
            const tfw_span s = d->strings.of[k];
            has |= value->key_len == w->name_len && s.length == w->part_len &&
                   memcmp(value->key, w->name, value->key_len) == 0 &&
                   memcmp((const void *)(uintptr_t)s.offset, w->part, (size_t)s.length) == 0;
        }
    }
    return has;
}

/* A bit for each message that is found, before bytes of nobody's. */
static unsigned find(const messages *m, size_t after, const tfw_wanted *wanted) {
    uint32_t out[MAX_MESSAGES];
    unsigned found = 0;
    uint8_t *data = fuzz_alloc(m->len + after);
    memset(data, 0, m->len + after);
    memcpy(data, m->data, m->len);
    const size_t count = tfw_find(data, m->len + after, m->spans, m->count, wanted, out);
    for (size_t i = 0; i < count; i++) {
        found |= 1u << out[i];
    }
    free(data);
    return found;
}

/* Whether a varint may have more bytes or bits than it needs. */
static bool may_be_padded(const uint8_t *p, size_t len) {
    bool may = false;
    for (size_t i = 0, before = 0; i < len; i++) {
        may |= (before != 0 && p[i] == 0) || (before == 9 && p[i] != 1);
        before = p[i] >= 0x80 ? before + 1 : 0;
    }
    return may;
}

/* A value that was decoded is found. */
static void check_found(const messages *m, const tfwi_decoded *d, unsigned flags, uint8_t how) {
    if (d->values.count == 0) {
        return;
    }
    const tfwi_value *v = &d->values.of[how % d->values.count];
    if (v->kind == TFW_NONE || v->kind == TFWI_STEPS || v->begin == v->end ||
        (v->kind == TFW_BYTES && flags != 0)) {
        return;
    }
    tfw_wanted wanted = {.part = (const uint8_t *)"\xfe", .part_len = 1};
    if (v->kind == TFW_BYTES) {
        const tfw_span s = d->strings.of[v->begin];
        wanted = (tfw_wanted){.name = v->key, .name_len = v->key_len, .part_len = s.length,
                              .part = (const uint8_t *)(uintptr_t)s.offset};
    } else if (v->kind == TFW_FLOAT) {
        wanted.number = d->floats.of[v->begin];
        wanted.has_number = 1;
    } else {
        wanted.integer = d->int64s.of[v->begin];
        wanted.has_integer = 1;
    }
    unsigned expected = 0;
    for (size_t i = 0, at = 0; i < m->count; i++) {
        const tfw_span s = m->spans[i];
        if (wanted.has_integer && may_be_padded(m->data + s.offset, (size_t)s.length)) {
            at = d->ends.of[flags == TFW_SEQUENCE ? 2 * i + 1 : i];
        }
        for (const size_t end = d->ends.of[flags == TFW_SEQUENCE ? 2 * i + 1 : i]; at < end; at++) {
            expected |= (unsigned)has_value(d, &d->values.of[at], &wanted) << i;
        }
    }
    for (size_t after = 0; after <= 600; after += 600) {
        CHECK((expected & ~find(m, after, &wanted)) == 0);
    }
}

/* sequence and failing allocation, disguise, messages. */
static void run(input *in) {
    uint8_t choice = input_byte(in), how = input_byte(in);
    unsigned flags = (choice & 1) != 0 ? TFW_SEQUENCE : 0;
    messages m = messages_of(in);
    messages other =
        messages_disguised(&m, flags != 0 ? LEVEL_SEQUENCE : LEVEL_EXAMPLE, how);
    tfwi_decoded d = {0}, disguised = {0}, single = {0};
    tfw_error error, other_error;
    size_t done = 0, other_done = 0;
    uint64_t hashes[MAX_MESSAGES] = {0}, other_hashes[MAX_MESSAGES] = {0};
    found_value value, other_value;
    int status = decode(&m, flags, -1, &d, &done, &error);
    const int other_status =
        decode(&other, flags, (choice >> 1) - 1, &disguised, &other_done, &other_error);
    /* Unknown fields make an empty message one that is none of ours. */
    if (other_status == TFW_E_WIRE && strstr(other_error.text, "no features") != NULL) {
        CHECK(has_no_values(&d, flags, other_done));
        goto end;
    }
    CHECK_EQ(status, other_status);
    CHECK_EQ(done, other_done);
    hash_messages(&d, flags, done, hashes, &value);
    hash_messages(&disguised, flags, done, other_hashes, &other_value);
    CHECK(memcmp(hashes, other_hashes, sizeof hashes) == 0);
    for (size_t i = 0; i < done; i++) {
        check_single(&m, i, flags, &single, hashes[i]);
    }
    if (flags != 0) {
        check_parts(&m, done, how, &single);
        check_parts(&other, done, how, &single);
    }
    check_survey(&m, &other, flags, (choice >> 1) - 1, status, done);
    if (status == TFW_OK) {
        check_found(&m, &d, flags, how);
        check_found(&other, &disguised, flags, how);
    }
end:
    tfwi_decoded_clear(&d);
    tfwi_decoded_clear(&disguised);
    tfwi_decoded_clear(&single);
    free(m.data);
    free(other.data);
}

FUZZ_TARGET(run)
