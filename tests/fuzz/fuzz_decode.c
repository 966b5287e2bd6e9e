/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_decode: the pickle is well-formed; a batch gives what its messages give one by one; another
 * encoding gives the same bytes; and the value of a key is what tfw_parse makes of it. tfw_survey_add
 * finds the same messages well-formed, and tfw_shorten keeps to its limits. */
#include "common/messages.h"
#include "common/pickle.h"

/* Decodes with the failing allocation, if any, and then again. */
static int decode(const messages *m, unsigned flags, long failing, tfw_dicts *dicts,
                  size_t *out_done, tfw_error *error) {
    tfwi_test_fail_allocation = failing;
    int status = tfw_decode(m->data, m->len, m->spans, m->count, flags, dicts, out_done, error);
    if (status == TFW_E_MEMORY) {
        CHECK(tfwi_test_fail_allocation == -1 && *out_done == 0 && dicts->pickle_len == 0);
        status = tfw_decode(m->data, m->len, m->spans, m->count, flags, dicts, out_done, error);
    }
    tfwi_test_fail_allocation = -1;
    CHECK(status == TFW_OK || status == TFW_E_WIRE);
    CHECK(dicts->pickle != NULL && dicts->int64s != NULL);
    CHECK(dicts->floats != NULL && dicts->buffers != NULL);
    if (status == TFW_OK) {
        CHECK_EQ(m->count, *out_done);
    } else {
        CHECK(*out_done < m->count && error->record == (int64_t)*out_done);
        CHECK(error->offset >= 0 && (uint64_t)error->offset <= m->spans[*out_done].length);
    }
    return status;
}

static void check_same(const tfw_dicts *a, const tfw_dicts *b) {
    CHECK_EQ(a->pickle_len, b->pickle_len);
    CHECK_EQ(a->int64_count, b->int64_count);
    CHECK_EQ(a->float_count, b->float_count);
    CHECK_EQ(a->buffer_count, b->buffer_count);
    if (check_failures == 0) {
        CHECK(memcmp(a->pickle, b->pickle, (size_t)a->pickle_len) == 0);
        CHECK(memcmp(a->int64s, b->int64s, (size_t)a->int64_count * 8) == 0);
        CHECK(memcmp(a->floats, b->floats, (size_t)a->float_count * 4) == 0);
        CHECK(memcmp(a->buffers, b->buffers, (size_t)a->buffer_count * 24) == 0);
    }
}

/* The hash that the unpickler gives to the values of a column. */
static uint64_t hash_of_column(const tfw_column *c, int32_t kind) {
    if (kind == TFW_BYTES && c->value_count == 0) {
        return NODE_BUFFER;
    }
    if (kind != TFW_BYTES) {
        return fuzz_hash((uint64_t)kind, c->values, (size_t)c->byte_count);
    }
    uint64_t hash = NODE_LIST;
    for (uint64_t i = 0; i < c->value_count; i++) {
        const uint8_t *s = (const uint8_t *)c->values + c->offsets[i];
        size_t len = (size_t)(c->offsets[i + 1] - c->offsets[i]);
        hash = fuzz_hash_number(hash, fuzz_hash(NODE_BYTES, s, len));
    }
    return hash;
}

