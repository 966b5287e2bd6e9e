/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of arrays that read plain files while they are consumed. No function needs more than the
 * stream itself: consumers call them from any thread, without an interpreter.
 *
 * A pipeline reads the files. A call of get_next exports a batch of a chunk, or counts records
 * where no columns are asked for. An error is kept in errno_value and message. It is reported once
 * the records before it were delivered, and again by every later call. */
#include "arrow/stream.h"
#include "arrow/export_chunk.h"
#include "parse/unknown.h"

#include <errno.h>

typedef struct stream {
    tfw_arrow_layout *layout;
    tfw_pipeline *pipeline; /* NULL: nothing is left to read */
    uint64_t batch_size;
    bool is_parsed; /* else no columns are asked for, and the records are not looked into */
    char **names;
    size_t path_count;
    void (*report)(const char *name, const tfw_unknown *unknown, size_t count); /* or NULL */
    struct ArrowArray *arrays; /* delivered first */
    size_t array_count;
    size_t next_array;

    tfw_chunk *chunk;
    uint64_t first; /* record of the chunk that was not delivered */
    uint64_t left;  /* such records */

    uint64_t records;   /* of the next array */
    tfwi_places places; /* of them, if asked for */

    int errno_value; /* 0: nothing has ended the stream early */
    char message[TFWI_MESSAGE_SIZE];
    const char *told; /* of the last call that failed */
} stream;

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail(stream *s, const tfw_error *error, uint64_t file, bool by_field) {
    const char *name = file < s->path_count ? s->names[file] : "input";
    s->errno_value = tfwi_stream_message(s->message, error, name, s->layout, by_field);
}

static void fail_memory(stream *s) {
    const tfw_error error = {.status = TFW_E_MEMORY};
    fail(s, &error, 0, false);
}

/* ---- Records -------------------------------------------------------------------------------- */

static void release_chunk(stream *s) {
    tfw_chunk_release(s->chunk);
    s->chunk = NULL;
    s->left = 0;
}

static void end_reading(stream *s) {
    tfw_unknown unknown[2 * TFWI_MOST_UNKNOWN]; /* of the context and of the lists */
    size_t count = 0;
    while (s->report != NULL && s->pipeline != NULL && count < 2 * TFWI_MOST_UNKNOWN &&
           tfw_pipeline_unknown(s->pipeline, count, &unknown[count]) == TFW_OK) {
        count++;
    }
    if (count != 0) {
        s->report(s->names[unknown[0].place.file], unknown, count);
    }
    tfw_pipeline_free(s->pipeline);
    s->pipeline = NULL;
}

/* Takes the next chunk; without one, reading has ended. */
static void take_chunk(stream *s) {
    tfw_chunk_info info = {.size = sizeof info};
    tfw_error error;
    release_chunk(s);
    const int status = tfw_pipeline_next(s->pipeline, -1, &s->chunk, &error);
    if (status == TFW_OK) {
        tfw_chunk_get(s->chunk, &info);
        s->first = 0;
        s->left = info.records;
        return;
    }
    if (status != TFW_END) {
        tfw_place place, next;
        tfw_pipeline_stopped(s->pipeline, &place, &next);
        fail(s, &error, place.file, false);
    }
    end_reading(s);
}

static bool has_positions(const stream *s) {
    return (s->layout->flags & TFW_ARROW_POSITIONS) != 0;
}

/* Adds the next records of the chunk to the batch. */
static void add_records(stream *s, uint64_t count) {
    if (has_positions(s) && !tfwi_places_add(&s->places, s->chunk, s->first, count)) {
        fail_memory(s);
        return;
    }
    s->records += count;
    s->first += count;
    s->left -= count;
}

/* Gathers the records of the next batch. Of columns they are those of one chunk. */
static void gather_batch(stream *s) {
    s->records = s->places.count = 0;
    while (s->errno_value == 0 && s->records < s->batch_size &&
           !(s->is_parsed && s->records != 0)) {
        const uint64_t missing = s->batch_size - s->records;
        if (s->left != 0) {
            add_records(s, s->left < missing ? s->left : missing);
        } else if (s->pipeline != NULL) {
            take_chunk(s);
        } else {
            return;
        }
    }
}

