/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of arrays that read plain files while they are consumed. No function needs more than the
 * stream itself: consumers call them from any thread, without an interpreter.
 *
 * A call of get_next collects the records of a batch in columns, file after file, and exports them.
 * An error is kept in errno_value and message. It is reported once the records before it were
 * delivered, and again by every later call. */
#include "arrow/stream.h"
#include "parse/columns.h"
#include "base/system.h"
#include "records/read_at.h"
#include "records/window.h"

#include <errno.h>

typedef struct stream {
    tfw_arrow_layout *layout;
    tfw_columns *context;
    tfw_columns *lists;
    size_t batch_size;
    uint64_t max_record_size;
    uint32_t flags;
    char **paths;
    char **names;
    size_t path_count;
    struct ArrowArray *arrays; /* delivered first */
    size_t array_count;
    size_t next_array;

    size_t file; /* being read; path_count: none is left */
    int fd;
    tfw_reader *reader; /* NULL: the file is not open */
    bool is_expected;   /* whether the columns were told how many records come */

    /* Of the records in the columns. */
    TFWI_ARRAY(int32_t) files;
    tfwi_int64s numbers;
    tfwi_int64s offsets;
    size_t records;

    int errno_value; /* 0: nothing has ended the stream early */
    char message[TFWI_MESSAGE_SIZE];
    const char *told; /* of the last call that failed */
} stream;

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail(stream *s, const tfw_error *error, size_t file, bool by_field) {
    const char *name = file < s->path_count ? s->names[file] : "input";
    s->errno_value = tfwi_stream_message(s->message, error, name, s->layout, by_field);
}

static void fail_memory(stream *s) {
    const tfw_error error = {.status = TFW_E_MEMORY};
    fail(s, &error, s->file, false);
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void close_file(stream *s) {
    tfw_reader_free(s->reader);
    tfwi_system_close(s->fd);
    s->reader = NULL;
    s->fd = -1;
}

/* Opens the next file. */
static bool open_file(stream *s) {
    tfw_error error;
    int status = tfwi_open_file(s->paths[s->file], &s->fd, &error);
    if (status == TFW_OK) {
        const tfw_reader_options options = {
            .size = sizeof options,
            .max_record_size = s->max_record_size,
            .fd = s->fd,
            .flags = s->flags,
            .on_corrupt = TFW_CORRUPT_RAISE,
        };
        status = tfw_reader_create(&options, &s->reader, &error);
    }
    if (status != TFW_OK) {
        fail(s, &error, s->file, false);
        close_file(s);
    }
    return status == TFW_OK;
}

/* ---- Records -------------------------------------------------------------------------------- */

static bool reserve(stream *s, size_t more) {
    const size_t total = s->records + more;
    return TFWI_RESERVE(s->files, total) && TFWI_RESERVE(s->numbers, total) &&
           TFWI_RESERVE(s->offsets, total);
}

static int64_t record_number_of(const tfw_batch *batch, size_t i) {
    return (int64_t)(batch->numbers != NULL ? batch->numbers[i] : batch->first_record + i);
}

static void note_positions(stream *s, const tfw_batch *batch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = s->records + i;
        s->files.of[at] = (int32_t)s->file;
        s->numbers.of[at] = record_number_of(batch, i);
        s->offsets.of[at] =
            (int64_t)(batch->offset + batch->spans[i].offset) - TFW_HEADER_SIZE;
    }
    s->records += count;
}

/* Makes room for the first batch, when its first records are known. */
static void expect_batch(stream *s, const tfw_batch *batch) {
    const tfw_span *last = &batch->spans[batch->count - 1];
    const uint64_t done = batch->offset + last->offset + last->length;
    const uint64_t end = tfwi_reader_input_end(s->reader);
    if (s->is_expected || s->records == 0 || end == UINT64_MAX || end <= done) {
        return;
    }
    const uint64_t mean = done / s->records + 1, all = s->records + (end - done) / mean;
    s->is_expected = true;
    if (s->context != NULL) {
        tfwi_columns_expect(s->context, all < s->batch_size ? all : s->batch_size);
    }
    if (s->lists != NULL) {
        tfwi_columns_expect(s->lists, all < s->batch_size ? all : s->batch_size);
    }
}

