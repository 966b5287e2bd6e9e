/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a TFRecord file of tf.train.Examples from columns.
 *
 *     cc write_file.c $(pkg-config --cflags --libs tfwire) -o write_file
 *     ./write_file pets.tfrecord
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfwire.h>

enum { NUM_RECORDS = 3, ROOM = 4096 };

/* Two columns: a string and a float per record. The strings lie one after the other; offsets say
 * where each begins and the last one ends. */
static const char names[] = "catdoggoat";
static const int64_t name_offsets[NUM_RECORDS + 1] = {0, 3, 6, 10};
static const float weights[NUM_RECORDS] = {4.5f, 31.0f, 60.0f};

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    const tfw_input columns[] = {
        {.name = "name", .name_len = 4, .kind = TFW_BYTES, .count = 1, .values = names,
         .value_count = NUM_RECORDS, .byte_count = sizeof names - 1, .offsets = name_offsets},
        {.name = "weight", .name_len = 6, .kind = TFW_FLOAT, .count = 1, .values = weights,
         .value_count = NUM_RECORDS, .byte_count = sizeof weights},
    };

    /* Encoding leaves room around each message for the header and the footer of a record, so the
     * messages become records where they are, and all of them are written at once. */
    uint8_t out[ROOM];
    tfw_span spans[NUM_RECORDS];
    size_t done = 0;
    size_t len = 0;
    tfw_error error;
    int status = tfw_encode(columns, 2, 0, NUM_RECORDS, TFW_HEADER_SIZE, TFW_FOOTER_SIZE, out,
                            sizeof out, spans, &done, &len, &error);
    if (status == TFW_OK) {
        status = tfw_frame(out, len, spans, (size_t)done, &error);
    }
    if (status != TFW_OK) {
        fprintf(stderr, "%s: %s\n", tfw_status_name(status), error.text);
        return 1;
    }

    FILE *file = fopen(argv[1], "wb");
    if (file == NULL || fwrite(out, 1, len, file) != len || fclose(file) != 0) {
        perror(argv[1]);
        return 1;
    }
    printf("%s: %llu records, %zu bytes\n", argv[1], (unsigned long long)done, len);
    return 0;
}
