/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: what is refused, that everything is copied, that every key is found. */
#include "check.h"
#include "parse/schema.h"

static tfw_feature dense(const char *name, int32_t kind, uint64_t count) {
    return (tfw_feature){.name = name, .name_len = strlen(name), .kind = kind,
                         .layout = TFW_DENSE, .count = count};
}

static int create(const tfw_feature *features, size_t count, tfw_error *error) {
    tfw_schema *schema;
    int status = tfw_schema_create(features, count, SEED, &schema, error);
    CHECK((schema != NULL) == (status == TFW_OK));
    tfw_schema_free(schema);
    return status;
}

static void refused(tfw_feature bad) {
    tfw_feature features[2] = {dense("good", TFW_INT64, 1), bad};
    tfw_error error;
    CHECK_EQ(TFW_E_SCHEMA, create(features, 2, &error));
    CHECK_EQ(TFW_E_SCHEMA, error.status);
    CHECK_EQ(1, error.feature);
    CHECK(error.text[0] != 0);
    CHECK_EQ(TFW_E_SCHEMA, create(features, 2, NULL));
}

static void test_invalid_features_are_refused(void) {
    tfw_feature bad = dense("good", TFW_FLOAT, 1);
    refused(bad); /* a key twice */
    refused(dense("a", TFW_NONE, 1));
    refused(dense("a", 4, 1));
    bad = dense("a", TFW_INT64, 1);
    bad.layout = 0;
    refused(bad);
    bad.layout = 4;
    refused(bad);
    refused(dense("a", TFW_INT64, UINT64_MAX));
    bad = dense("a", TFW_INT64, 1);
    bad.name_len = INT32_MAX;
    refused(bad);
    bad.name = NULL;
    bad.name_len = 1;
    refused(bad);
}

static void test_defaults_that_do_not_fit_are_refused(void) {
    const int64_t decreasing[3] = {0, 2, 1}, negative[3] = {-1, 0, 1};
    tfw_feature bad = dense("a", TFW_BYTES, 2);
    bad.has_default = 1;
    bad.default_values = "xyz";
    refused(bad); /* no offsets */
    bad.default_offsets = decreasing;
    refused(bad);
    bad.default_offsets = negative;
    refused(bad);
    bad = dense("a", TFW_INT64, 1);
    bad.layout = TFW_VARIABLE;
    bad.has_default = 1;
    refused(bad);
}

static void test_sizes_that_overflow_together_are_refused(void) {
    enum { COUNT = 40 };
    tfw_feature features[COUNT];
    tfw_error error;
    const float value = 0;
    for (size_t i = 0; i < COUNT; i++) { /* each default has its greatest size; none is looked at */
        features[i] = dense("name", TFW_FLOAT, SIZE_MAX / 2 / sizeof(int64_t));
        features[i].has_default = 1;
        features[i].default_values = &value;
    }
    CHECK_EQ(TFW_E_SCHEMA, create(features, COUNT, &error));
    CHECK_EQ(3, error.feature);
}

static void test_no_features_are_a_schema(void) {
    CHECK_EQ(TFW_OK, create(NULL, 0, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, create(NULL, 1, NULL));
    tfw_schema_free(NULL);
}

static void test_everything_is_copied(void) {
    char name[] = "key";
    int64_t numbers[2] = {7, -8}, offsets[3] = {1, 1, 3};
    char strings[] = "xyz";
    tfw_feature features[2] = {dense(name, TFW_INT64, 2), dense("s", TFW_BYTES, 2)};
    features[0].has_default = features[1].has_default = 1;
    features[0].default_values = numbers;
    features[1].default_values = strings;
    features[1].default_offsets = offsets;
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, 2, SEED, &schema, NULL));
    memset(name, 0, sizeof name);
    memset(numbers, 0, sizeof numbers);
    memset(offsets, 0, sizeof offsets);
    memset(strings, 0, sizeof strings);
    memset(features, 0, sizeof features);
    CHECK_EQ(0, tfwi_schema_find(schema, (const uint8_t *)"key", 3));
    const int64_t *copied = schema->features[0].default_values;
    CHECK_EQ(7, copied[0]);
    CHECK_EQ(-8, copied[1]);
    const tfw_feature *s = &schema->features[1];
    CHECK_EQ(0, s->default_offsets[0]);
    CHECK_EQ(0, s->default_offsets[1]);
    CHECK_EQ(2, s->default_offsets[2]);
    CHECK(memcmp(s->default_values, "yz", 2) == 0);
    tfw_schema_free(schema);
}

/* Keys of every length, many of them alike, and keys that are not there. */
static void test_every_key_is_found_and_no_other(void) {
    enum { N = 700 };
    static char names[N][N];
    static tfw_feature features[N];
    for (size_t i = 0; i < N; i++) {
        memset(names[i], 'k', i);
        features[i] = dense("", TFW_INT64, 1);
        features[i].name = names[i];
        features[i].name_len = i; /* the empty key is one */
    }
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, N, SEED, &schema, NULL));
    for (size_t i = 0; i < N; i++) {
        CHECK_EQ(i, tfwi_schema_find(schema, (const uint8_t *)names[i], i));
        if (i > 0) {
            names[i][i / 2] = 'x';
            CHECK_EQ(TFWI_NOT_FOUND, tfwi_schema_find(schema, (const uint8_t *)names[i], i));
        }
    }
    tfw_schema_free(schema);
}

static void test_every_failing_allocation_is_reported(void) {
#ifdef TFW_TEST_FAULTS
    tfw_feature feature = dense("a", TFW_INT64, 1);
    tfw_error error;
    long n = 0;
    for (;; n++) {
        tfwi_test_fail_allocation = n;
        int status = create(&feature, 1, &error);
        if (status == TFW_OK) {
            break;
        }
        CHECK_EQ(TFW_E_MEMORY, status);
        CHECK_EQ(TFW_E_MEMORY, error.status);
    }
    tfwi_test_fail_allocation = -1;
    CHECK(n >= 5);
#endif
}

int main(void) {
    RUN(test_invalid_features_are_refused);
    RUN(test_defaults_that_do_not_fit_are_refused);
    RUN(test_sizes_that_overflow_together_are_refused);
    RUN(test_no_features_are_a_schema);
    RUN(test_everything_is_copied);
    RUN(test_every_key_is_found_and_no_other);
    RUN(test_every_failing_allocation_is_reported);
    return check_report("schema");
}
