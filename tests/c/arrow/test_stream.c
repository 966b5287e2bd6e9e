/* SPDX-License-Identifier: Apache-2.0 */
/* How streams of arrays end: what get_last_error says, of which file and record. */
#include "columns.h"
#include "records.h"

#include "arrow/abi.h"
#include "tfwire_arrow.h"

#include <errno.h>
#include <stdatomic.h>

extern atomic_long tfwi_test_buffers;

enum { LONG_NAME = 7000 };

/* ---- Streams -------------------------------------------------------------------------------- */

/* A file in memory, and a path that leads to it. */
typedef struct stored {
    file f;
    int fd;
    char path[64];
} stored;

static stored store(file f) {
    stored s = {.f = f, .fd = memfd_create("records", 0)};
    CHECK_EQ(f.len, write(s.fd, f.data, f.len));
    snprintf(s.path, sizeof s.path, "/proc/self/fd/%d", s.fd);
    return s;
}

static void stored_free(stored *s) {
    close(s->fd);
    free(s->f.data);
}

/* A file of one message, and of another that does not fit after it. */
static stored store_two(blob good, blob bad) {
    file f = {0};
    file_append_record(&f, good.data, good.len);
    file_append_record(&f, bad.data, bad.len);
    return store(f);
}

/* A layout of one feature, of a shape. */
static tfw_arrow_layout *layout_of(tfw_feature one, bool is_list, int32_t strings,
                                   const uint64_t *shape, uint64_t rank) {
    const tfw_arrow_field field = {.name = "x", .is_list = is_list, .strings = strings,
                                   .shape = shape, .rank = rank};
    tfw_schema *schema;
    tfw_arrow_layout *layout;
    CHECK_EQ(TFW_OK, tfw_schema_create(&one, 1, SEED, &schema, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_layout_create(&field, 1, is_list ? NULL : schema,
                                             is_list ? schema : NULL,
                                             is_list ? TFW_ARROW_SEQUENCE : 0, &layout, NULL));
    return layout;
}

static int open_stream(const tfw_arrow_layout *layout, const char *path, const char *name,
                       struct ArrowArrayStream **out) {
    const tfw_arrow_stream_options options = {.size = sizeof options, .batch_size = 10,
                                              .paths = &path, .names = &name, .path_count = 1};
    return tfw_arrow_stream_create(layout, &options, out, NULL);
}

/* Reads to the end, and releases all: the records that arrived, and how it ended. */
static int64_t drain(struct ArrowArrayStream *stream, int *out_number, char *out_text) {
    struct ArrowArray array;
    int64_t records = 0;
    while ((*out_number = stream->get_next(stream, &array)) == 0 && array.release != NULL) {
        records += array.length;
        array.release(&array);
    }
    const char *text = *out_number != 0 ? stream->get_last_error(stream) : "";
    CHECK(strlen(text) < LONG_NAME);
    strcpy(out_text, text);
    tfw_arrow_stream_free(stream);
    CHECK_EQ(0, atomic_load(&tfwi_test_buffers));
    return records;
}

/* What a stream of a file says after its first records. */
static void check_says(tfw_arrow_layout *layout, const char *path, int64_t records, int number,
                       const char *expected) {
    static char text[LONG_NAME];
    struct ArrowArrayStream *stream;
    int found;
    CHECK_EQ(TFW_OK, open_stream(layout, path, "a file", &stream));
    tfw_arrow_layout_free(layout);
    CHECK_EQ(records, drain(stream, &found, text));
    CHECK_EQ(number, found);
    CHECK(strcmp(expected, text) == 0);
    if (strcmp(expected, text) != 0) {
        fprintf(stderr, "expected %s\nfound    %s\n", expected, text);
    }
}

/* ---- Records that do not fit ---------------------------------------------------------------- */

static void check_misfit(tfw_feature one, const uint64_t *shape, uint64_t rank, int32_t strings,
                         blob good, blob bad, const char *expected) {
    stored s = store_two(EXAMPLE(entry(one.name, good)), EXAMPLE(entry(one.name, bad)));
    check_says(layout_of(one, false, strings, shape, rank), s.path, 1, EINVAL, expected);
    stored_free(&s);
    blobs_free();
}

static void test_features_that_do_not_fit(void) {
    static const uint64_t shape[] = {2, 1};
    check_misfit(feature("a", TFW_INT64, TFW_DENSE, 2), shape, 2, 0, INTS(1, 2), INTS(1),
                 "a file: record 1: Key: a.  Number of int64 values != expected.  "
                 "Values size: 1 but output shape: [2, 1]");
    check_misfit(feature("a", TFW_FLOAT, TFW_REPEATED, 2), shape, 2, 0, FLOATS(1, 2), FLOATS(1),
                 "a file: record 1: Key: a.  Number of float32 values is not a multiple of stride "
                 "length. Saw 1 values but output shape is: [?,2, 1]");
    check_misfit(feature("a", TFW_BYTES, TFW_VARIABLE, 0), NULL, 0, 0, STRING("x"), INTS(1),
                 "a file: record 1: Key: a.  Data types don't match. Expected type: string, "
                 "Actual type: int64");
    check_misfit(feature("a", TFW_BYTES, TFW_DENSE, 1), NULL, 0, 0, STRING("x"), NOTHING,
                 "a file: record 1: Feature: a (data type: string) is required but could not be "
                 "found.");
    check_misfit(feature("a", TFW_BYTES, TFW_DENSE, 1), NULL, 0, TFW_STRING, STRING("x"),
                 STRING("\xff"),
                 "a file: record 1: Key: x.  A string is not UTF-8; "
                 "binary_as={column: \"large_binary\"} reads bytes");
    check_misfit(feature("a", TFW_INT64, TFW_VARIABLE, 0), NULL, 0, 0, INTS(1), RAW("\x1a\x05"),
                 "a file: record 1: Could not parse example input: "
                 "a field exceeds its message in feature a at byte 10");
}

/* What a terminal would obey is not written, and of long keys not the middle. */
static void test_keys_are_written_safely(void) {
    static const struct {
        const char *key, *shown;
    } keys[] = {
        {"\x1b[31m\x7f\xc2\x9b", "?[31m??"},
        {"\xff\xc3\xa9", "???"},
        {"\xe2\x80\xa7\xe2\x80\x8a\xe2\x81\x9f\xe2\x81\xb0\xe2\x82\xa8",
         "\xe2\x80\xa7\xe2\x80\x8a\xe2\x81\x9f\xe2\x81\xb0\xe2\x82\xa8"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xe2\x80\xae\xe2\x80\x8b\xe2\x81\xa6\xe2\x80\xa6\xe2\x82\x80",
         "???\xe2\x80\xa6\xe2\x82\x80"},
        {"123456789012345678901234567890123456789012345678901234567890",
         "123456789012345678901234567890123456789012345678901234567890"},
        {"12345678901234567890123456789xxxxxabcdefghijklmnopqrstuvwxyz12",
         "12345678901234567890123456789...abcdefghijklmnopqrstuvwxyz12"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "a file: record 1: Feature: %s (data type: int64) is required but could not be "
                 "found.", keys[i].shown);
        check_misfit(feature(keys[i].key, TFW_INT64, TFW_DENSE, 1), NULL, 0, 0, INTS(1), NOTHING,
                     expected);
    }
}

static void check_list_misfit(int32_t layout, blob good, blob bad, const char *expected) {
    stored s = store_two(field(2, good), field(2, bad));
    check_says(layout_of(feature("a", TFW_INT64, layout, 1), true, 0, NULL, 0), s.path, 1, EINVAL,
               expected);
    stored_free(&s);
    blobs_free();
}

static void test_feature_lists_that_do_not_fit(void) {
    const char *kind = "a file: record 1: Feature list: a, step 1.  Data types don't match. "
                       "Expected type: int64, Actual type: float32";
    for (int32_t layout = TFW_DENSE; layout <= TFW_VARIABLE; layout++) {
        check_list_misfit(layout, entry("a", field(1, INTS(1))),
                          entry("a", JOIN(field(1, INTS(1)), field(1, FLOATS(1)))), kind);
    }
    check_list_misfit(TFW_DENSE, entry("a", field(1, INTS(1))), entry("a", field(1, INTS(1, 2))),
                      "a file: record 1: Feature list: a, step 0.  Number of int64 values != "
                      "expected.  Values size: 2 but output shape: []");
    check_list_misfit(TFW_DENSE, entry("a", field(1, INTS(1))), entry("b", NOTHING),
                      "a file: record 1: Feature list 'a' is required but could not be found.");
}

/* ---- Files ---------------------------------------------------------------------------------- */

static tfw_arrow_layout *layout_of_ints(void) {
    return layout_of(feature("a", TFW_INT64, TFW_VARIABLE, 0), false, 0, NULL, 0);
}

static void test_files_that_cannot_be_read(void) {
    const blob message = EXAMPLE(entry("a", INTS(1)));
    stored s = store_two(message, message);
    char expected[200];
    check_says(layout_of_ints(), "/nowhere/at/all", 0, ENOENT,
               "a file: No such file or directory");
    check_says(layout_of_ints(), "/", 0, EINVAL, "a file: not a regular file");
    s.f.data[s.f.len - 1] ^= 1;
    stored flipped = store(s.f);
    snprintf(expected, sizeof expected,
             "a file: record 1 at byte %zu: payload checksum is 0x5078e839 but the footer says "
             "0x5178e839", s.f.ends[0]);
    check_says(layout_of_ints(), flipped.path, 1, EIO, expected);
    CHECK_EQ(0, ftruncate(flipped.fd, (off_t)s.f.len - 2));
    snprintf(expected, sizeof expected,
             "a file: record 1 at byte %zu: record takes 30 bytes but only 28 are left",
             s.f.ends[0]);
    check_says(layout_of_ints(), flipped.path, 1, EIO, expected);
    close(flipped.fd);
    stored_free(&s);
    blobs_free();
}

/* Records are counted even if nothing of them is asked for. */
static void test_no_fields_are_rows_alone(void) {
    const blob message = EXAMPLE(entry("a", INTS(1)));
    static char text[LONG_NAME];
    stored s = store_two(message, message);
    tfw_arrow_layout *layout;
    struct ArrowArrayStream *stream;
    int number;
    CHECK_EQ(TFW_OK,
             tfw_arrow_layout_create(NULL, 0, NULL, NULL, TFW_ARROW_SEQUENCE, &layout, NULL));
    CHECK_EQ(TFW_OK, open_stream(layout, s.path, "a file", &stream));
    tfw_arrow_layout_free(layout);
    CHECK_EQ(2, drain(stream, &number, text));
    CHECK_EQ(0, number);
    stored_free(&s);
    blobs_free();
}

/* ---- Text ----------------------------------------------------------------------------------- */

/* Some consumers end the process at text that is not UTF-8: it is cut between characters. */
static void test_long_texts_are_cut_between_characters(void) {
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static char name[LONG_NAME + 4], text[LONG_NAME];
    tfw_arrow_layout *layout = layout_of_ints();
    for (size_t i = 0; i < 16; i++) {
        const size_t before = i % 4, size = strlen(characters[i / 4]);
        struct ArrowArrayStream *stream;
        int number;
        memset(name, 'n', sizeof name);
        for (size_t at = before; at + size < LONG_NAME; at += size) {
            memcpy(name + at, characters[i / 4], size + 1);
        }
        const tfw_arrow_stream_options with_text = {
            .size = sizeof with_text, .batch_size = 1, .message = name, .os_errno = EIO};
        for (int given = 0; given < 2; given++) {
            CHECK_EQ(TFW_OK, given ? tfw_arrow_stream_create(layout, &with_text, &stream, NULL)
                                   : open_stream(layout, "/nowhere/at/all", name, &stream));
            CHECK_EQ(0, drain(stream, &number, text));
            CHECK_EQ(given ? EIO : ENOENT, number);
            CHECK(strlen(text) > 6000 && (strlen(text) - before) % size == 0);
            CHECK(memcmp(text, name, strlen(text)) == 0);
        }
    }
    tfw_arrow_layout_free(layout);
}

/* A text of its own for a type that has no memory, also before an error that is to come. */
static void test_every_failure_has_a_text(void) {
    tfw_arrow_layout *layout = layout_of_ints();
    const tfw_arrow_stream_options options = {.size = sizeof options, .batch_size = 1,
                                              .message = "", .os_errno = EIO};
    struct ArrowArrayStream *stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
    CHECK_EQ(TFW_OK, tfw_arrow_stream_create(layout, &options, &stream, NULL));
    tfwi_test_fail_allocation = 0;
    CHECK_EQ(ENOMEM, stream->get_schema(stream, &schema));
    tfwi_test_fail_allocation = -1;
    CHECK(strcmp("out of memory", stream->get_last_error(stream)) == 0);
    CHECK_EQ(EIO, stream->get_next(stream, &array));
    CHECK(strcmp("", stream->get_last_error(stream)) == 0);
    tfw_arrow_stream_free(stream);
    tfw_arrow_layout_free(layout);
}

/* ---- Options -------------------------------------------------------------------------------- */

static void test_options_that_cannot_be_are_refused(void) {
    const tfw_arrow_stream_options good = {.size = sizeof good, .batch_size = 1};
    tfw_arrow_stream_options bad[] = {good, good, good, good, good, good};
    tfw_arrow_layout *layout = layout_of_ints();
    struct ArrowArrayStream *stream;
    bad[0].size--;
    bad[1].batch_size = 0;
    bad[2].path_count = (size_t)INT32_MAX + 1;
    bad[3].message = "no number";
    bad[4].message = "and files";
    bad[4].os_errno = EIO;
    bad[4].path_count = 1;
    bad[5].flags = 1u << 31;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_stream_create(layout, &bad[i], &stream, NULL));
        CHECK(stream == NULL);
    }
    CHECK_EQ(TFW_E_ARGUMENT, tfw_arrow_stream_create(layout, NULL, &stream, NULL));
    CHECK_EQ(TFW_OK, tfw_arrow_stream_create(layout, &good, &stream, NULL));
    stream->release(stream); /* what is left is the struct */
    CHECK(stream->release == NULL);
    tfw_arrow_stream_free(stream);
    tfw_arrow_stream_free(NULL);
    tfw_arrow_layout_free(layout);
}

int main(void) {
    RUN(test_features_that_do_not_fit);
    RUN(test_keys_are_written_safely);
    RUN(test_feature_lists_that_do_not_fit);
    RUN(test_files_that_cannot_be_read);
    RUN(test_no_fields_are_rows_alone);
    RUN(test_long_texts_are_cut_between_characters);
    RUN(test_every_failure_has_a_text);
    RUN(test_options_that_cannot_be_are_refused);
    return check_report("streams");
}
