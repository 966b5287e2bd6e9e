/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with numbers at the edges, and with nothing; see test_arguments.c. */
#include "arguments.h"
#include "arrow_columns.h"

static void nothing_is_no_table(void) {
    struct ArrowSchema schema = {0};
    struct ArrowArray array = {0};
    struct ArrowArrayStream stream = {0};
    tfw_import *import;
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, NULL, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(NULL, &schema, &array, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create(&stream, NULL, NULL, &import, NULL));
    CHECK(import == NULL);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create_column(NULL, NULL, NULL, &import, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_import_create_column(&stream, NULL, NULL, &import, NULL));
    CHECK(import == NULL);
    tfw_import_free(NULL);
}

/* A column of which a length, an offset or a room is at an edge. */
static void columns_at_the_edges(void) {
    static const int64_t number[1];
    const void *buffers[2] = {NULL, number};
    FOR_EDGES(i) {
        /* An array alone says how many records there are. */
        for (int field = import_as_column ? 1 : 0; field < 4; field++) {
            const int64_t edge = (int64_t)EDGES[i];
            struct ArrowSchema type = type_of("l", NULL);
            struct ArrowArray array = array_of(field == 0 ? edge : 1, 2, buffers, NULL);
            imported t;
            array.offset = field == 1 ? edge : 0;
            array.null_count = field == 2 ? edge : 0;
            const bool is_read = field != 1 || edge <= 0 || edge > INT64_MAX / 64;
            int status = is_read ? import_one(&t, &type, &array, 1,
                                              field == 3 ? size_edge(i) : 100)
                                 : TFW_OK;
            CHECK(status == TFW_OK || status == TFW_E_ARGUMENT);
            if (is_read) {
                CHECK(strcmp("", tfw_import_name(t.import, size_edge(i))) == 0 ||
                      EDGES[i] == 0);
                CHECK(tfw_import_field(t.import, size_edge(i)) == NULL);
                CHECK(strcmp("", tfw_import_message(t.import)) == 0);
                const char *value;
                size_t len;
                const tfw_level *levels;
                tfw_import_levels(t.import, size_edge(i), &levels, &len);
                CHECK(levels == NULL && len == 0);
                CHECK_EQ(size_edge(i) == 0 ? TFW_OK : TFW_E_ARGUMENT,
                         tfw_import_metadata(t.import, size_edge(i), "", &value, &len, NULL));
                CHECK(value == NULL && len == 0);
                CHECK_EQ(size_edge(i) == 0 ? TFW_OK : TFW_E_ARGUMENT,
                         tfw_import_nest(t.import, size_edge(i), NULL));
                CHECK_EQ(TFW_E_ARGUMENT, tfw_import_schema(t.import, &t.columns, NULL));
                status = tfw_import_next(t.import, 1, &t.inputs, &t.records, NULL);
                CHECK(status == TFW_END || status == TFW_E_ARGUMENT);
                tfw_import_free(t.import);
            }
        }
    }
}

/* Pairs of lengths and texts, as long as they say. */
static void metadata_of_columns(void) {
    static const int64_t number[1];
    const struct {
        int32_t pairs, key_len;
        char key[4]; /* without a zero at the end */
        int32_t value_len;
        char value[4];
    } good = {1, 4, {'n', 'a', 'm', 'e'}, 4, {'t', 'e', 'x', 't'}},
      no_key = {1, -1, {'n', 'a', 'm', 'e'}, 4, {'t', 'e', 'x', 't'}},
      no_value = {1, 4, {'n', 'a', 'm', 'e'}, -1, {'t', 'e', 'x', 't'}},
      none = {-1, 4, {'n', 'a', 'm', 'e'}, 4, {'t', 'e', 'x', 't'}};
    const void *all[] = {NULL, &good, &no_key, &no_value, &none};
    for (size_t i = 0; i < 5; i++) {
        struct ArrowSchema type = type_of("l", NULL);
        struct ArrowArray array = array_of(1, 2, BUFFERS(NULL, number), NULL);
        imported t;
        const char *value;
        size_t len;
        type.metadata = all[i];
        CHECK_EQ(TFW_OK, import_one(&t, &type, &array, 1, 100));
        CHECK_EQ(i < 2 ? TFW_OK : TFW_E_ARGUMENT,
                 tfw_import_metadata(t.import, 0, "other", &value, &len, NULL));
        CHECK(value == NULL && len == 0);
        if (i < 2) {
            CHECK_EQ(TFW_OK, tfw_import_metadata(t.import, 0, "name", &value, &len, NULL));
            CHECK_EQ(i == 1 ? 4 : 0, len);
            CHECK(len == 0 || memcmp("text", value, 4) == 0);
        }
        tfw_import_free(t.import);
    }
}

int main(void) {
    RUN(nothing_is_no_table);
    RUN(metadata_of_columns);
    RUN(columns_at_the_edges);
    import_as_column = true;
    RUN(columns_at_the_edges);
    return check_report("arguments of tables");
}
