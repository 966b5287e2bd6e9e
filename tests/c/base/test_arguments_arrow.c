/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tfwire_arrow.h with every flag, with nothing, and with what does not fit. */
#include "arguments.h"
#include "arrow_records.h"

static tfw_schema *schema_of(uint64_t count) {
    const tfw_feature features[] = {
        {.name = "n", .name_len = 1, .kind = TFW_INT64, .layout = TFW_DENSE, .count = count},
        {.name = "v", .name_len = 1, .kind = TFW_INT64, .layout = TFW_VARIABLE},
        {.name = "s", .name_len = 1, .kind = TFW_BYTES, .layout = TFW_VARIABLE},
    };
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, COUNT(features), SEED, &schema, NULL));
    return schema;
}

/* The status of a layout of one field. */
static int layout_with(const tfw_arrow_field *field, uint64_t count, unsigned flags) {
    tfw_schema *schema = schema_of(count);
    tfw_arrow_layout *layout;
    const int status = tfw_arrow_layout_create(field, 1, schema, NULL, flags, &layout, NULL);
    CHECK_EQ(status == TFW_OK, layout != NULL);
    tfw_arrow_layout_free(layout);
    if (status != TFW_OK) {
        tfw_schema_free(schema);
    }
    return status;
}

static void unknown_flags_are_refused(void) {
    const tfw_arrow_field field = {.name = "n"};
    const unsigned known = TFW_ARROW_POSITIONS | TFW_ARROW_SEQUENCE | TFW_ARROW_SAMPLED;
    for (unsigned bit = 0; bit < 32; bit++) {
        const unsigned flag = 1u << bit;
        CHECK_EQ((flag & ~known) != 0 ? TFW_E_ARGUMENT : TFW_OK, layout_with(&field, 1, flag));
    }
}

static void fields_must_fit_the_schema(void) {
    static const uint64_t two = 2, three = 3, huge[] = {1u << 30, UINT64_MAX}, strings = 2;
    const tfw_partition numbers = {.kind = TFW_ROW_SPLITS, .column = 1};
    const tfw_partition wrong = {.kind = TFW_ROW_SPLITS, .column = 0};
    const tfw_partition unknown = {.kind = 6, .column = 1};
    const tfw_partition empty = {.kind = TFW_UNIFORM_ROW_LENGTH};
    const struct {
        tfw_arrow_field field;
        int status;
    } cases[] = {
        {{.name = "n", .shape = &two, .rank = 1}, TFW_OK},
        {{.name = "n"}, TFW_E_ARGUMENT},
        {{.name = "n", .shape = &three, .rank = 1}, TFW_E_ARGUMENT},
        {{.name = "n", .shape = huge, .rank = 2}, TFW_E_ARGUMENT},
        {{.name = "n", .is_list = 1, .shape = &two, .rank = 1}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1}, TFW_OK},
        {{.name = "v", .column = 3}, TFW_E_ARGUMENT},
        {{.name = "v", .column = UINT64_MAX}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .strings = 4}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .strings = -1}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .partitions = &numbers, .partition_count = 1}, TFW_OK},
        {{.name = "v", .column = 1, .partitions = &wrong, .partition_count = 1}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .partitions = &unknown, .partition_count = 1}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .partitions = &empty, .partition_count = 1}, TFW_E_ARGUMENT},
        {{.name = "v", .column = 1, .index_columns = &strings, .index_count = 1}, TFW_E_ARGUMENT},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_EQ(cases[i].status, layout_with(&cases[i].field, 2, 0));
    }
}

static int stream_with(const tfw_arrow_stream_options *options) {
    tfw_schema *schema = schema_of(1);
    tfw_arrow_layout *layout;
    struct ArrowArrayStream *stream;
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(NULL, 0, schema, NULL, 0, &layout, NULL));
    const int status = tfw_arrow_stream_create(layout, options, &stream, NULL);
    CHECK_EQ(status == TFW_OK, stream != NULL);
    tfw_arrow_stream_free(stream);
    tfw_arrow_layout_free(layout);
    return status;
}

static void options_of_streams_are_checked(void) {
    const tfw_arrow_stream_options good = {.size = sizeof good, .batch_size = 1};
    const char *paths[] = {"a"};
    tfw_arrow_stream_options options = good;
    CHECK_EQ(TFW_OK, stream_with(&options));
    CHECK_EQ(TFW_E_ARGUMENT, stream_with(NULL));
    for (unsigned bit = 0; bit < 32; bit++) {
        options.flags = 1u << bit;
        CHECK_EQ(options.flags == TFW_NO_DATA_CRC ? TFW_OK : TFW_E_ARGUMENT,
                 stream_with(&options));
    }
    options = good;
    options.size--;
    CHECK_EQ(TFW_E_ARGUMENT, stream_with(&options));
    options = good;
    options.batch_size = 0;
    CHECK_EQ(TFW_E_ARGUMENT, stream_with(&options));
    options = good;
    options.message = "wrong";
    CHECK_EQ(TFW_E_ARGUMENT, stream_with(&options));
    options.os_errno = 5;
    CHECK_EQ(TFW_OK, stream_with(&options));
    options.paths = options.names = paths;
    options.path_count = 1;
    CHECK_EQ(TFW_E_ARGUMENT, stream_with(&options));
}

static void shares_at_the_edges_stay_inside(void) {
    tfw_schema *schema = schema_of(1);
    tfw_arrow_layout *layout;
    struct ArrowArray *array, *shared;
    struct ArrowSchema *type;
    const tfw_arrow_field values = {.name = "v", .column = 1};
    const blob message = EXAMPLE(entry("n", INTS(1)));
    file f = {0};
    file_append_record(&f, message.data, message.len);
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(&values, 1, schema, NULL, 0, &layout, NULL));
    tfw_chunk *chunk = chunk_of(schema, NULL, &f);
    CHECK_EQ(TFW_OK, tfw_arrow_chunk_create(layout, chunk, 0, 0, NULL, &array, NULL));
    FOR_EDGES(i) {
        FOR_EDGES(k) {
            const bool inside = EDGES[i] == 0 && EDGES[k] == 0;
            CHECK_EQ(inside ? TFW_OK : TFW_E_ARGUMENT,
                     tfw_arrow_array_share(array, size_edge(i), size_edge(k), &shared, NULL));
            tfw_arrow_array_free(shared);
        }
    }
    CHECK_EQ(TFW_OK, tfw_arrow_schema_create(layout, &type, NULL));
    tfw_arrow_schema_free(type);
    tfw_arrow_array_free(array);
    tfw_arrow_array_free(NULL);
    tfw_arrow_schema_free(NULL);
    tfw_arrow_stream_free(NULL);
    tfw_chunk_release(chunk);
    tfw_arrow_layout_free(layout);
    tfw_arrow_layout_free(NULL);
    free(f.data);
    blobs_free();
}

int main(void) {
    RUN(unknown_flags_are_refused);
    RUN(fields_must_fit_the_schema);
    RUN(options_of_streams_are_checked);
    RUN(shares_at_the_edges_stay_inside);
    return check_report("arguments of Arrow functions");
}