/* Parses records; those before one that does not fit stay. */
static void parse_batch(stream *s, const tfw_batch *batch) {
    const size_t count = (size_t)batch->count, len = (size_t)batch->data_len;
    size_t done = 0;
    tfw_error error;
    if (!reserve(s, count)) {
        fail_memory(s);
        return;
    }
    if (s->layout->count == 0) { /* only the number of records is asked for */
        note_positions(s, batch, count);
        return;
    }
    int status = (s->layout->flags & TFW_ARROW_SEQUENCE) == 0
                     ? tfw_parse(s->context, batch->data, len, batch->spans, count, 0, &done,
                                 &error)
                     : tfw_parse_sequence(s->context, s->lists, batch->data, len, batch->spans,
                                          count, 0, &done, &error);
    note_positions(s, batch, done);
    if (status != TFW_OK) {
        error.record = done < count ? record_number_of(batch, done) : -1;
        fail(s, &error, s->file, false);
    }
}

/* Reads some more records, or goes to the next file. */
static void read_more(stream *s) {
    tfw_batch batch = {.size = sizeof batch};
    tfw_error error;
    if (s->reader == NULL && !open_file(s)) {
        return;
    }
    int status = tfw_reader_next(s->reader, s->batch_size - s->records, &batch, &error);
    if (status == TFW_OK) {
        parse_batch(s, &batch);
        expect_batch(s, &batch);
    } else if (status == TFW_END) {
        close_file(s);
        s->file++;
    } else {
        fail(s, &error, s->file, false);
    }
}

/* ---- Arrays --------------------------------------------------------------------------------- */

/* Keeps only the first records, that many. */
static void truncate_to(stream *s, size_t records) {
    s->records = records;
    if (s->context != NULL) {
        tfw_columns_truncate(s->context, records);
    }
    if (s->lists != NULL) {
        tfw_columns_truncate(s->lists, records);
    }
}

static int export_records(stream *s, struct ArrowArray *out, tfw_error *error) {
    const size_t last = s->records - 1;
    const int32_t first_file = s->files.of[0];
    for (size_t i = 0; i < s->records; i++) {
        s->files.of[i] -= first_file;
    }
    const tfw_arrow_positions positions = {
        .size = sizeof positions,
        .paths = (const char *const *)s->names + first_file,
        .path_count = (size_t)s->files.of[last] + 1,
        .files = s->files.of,
        .numbers = s->numbers.of,
        .offsets = s->offsets.of,
    };
    int status = tfwi_export(s->layout, s->context, s->lists, s->records, &positions, out, error);
    for (size_t i = 0; status != TFW_OK && i < s->records; i++) {
        s->files.of[i] += first_file;
    }
    return status;
}

/* Exports the records, or those before one that no array can hold. */
static void deliver_array(stream *s, struct ArrowArray *out) {
    tfw_error error;
    while (s->records != 0) {
        if (export_records(s, out, &error) == TFW_OK) {
            s->records = 0;
            return;
        }
        if (error.status == TFW_E_MEMORY || error.record < 0) {
            s->records = 0;
            fail_memory(s);
            return;
        }
        const size_t record = (size_t)error.record;
        error.record = s->numbers.of[record];
        fail(s, &error, (size_t)s->files.of[record], true);
        truncate_to(s, record);
    }
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out) {
    stream *s = self->private_data;
    *out = (struct ArrowArray){0};
    if (s->next_array < s->array_count) {
        *out = s->arrays[s->next_array];
        s->arrays[s->next_array++].release = NULL;
        return 0;
    }
    while (s->errno_value == 0 && s->records < s->batch_size && s->file < s->path_count) {
        read_more(s);
    }
    deliver_array(s, out);
    s->told = s->message;
    return out->release != NULL ? 0 : s->errno_value;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out) {
    stream *s = self->private_data;
    s->told = "out of memory";
    return tfwi_layout_schema(s->layout, out) ? 0 : ENOMEM;
}