/* ---- Arrays --------------------------------------------------------------------------------- */

static int export_records(stream *s, struct ArrowArray *out, tfw_error *error) {
    tfwi_exported *const none[2] = {NULL, NULL};
    const tfwi_positions positions =
        tfwi_places_of(&s->places, (const char *const *)s->names, 0);
    return s->is_parsed
               ? tfwi_export_chunk(s->layout, s->chunk, s->first - s->records, s->records,
                                   &positions, out, error)
               : tfwi_export(s->layout, none, (size_t)s->records, &positions, out, error);
}

/* Exports the records, or those before one that no array can hold. */
static void deliver_array(stream *s, struct ArrowArray *out) {
    tfw_error error;
    while (s->records != 0 && export_records(s, out, &error) != TFW_OK) {
        const uint64_t first = s->first - s->records;
        const bool by_record = error.record >= 0;
        tfw_place place = {0};
        end_reading(s);
        s->left = 0;
        s->records = by_record ? (uint64_t)error.record : 0;
        s->places.count = has_positions(s) ? (size_t)s->records : 0;
        s->first = first + s->records;
        if (s->is_parsed) {
            tfw_chunk_place(s->chunk, s->first, &place);
        }
        error.record = by_record ? (int64_t)place.record : -1;
        fail(s, &error, place.file, by_record);
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
    gather_batch(s);
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
    release_chunk(s);
    end_reading(s);
    free_strings(s->names, s->path_count);
    for (size_t i = 0; s->arrays != NULL && i < s->array_count; i++) {
        tfwi_array_release(&s->arrays[i]);
    }
    tfw_free(s->arrays);
    tfwi_places_free(&s->places);
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

static int create_pipeline(stream *s, const tfw_arrow_stream_options *options, tfw_error *error) {
    const tfw_arrow_layout *layout = s->layout;
    tfw_pipeline_options o = {
        .size = sizeof o,
        .paths = options->paths,
        .path_count = options->path_count,
        .max_record_size = options->max_record_size,
        .num_threads = options->num_threads != 0 ? options->num_threads : 1,
        .mode = TFW_PIPELINE_SPANS,
    };
    if ((options->flags & TFW_NO_DATA_CRC) != 0) {
        o.flags |= TFW_PIPELINE_NO_DATA_CRC;
    }
    if (s->is_parsed) {
        o.mode = TFW_PIPELINE_PARSE;
        o.context = layout->context;
        o.lists = layout->lists;
        o.batch_size = s->batch_size;
        o.flags |= TFW_PIPELINE_NOTE_ABSENT;
        o.flags |= (layout->flags & TFW_ARROW_SAMPLED) != 0 ? TFW_EMPTY_IS_MISSING : 0;
        o.flags |= s->report != NULL ? TFW_PIPELINE_NOTE_UNKNOWN : 0;
        o.flags |= (layout->flags & TFW_ARROW_SEQUENCE) != 0 ? TFW_SEQUENCE : 0;
        o.flags |= (layout->flags & TFW_ARROW_POSITIONS) != 0 ? TFW_PIPELINE_POSITIONS : 0;
    }
    return options->path_count != 0 ? tfw_pipeline_create(&o, &s->pipeline, error) : TFW_OK;
}

static bool init(stream *s, const tfw_arrow_layout *layout,
                 const tfw_arrow_stream_options *options) {
    s->layout = tfwi_layout_share(layout);
    s->batch_size = options->batch_size < SIZE_MAX / 2 ? options->batch_size : SIZE_MAX / 2;
    s->is_parsed = layout->count != 0;
    s->report = options->report;
    s->errno_value = options->message != NULL ? options->os_errno : 0;
    tfwi_stream_message_copy(s->message, options->message != NULL ? options->message : "");
    s->names = copy_strings(options->names, options->path_count);
    s->path_count = options->path_count;
    return s->names != NULL && share_arrays(s, options->arrays, options->array_count);
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
    status = self != NULL && s != NULL && init(s, layout, options)
                 ? create_pipeline(s, options, error)
                 : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    if (status != TFW_OK) {
        if (s != NULL && s->layout != NULL) {
            free_stream(s);
        } else {
            tfw_free(s);
        }
        tfw_free(self);
        return status;
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
