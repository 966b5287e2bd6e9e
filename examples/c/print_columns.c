/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file that write_file.c writes and prints its columns.
 *
 *     cc print_columns.c $(pkg-config --cflags --libs tfwire) -o print_columns
 *     ./print_columns pets.tfrecord
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tfwire.h>

enum { NAME = 0, WEIGHT = 1, NUM_FEATURES = 2, BATCH = 1024 };

static const tfw_feature features[NUM_FEATURES] = {
    [NAME] = {.name = "name", .name_len = 4, .kind = TFW_BYTES, .layout = TFW_DENSE, .count = 1},
    [WEIGHT] = {.name = "weight", .name_len = 6, .kind = TFW_FLOAT, .layout = TFW_DENSE,
                .count = 1},
};

static int fail(const char *path, int status, const tfw_error *error) {
    fprintf(stderr, "%s: record %lld at byte %lld: %s: %s\n", path, (long long)error->record,
            (long long)error->offset, tfw_status_name(status), error->text);
    return 1;
}

/* The parser wrote the numbers to weights. The columns hold the strings until the next call. */
static int print(tfw_columns *columns, const float *weights, tfw_error *error) {
    tfw_column names;
    int status = tfw_columns_peek(columns, NAME, &names, error);
    if (status != TFW_OK) {
        return status;
    }
    for (uint64_t i = 0; i < tfw_columns_records(columns); i++) {
        const char *name = (const char *)names.values + names.offsets[i];
        printf("%.*s %g\n", (int)(names.offsets[i + 1] - names.offsets[i]), name,
               (double)weights[i]);
    }
    return TFW_OK;
}

/* Batch by batch: the reader finds and verifies records, the parser fills the columns. */
static int print_records(tfw_reader *reader, tfw_columns *columns, tfw_error *error) {
    static float weights[BATCH];
    tfw_batch batch = {.size = sizeof batch};
    int status = tfw_columns_bind(columns, WEIGHT, weights, BATCH, error);
    while (status == TFW_OK && (status = tfw_reader_next(reader, BATCH, &batch, error)) == TFW_OK) {
        tfw_columns_clear(columns);
        status = tfw_parse(columns, batch.data, (size_t)batch.data_len, batch.spans,
                           (size_t)batch.count, 0, NULL, error);
        if (status == TFW_OK) {
            status = print(columns, weights, error);
        }
    }
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    const tfw_reader_options options = {.size = sizeof options, .fd = fd};
    tfw_error error;
    tfw_schema *schema = NULL;
    tfw_columns *columns = NULL;
    tfw_reader *reader = NULL;
    int status = tfw_schema_create(features, NUM_FEATURES, 0, &schema, &error);
    if (status == TFW_OK) {
        status = tfw_columns_create(schema, 0, &columns, &error);
    }
    if (status == TFW_OK) {
        status = tfw_reader_create(&options, &reader, &error);
    }
    if (status == TFW_OK) {
        status = print_records(reader, columns, &error);
    }
    tfw_reader_free(reader);
    tfw_columns_free(columns);
    tfw_schema_free(schema);
    close(fd);
    return status == TFW_END ? 0 : fail(argv[1], status, &error);
}