/* Parses the key's values as of one kind and compares. */
static void check_kind(const messages *one, const unpickler *u, int32_t kind) {
    tfw_feature feature = {
        .name = u->key, .name_len = strlen(u->key), .kind = kind, .layout = TFW_VARIABLE};
    tfw_schema *schema = NULL;
    tfw_columns *columns = NULL;
    tfw_column column;
    CHECK_EQ(TFW_OK, tfw_schema_create(&feature, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    int status = tfw_parse(columns, one->data, one->len, one->spans, 1, 0, NULL, NULL);
    CHECK_EQ(TFW_OK, tfw_columns_take(columns, 0, &column, NULL));
    const node *value = &u->value;
    bool kindless = u->has_value && value->type == NODE_LIST && value->len == 0;
    int64_t is = u->has_value && value->type == NODE_BUFFER ? u->dicts->buffers[3 * value->len]
                                                            : TFW_BYTES;
    if (!u->has_value) {
        CHECK_EQ(TFW_OK, status);
        CHECK_EQ(0, column.value_count);
    } else if (kindless) {
        CHECK_EQ(TFW_OK, status);
        CHECK_EQ(0, column.value_count);
    } else if (status == TFW_OK) {
        CHECK_EQ(kind, is);
        CHECK(value->hash == hash_of_column(&column, kind));
    } else {
        CHECK_EQ(TFW_E_KIND, status);
        CHECK(is != kind);
    }
    tfw_free(column.values);
    tfw_free(column.offsets);
    tfw_free(column.splits);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
}

/* Message i alone, in memory that others have used; an array may have been kept. */
static void check_single(const messages *m, size_t i, unsigned flags, tfw_dicts *dicts,
                         uint64_t expected) {
    messages one = messages_single(m, i);
    tfw_error error;
    size_t done;
    uint64_t hash = 0;
    unpickler u;
    CHECK_EQ(TFW_OK, decode(&one, flags, -1, dicts, &done, &error));
    unpickle(dicts, "a", &hash, done, &u);
    CHECK(expected == hash);
    for (int32_t kind = TFW_BYTES; kind <= TFW_INT64 && flags == 0; kind++) {
        check_kind(&one, &u, kind);
    }
    if (expected % 4 == 0) {
        tfw_free(dicts->int64s);
        dicts->int64s = NULL;
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

static uint64_t hash_of(const uint8_t *message, size_t len, tfw_dicts *dicts) {
    const tfw_span span = {0, len};
    size_t done;
    uint64_t hash = 0;
    unpickler u;
    CHECK_EQ(TFW_OK, tfw_decode(message, len, &span, 1, TFW_SEQUENCE, dicts, &done, NULL));
    unpickle(dicts, "a", &hash, done, &u);
    return hash;
}

/* A message with limits: it decodes to no more than them; without any, to the same. */
static void check_shortened(const messages *one, tfw_extent most, tfw_dicts *dicts) {
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
        CHECK(hash_of(message, len, dicts) == hash_of(out, out_len, dicts));
    }
    free(cuts);
    free(out);
}

static void check_parts(const messages *m, size_t done, uint8_t how, tfw_dicts *dicts) {
    for (size_t i = 0; i < done; i++) {
        messages one = messages_single(m, i);
        check_shortened(&one, (tfw_extent){1 << 12, UINT64_MAX, UINT64_MAX}, dicts);
        check_shortened(&one, (tfw_extent){how % 5, how % 7, how}, dicts);
        check_shortened(&one, (tfw_extent){how % 3 + 1, how, how % 64}, dicts);
        free(one.data);
    }
}

/* sequence and failing allocation, disguise, messages. */
static void run(input *in) {
    uint8_t choice = input_byte(in), how = input_byte(in);
    unsigned flags = (choice & 1) != 0 ? TFW_SEQUENCE : 0;
    messages m = messages_of(in);
    messages other =
        messages_disguised(&m, flags != 0 ? LEVEL_SEQUENCE : LEVEL_EXAMPLE, how);
    tfw_dicts dicts = {.pickle = NULL}, disguised = {.pickle = NULL}, single = {.pickle = NULL};
    tfw_error error, other_error;
    size_t done = 0, other_done = 0;
    uint64_t hashes[MAX_MESSAGES] = {0};
    unpickler u;
    int status = decode(&m, flags, -1, &dicts, &done, &error);
    CHECK_EQ(status, decode(&other, flags, (choice >> 1) - 1, &disguised, &other_done,
                            &other_error));
    CHECK_EQ(done, other_done);
    unpickle(&dicts, "a", hashes, done, &u);
    check_same(&dicts, &disguised);
    for (size_t i = 0; i < done; i++) {
        check_single(&m, i, flags, &single, hashes[i]);
    }
    if (flags != 0) {
        check_parts(&m, done, how, &single);
        check_parts(&other, done, how, &single);
    }
    check_survey(&m, &other, flags, (choice >> 1) - 1, status, done);
    tfw_dicts_free(&dicts);
    tfw_dicts_free(&disguised);
    tfw_dicts_free(&single);
    free(m.data);
    free(other.data);
}

FUZZ_TARGET(run)