/* Never NULL after a call that failed: not every consumer looks. */
static const char *get_last_error(struct ArrowArrayStream *self) {
    const stream *s = self->private_data;
    return s->told;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void free_strings(char **strings, size_t count) {
    for (size_t i = 0; strings != NULL && i < count; i++) {
        tfw_free(strings[i]);
    }
    tfw_free(strings);
}

static void free_stream(stream *s) {
    close_file(s);
    tfw_columns_free(s->context);
    tfw_columns_free(s->lists);
    free_strings(s->paths, s->path_count);
    free_strings(s->names, s->path_count);
    for (size_t i = 0; s->arrays != NULL && i < s->array_count; i++) {
        tfwi_array_release(&s->arrays[i]);
    }
    tfw_free(s->arrays);
    tfw_free(s->files.of);
    tfw_free(s->numbers.of);
    tfw_free(s->offsets.of);
    tfw_arrow_layout_free(s->layout);
    tfw_free(s);
}

static void release(struct ArrowArrayStream *self) {
    free_stream(self->private_data);
    self->release = NULL;
}

static char **copy_strings(const char *const *strings, size_t count) {
    char **copies = tfwi_calloc(count, sizeof *copies);
    for (size_t i = 0; copies != NULL && i < count; i++) {
        const size_t size = strlen(strings[i]) + 1;
        copies[i] = tfwi_realloc(NULL, size);
        if (copies[i] == NULL) {
            free_strings(copies, count);
            return NULL;
        }
        memcpy(copies[i], strings[i], size);
    }
    return copies;
}

static bool share_arrays(stream *s, struct ArrowArray *const *arrays, size_t count) {
    s->arrays = tfwi_calloc(count, sizeof *s->arrays);
    bool good = s->arrays != NULL;
    for (size_t i = 0; good && i < count; i++) {
        good = tfwi_array_share(arrays[i], &s->arrays[i]);
        s->array_count = i + 1;
    }
    return good;
}

static bool create_columns(stream *s) {
    const unsigned flags = TFW_OWN_NUMBERS | TFW_NOTE_ABSENT;
    const tfw_arrow_layout *layout = s->layout;
    return (layout->context == NULL ||
            tfw_columns_create(layout->context, flags, &s->context, NULL) == TFW_OK) &&
           (layout->lists == NULL || tfw_columns_create(layout->lists, flags | TFW_FEATURE_LISTS,
                                                        &s->lists, NULL) == TFW_OK);
}

static bool init(stream *s, const tfw_arrow_layout *layout,
                 const tfw_arrow_stream_options *options) {
    s->fd = -1;
    s->layout = tfwi_layout_share(layout);
    s->batch_size = tfwi_as_size(options->batch_size);
    s->max_record_size = options->max_record_size;
    s->flags = options->flags;
    s->errno_value = options->message != NULL ? options->os_errno : 0;
    tfwi_stream_message_copy(s->message, options->message != NULL ? options->message : "");
    s->paths = copy_strings(options->paths, options->path_count);
    s->names = copy_strings(options->names, options->path_count);
    s->path_count = options->path_count;
    return s->paths != NULL && s->names != NULL && create_columns(s) &&
           share_arrays(s, options->arrays, options->array_count);
}

static int check_stream_options(const tfw_arrow_stream_options *options, tfw_error *error) {
    if (options == NULL || options->size != sizeof *options || options->batch_size == 0 ||
        options->batch_size > SIZE_MAX || options->path_count > INT32_MAX) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "impossible options of a stream");
    }
    if (options->message != NULL && (options->os_errno == 0 || options->path_count != 0)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an error before files, or without a number");
    }
    return tfwi_check_flags(options->flags, TFW_NO_DATA_CRC, error);
}

int tfw_arrow_stream_create(const tfw_arrow_layout *layout,
                            const tfw_arrow_stream_options *options,
                            struct ArrowArrayStream **out_stream, tfw_error *error) {
    *out_stream = NULL;
    int status = check_stream_options(options, error);
    if (status != TFW_OK) {
        return status;
    }
    struct ArrowArrayStream *self = tfwi_calloc(1, sizeof *self);
    stream *s = tfwi_calloc(1, sizeof *s);
    if (self == NULL || s == NULL || !init(s, layout, options)) {
        if (s != NULL && s->layout != NULL) {
            free_stream(s);
        } else {
            tfw_free(s);
        }
        tfw_free(self);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    *self = (struct ArrowArrayStream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release,
        .private_data = s,
    };
    *out_stream = self;
    return TFW_OK;
}

void tfw_arrow_stream_free(struct ArrowArrayStream *self) {
    if (self != NULL) {
        if (self->release != NULL) {
            self->release(self);
        }
        tfw_free(self);
    }
}
