/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_parse: schemas of every kind and layout, batches, flags, failing memory; and tfw_parse_one,
 * which gives what tfw_parse gives of each message. */
#include "common/parsing.h"

/* Dense strings of the columns of one record, laid side by side. */
static void check_strings(const table *t, const uint8_t *strings, const int64_t *ends) {
    int64_t begin = 0;
    for (size_t i = 0; i < t->specs->count; i++) {
        const tfw_feature *f = &t->specs->features[i];
        const tfw_column *c = &t->taken[i];
        for (uint64_t k = 0; f->kind == TFW_BYTES && f->layout == TFW_DENSE && k < f->count; k++) {
            int64_t len = c->offsets[k + 1] - c->offsets[k];
            CHECK_EQ(len, *ends - begin);
            CHECK(check_failures != 0 || memcmp((const uint8_t *)c->values + c->offsets[k],
                                                strings + begin, (size_t)len) == 0);
            begin = *ends++;
        }
    }
}

/* Parses a message alone, both ways; defaults may take more bytes than the message. */
static void check_one(const specs *s, const messages *one, unsigned flags) {
    enum { MAX_STRINGS = 5 * MAX_FEATURES, DEFAULT_BYTES = 13 * MAX_FEATURES };
    table expected, found;
    int64_t ends[MAX_STRINGS];
    size_t capacity = one->len + DEFAULT_BYTES;
    uint8_t *strings = fuzz_alloc(capacity);
    tfw_error error = {.status = TFW_OK}, other = {.status = TFW_OK};
    table_init(&expected, s, false, 1);
    table_init(&found, s, false, 1);
    int status = tfw_parse(expected.columns, one->data, one->len, one->spans, 1,
                           flags | TFW_SINGLE, NULL, &error);
    CHECK_EQ(status, tfw_parse_one(found.columns, one->data, one->len, flags, strings, capacity,
                                   ends, &other));
    CHECK(memcmp(&error, &other, sizeof error) == 0);
    table_take(&expected);
    table_take(&found);
    check_tables(&expected, &found);
    if (status == TFW_OK) {
        check_strings(&found, strings, ends);
    }
    table_free(&expected);
    table_free(&found);
    free(strings);
}

static void run(input *in) {
    input again = *in;
    run_parsing(in, false);
    unsigned flags = input_byte(&again) & TFW_EMPTY_IS_MISSING;
    specs s;
    input_byte(&again);
    specs_init(&s, &again, false);
    messages m = messages_of(&again);
    messages one = messages_single(&m, 0);
    check_one(&s, &one, flags);
    free(m.data);
    free(one.data);
    tfw_schema_free(s.schema);
}

FUZZ_TARGET(run)
