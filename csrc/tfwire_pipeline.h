/* SPDX-License-Identifier: Apache-2.0 */
/* tfwire: files to columns, totals or records by several threads, by the conventions of
 * tfwire.h. */
#ifndef TFWIRE_TFWIRE_PIPELINE_H
#define TFWIRE_TFWIRE_PIPELINE_H

#include "tfwire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CDEF-BEGIN */

/* ---- Pipelines -------------------------------------------------------------------------------
 * Files to columns, totals, records or their offsets by several threads. What comes out does not
 * depend on the number of threads: chunks come in order, and end where one thread would end. */
typedef struct tfw_pipeline tfw_pipeline;
typedef struct tfw_chunk tfw_chunk;
typedef struct tfw_hold tfw_hold;

enum tfw_pipeline_mode {
    TFW_PIPELINE_PARSE = 0,  /* to columns */
    TFW_PIPELINE_VERIFY = 1, /* to totals */
    TFW_PIPELINE_SPANS = 2,  /* to the records themselves */
    TFW_PIPELINE_OFFSETS = 3 /* to where they begin, by their headers: as tfw_walk, which reads
                                and verifies no payload where records are long */
};

/* Flags of a pipeline, beside TFW_EMPTY_IS_MISSING, TFW_SINGLE and TFW_SEQUENCE. */
enum tfw_pipeline_flags {
    TFW_PIPELINE_NO_DATA_CRC = 128, /* leave out payload checksums; headers are always checked */
    TFW_PIPELINE_KEEP_REST = 256,   /* a batch that is not full when reading stops or ends is kept:
                                       it goes on after tfw_pipeline_seek or tfw_pipeline_add, or is
                                       delivered by the call of tfw_pipeline_next that follows the
                                       error or TFW_END */
    TFW_PIPELINE_NOTE_ABSENT = 512, /* to parse: columns as with TFW_NOTE_ABSENT */
    TFW_PIPELINE_POSITIONS = 1024,  /* to parse: chunks know where each record begins */
    TFW_PIPELINE_TALLY = 2048,      /* to parse: tfw_pipeline_tally counts; to verify: with hash and
                                       file_crc, else 0 */
    TFW_PIPELINE_GIVEN = 4096,      /* to parse: no paths, but records for tfw_pipeline_give */
    TFW_PIPELINE_NOTE_UNKNOWN = 8192 /* to parse: tfw_pipeline_unknown knows of keys */
};

/* Chooses records, of which spans say where they lie: writes the numbers of their spans, in order,
 * and returns how many there are, at most count. Bytes of data outside of spans mean nothing. */
typedef size_t (*tfw_select)(const uint8_t *data, size_t data_len, const tfw_span *spans,
                             size_t count, const void *wanted, uint32_t *out);

/* Where a record begins. */
typedef struct tfw_place {
    uint64_t file;   /* index in the paths */
    uint64_t record; /* its number in the file */
    uint64_t offset;
} tfw_place;

typedef struct tfw_pipeline_options {
    size_t size;                /* sizeof(tfw_pipeline_options) */
    const char *const *paths;   /* of regular files, which are not compressed; NULL: of something
                                   else, at which the pipeline stops */
    uint64_t path_count;        /* may be 0 */
    tfw_place start;            /* where to begin */
    const tfw_schema *context;  /* to parse: NULL: none wanted, with TFW_SEQUENCE */
    const tfw_schema *lists;    /* with TFW_SEQUENCE: NULL: none wanted */
    uint64_t batch_size;        /* to parse: records of a batch; else 0 */
    uint64_t max_record_size;   /* 0: no limit */
    uint64_t range_bytes;       /* what a thread reads at a time, about; 0: 1 MiB, and 32 KiB
                                   for each column, up to 4 MiB */
    uint32_t num_threads;       /* all that work, the caller of tfw_pipeline_next included */
    uint32_t mode;              /* enum tfw_pipeline_mode */
    uint32_t flags;
    uint32_t reserved;          /* 0 */
    const tfw_indexed_file *indexed; /* instead of paths: for tfw_pipeline_fetch; offsets and files
                                        must stay, caches may be freed at any time */
    uint64_t indexed_count;
    tfw_select select;  /* of files, with TFW_PIPELINE_SPANS: only the records that it chooses are
                           delivered. Any thread calls it, several at a time. NULL: all are */
    const void *wanted; /* for select; stays until the pipeline is freed */
} tfw_pipeline_options;

/* No thread is started before a mebibyte has been read (or range_bytes, if less), or two orders or
 * half a mebibyte were given to fetch or push; with num_threads 1 none ever is.
 * Memory is bounded by num_threads + 2 ranges, which are extended to one batch where that is up to
 * 8 times as large, by one batch, and by what the chunks hold that were not released.
 * The pipeline, its chunks and what is held of them share the schemas, which may be freed at any
 * time. The next pipeline of the same schemas goes on with the memory of those before: up to
 * 384 MiB of it are kept, until the context's schema is freed (that of the lists, where there is
 * none). */
TFW_API int tfw_pipeline_create(const tfw_pipeline_options *options, tfw_pipeline **out_pipeline,
                                tfw_error *error);

/* Ends the threads. Chunks stay valid. In a forked child it does nothing, and nothing is freed,
 * unless the pipeline had started no thread and was at rest: then it goes on there by itself. */
TFW_API void tfw_pipeline_free(tfw_pipeline *pipeline);

/* More files, after those that are known; also after TFW_END. Without TFW_PIPELINE_KEEP_REST a
 * batch may have ended where those known do. */
TFW_API int tfw_pipeline_add(tfw_pipeline *pipeline, const char *const *paths, uint64_t count,
                             tfw_error *error);

/* The next chunk, for tfw_chunk_release. To parse: some whole batches; only the last chunk, and the
 * last before an error, has a batch of fewer records. Else: records of one file.
 * The caller works, too, where it would only wait. TFW_NEED_INPUT: no chunk was ready within
 * timeout_ms (-1: however long it takes), which a range that is being read may exceed. TFW_END:
 * there are no more, also on every later call, until tfw_pipeline_add.
 * TFW_E_IO, TFW_E_TRUNCATED, TFW_E_LENGTH_CRC, TFW_E_DATA_CRC, TFW_E_TOO_LARGE, and what tfw_parse
 * reports: what is wrong after all chunks before it, with error->record in its file; also on every
 * later call, until tfw_pipeline_seek or tfw_pipeline_push. error->offset of damage is that of the
 * record in the file.
 * TFW_E_TRUNCATED also where a file is shorter than it was when it was opened; one that has grown
 * when its end is reached is read on.
 * TFW_E_UNSUPPORTED: not a regular file, or its path is NULL; or this is a forked child.
 * TFW_E_ARGUMENT: cancelled. */
TFW_API int tfw_pipeline_next(tfw_pipeline *pipeline, int32_t timeout_ms, tfw_chunk **out_chunk,
                              tfw_error *error);

/* Orders records of the indexed files by their numbers, counted through all files, in any order and
 * as often as wanted. The threads read them, verify of each the header, the length that the offsets
 * say and the payload, and parse them. Records that lie close together share a read. Chunks come in
 * the order of the orders, each of them in one or none, cut into batches by itself: begin.record
 * and end.record of a chunk count what was ordered. What is wrong with the first record that is
 * ends everything: TFW_E_INDEX, too, where it is of another length than the offsets say.
 * tfw_pipeline_seek does not go on.
 * TFW_END says that nothing is ordered that was not delivered.
 * TFW_NEED_SPACE: call tfw_pipeline_next first. num_threads + 2 orders fit.
 * TFW_E_ARGUMENT: a number that no record has, or none, or more than 2^24; the pipeline has failed.
 * REQUIRES: files and offsets stay until the pipeline is freed. Offsets may be changed. */
TFW_API int tfw_pipeline_fetch(tfw_pipeline *pipeline, const int64_t *numbers, size_t count,
                               tfw_error *error);

/* Records whose numbers the thread that fetches them computes. */
typedef struct tfw_draw {
    uint64_t count;
    int64_t first;  /* places first, first + step, ... */
    int64_t step;
    uint64_t key;   /* of the random order of [0, size) that tfw_permute has */
    uint64_t size;  /* 0: of none, the places are the numbers */
    int64_t begin;  /* else number i of it is that of record begin + i * stride */
    int64_t stride;
} tfw_draw;

/* As tfw_pipeline_fetch. TFW_E_ARGUMENT: also a place outside of the order, and any number of it
 * that no record has. */
TFW_API int tfw_pipeline_draw(tfw_pipeline *pipeline, const tfw_draw *draw, tfw_error *error);

/* Orders records that lie in memory, with TFW_PIPELINE_GIVEN: their offsets are addresses. They are
 * parsed, as those of tfw_pipeline_fetch are; what is wrong has the number that counts what was
 * ordered. REQUIRES: the records stay until their chunk was delivered, or the pipeline is freed. */
TFW_API int tfw_pipeline_give(tfw_pipeline *pipeline, const tfw_span *records, size_t count,
                              tfw_error *error);

/* After such an error: the record at fault, and where the next one begins: out_next->record is 0
 * where that is not known, as after every damage. */
TFW_API void tfw_pipeline_stopped(const tfw_pipeline *pipeline, tfw_place *out_place,
                                  tfw_place *out_next);

/* The message at fault after TFW_E_WIRE and what else tfw_parse reports; else, or if there was no
 * memory for it, NULL. Until the next call of another function of the pipeline. */
TFW_API void tfw_pipeline_misfit(const tfw_pipeline *pipeline, const uint8_t **out_data,
                                 uint64_t *out_len);

/* With TFW_PIPELINE_TALLY: what the records that were parsed add up to, in order, as far as the
 * pipeline has got: of those in all chunks delivered, and then some. file_crc is that of a file of
 * all of them. Else zeros. */
TFW_API void tfw_pipeline_tally(tfw_pipeline *pipeline, tfw_tally *out_tally);

/* A key of records that the schema has not. */
typedef struct tfw_unknown {
    const uint8_t *name; /* until the pipeline is freed; of a long one the first 1024 bytes */
    uint64_t name_len;
    tfw_place place;     /* of the first record that has it; without the offset */
    int32_t is_list;     /* 1: of a feature list */
    int32_t has_more;    /* 1: the last one, but records have others, of which nothing is noted */
} tfw_unknown;

/* With TFW_PIPELINE_NOTE_UNKNOWN: the i-th of such keys of the records in the chunks delivered, in
 * their order, those of the context before those of the lists; the first 16 of each.
 * TFW_END: there are no more. TFW_E_UNSUPPORTED: this is a forked child. */
TFW_API int tfw_pipeline_unknown(tfw_pipeline *pipeline, size_t i, tfw_unknown *out_unknown);

/* Goes on at a record after an error, or after what was pushed; what was pushed and lies after the
 * record at fault is parsed first if place is where the next one begins, else dropped.
 * TFW_E_ARGUMENT: there was no error and no push, or that record lies before it. */
TFW_API int tfw_pipeline_seek(tfw_pipeline *pipeline, const tfw_place *place, tfw_error *error);

/* Records that somebody else has read and verified, of a file or of anything that counts as one,
 * follow those delivered, after an error or at TFW_END (also of no files). To parse only. Batches
 * go on in them, and in what comes after them. It may be called again and again; then
 * tfw_pipeline_seek goes on with the files, without waiting for what was pushed. Until then a batch
 * that is not full is kept, and tfw_pipeline_next returns TFW_NEED_INPUT when all was parsed. After
 * TFW_END it returns that again, and then what was kept. Records that do not fit are told as others
 * are, with their place in the file.
 * The spans hold the frames, too. With several threads the records are copied, else parsed at
 * once; some 256 KiB at a time serve best. TFW_NEED_SPACE: nothing was taken, call
 * tfw_pipeline_next first. TFW_E_ARGUMENT: it has not stopped, or they lie before the end of
 * reading, or not in order. TFW_E_MEMORY: nothing was taken. */
TFW_API int tfw_pipeline_push(tfw_pipeline *pipeline, const tfw_batch *batch, uint64_t file,
                              tfw_error *error);

/* Bytes of a file that somebody else inflates or receives, and the records in them, which it finds
 * and verifies. For one thread at a time, which may be another one each time; it knows of no
 * pipeline. */
typedef struct tfw_parcel tfw_parcel;

/* max_record_size, flags: as of tfw_scan. */
TFW_API int tfw_parcel_create(uint64_t max_record_size, uint32_t flags, tfw_parcel **out_parcel,
                              tfw_error *error);
TFW_API void tfw_parcel_free(tfw_parcel *parcel); /* NULL is allowed */

/* Drops what is in a parcel, and begins where the records of another one end, with copies of the
 * bytes after them; NULL: where the file begins. TFW_E_MEMORY. */
TFW_API int tfw_parcel_begin(tfw_parcel *parcel, const tfw_parcel *before, tfw_error *error);

/* Copies the next len bytes of the file. The batch is of all records that are whole, whatever is
 * returned; valid until the next call of another function with the parcel.
 * TFW_OK: nothing comes after them. TFW_NEED_INPUT, and damage: as of tfw_scan, with the record and
 * the offset in the file. TFW_E_MEMORY: the parcel is of no more use, but for tfw_parcel_begin. */
TFW_API int tfw_parcel_add(tfw_parcel *parcel, const uint8_t *data, size_t len,
                           tfw_batch *out_batch, tfw_error *error);

/* As tfw_pipeline_push, of all its records. TFW_OK: the parcel is empty, for tfw_parcel_begin. With
 * several threads nothing is copied, memory is exchanged. Two mebibytes at a time serve best. */
TFW_API int tfw_pipeline_push_parcel(tfw_pipeline *pipeline, tfw_parcel *parcel, uint64_t file,
                                     tfw_error *error);

/* Wakes a thread that waits in tfw_pipeline_next, and ends what is being read after the piece at
 * hand, of some 256 KiB. From any thread, at any time before tfw_pipeline_free. */
TFW_API void tfw_pipeline_cancel(tfw_pipeline *pipeline);

typedef struct tfw_chunk_info {
    size_t size; /* sizeof(tfw_chunk_info) */
    uint64_t records;
    tfw_place begin;
    tfw_place end;           /* after the last record, in its file */
    tfw_tally tally;         /* TFW_PIPELINE_VERIFY; else zeros. See TFW_PIPELINE_TALLY */
    uint64_t shortest;       /* the same */
    uint64_t longest;
    const uint8_t *data;     /* TFW_PIPELINE_SPANS: the records with their frames; with select,
                                without.
                                TFW_PIPELINE_VERIFY: the payload of the file's first one, if the
                                chunk begins with it and it is not empty. Else NULL */
    uint64_t data_len;
    const tfw_span *spans;   /* TFW_PIPELINE_SPANS: of data; else NULL */
    const int64_t *offsets;  /* TFW_PIPELINE_OFFSETS: where each begins in its file; else NULL */
    uint64_t first_row;      /* from which the absent records of columns count */
    uint64_t selected;       /* TFW_PIPELINE_SPANS: how many spans there are; with select, fewer
                                than records, which are those that were read. Else 0 */
} tfw_chunk_info;

TFW_API void tfw_chunk_get(const tfw_chunk *chunk, tfw_chunk_info *out_info);

/* A column of a chunk, lent. values are those of the chunk. Its offsets, splits and steps may begin
 * with another number than 0, which counts for nothing: entry i leads to place offsets[i] -
 * offsets[0] of what the chunk has. Likewise absent counts from first_row. capacity is 0. is_list:
 * of the feature lists.
 * TFW_E_ARGUMENT: there is no such column. */
TFW_API int tfw_chunk_column(const tfw_chunk *chunk, bool is_list, size_t feature,
                             tfw_column *out_column, tfw_error *error);

/* Where rows of a column go. */
typedef struct tfw_packed {
    size_t feature;
    uint64_t at; /* in the block */
} tfw_packed;

/* Copies rows [first, first + count) of columns of dense numbers into a block of size bytes, each
 * to its place. Any number of threads may do so with the same chunk.
 * TFW_E_ARGUMENT: there are no such rows, no such column, it is not of dense numbers, or its rows
 * do not fit into the block: those before it were copied. */
TFW_API int tfw_chunk_pack(const tfw_chunk *chunk, uint64_t first, uint64_t count,
                           const tfw_packed *columns, size_t column_count, uint8_t *out,
                           size_t size, tfw_error *error);

/* The same, for tfw_hold_release: the column stays as it is, whatever becomes of the chunk, and
 * keeps no other column. A column that is held several times is to be released as often.
 * TFW_E_ARGUMENT; TFW_E_MEMORY; TFW_E_UNSUPPORTED: this is a forked child. */
TFW_API int tfw_chunk_hold(tfw_chunk *chunk, bool is_list, size_t feature, tfw_column *out_column,
                           tfw_hold **out_hold, tfw_error *error);

/* Gives the column's memory back, for further chunks. From any thread, also after
 * tfw_chunk_release and tfw_pipeline_free; NULL is allowed. In a forked child it does nothing. */
TFW_API void tfw_hold_release(tfw_hold *hold);

/* Where a record of a chunk begins; with select, of those that were chosen. Of those that are
 * parsed without TFW_PIPELINE_POSITIONS the offset may be that of one before it. */
TFW_API void tfw_chunk_place(const tfw_chunk *chunk, uint64_t record, tfw_place *out_place);

/* Gives the memory back, for further chunks. From any thread, also after tfw_pipeline_free; NULL is
 * allowed. In a forked child it does nothing if the pipeline had started threads. */
TFW_API void tfw_chunk_release(tfw_chunk *chunk);

/* ---- Columns to messages ----------------------------------------------------------------------
 * Blocks of Examples by several threads, in the order of the records. What is in them does not
 * depend on the number of threads, but where they end does. */
typedef struct tfw_encoder tfw_encoder;

enum tfw_encoder_flags {
    TFW_ENCODE_FRAMED = 1 /* messages become the records of a file, side by side, with a tally */
};

typedef struct tfw_encoder_options {
    size_t size;          /* sizeof(tfw_encoder_options) */
    uint64_t range_bytes; /* about what a thread encodes at a time; 0: as much as is good */
    uint32_t num_threads; /* all that work, the caller of tfw_encoder_next included */
    uint32_t flags;       /* enum tfw_encoder_flags */
} tfw_encoder_options;

TFW_API int tfw_encoder_create(const tfw_encoder_options *options, tfw_encoder **out_encoder,
                               tfw_error *error);

/* Ends the threads. Chunks stay valid. In a forked child it does nothing, and nothing is freed. */
TFW_API void tfw_encoder_free(tfw_encoder *encoder);

/* Begins with the first so many records of inputs; what was left of those before is dropped. With
 * out_offsets, which has room for records + 1, they are gathered in memory of the caller's, one
 * message after another: message i will be out[out_offsets[i]] to out[out_offsets[i + 1]].
 * REQUIRES: the inputs and all that they point to stay until tfw_encoder_next has returned TFW_END
 * or an error other than a timeout, tfw_encoder_begin is called again, or the encoder is freed. */
TFW_API int tfw_encoder_begin(tfw_encoder *encoder, const tfw_input *inputs, size_t input_count,
                              uint64_t records, int64_t *out_offsets, tfw_error *error);

/* Where tfw_encoder_next gathers from now on, after it has returned TFW_NEED_SPACE: out holds what
 * was gathered so far. */
TFW_API void tfw_encoder_room(tfw_encoder *encoder, uint8_t *out, size_t capacity);

/* The next block, for tfw_chunk_release: data, spans and tally of its tfw_chunk_info; begin.record
 * and end.record are numbers of records. The caller works, too, where it would only wait, and the
 * other threads start when there is enough for them. TFW_NEED_INPUT: as of tfw_pipeline_next.
 * TFW_END: there are no more.
 * To gather: TFW_END when all is there. TFW_NEED_SPACE: error->found bytes were gathered, the next
 * ones need error->expected in all, and error->offset is likely to be enough for all; then
 * tfw_encoder_room is to be called. The first call returns it, too.
 * What tfw_encode reports, after all records before it, also on every later call; TFW_E_MEMORY.
 * TFW_E_UNSUPPORTED: this is a forked child. */
TFW_API int tfw_encoder_next(tfw_encoder *encoder, int32_t timeout_ms, tfw_chunk **out_chunk,
                             tfw_error *error);

/* An empty chunk for tfw_encode_more, with memory that chunks of this encoder have given back. Any
 * thread may call it. */
TFW_API int tfw_encoder_take(tfw_encoder *encoder, tfw_chunk **out_chunk, tfw_error *error);

/* Adds count records to a chunk of tfw_encoder_take: first, first + stride, ... of inputs, which
 * have so many records in all; fewer, if the chunk then has most bytes. On failure the records
 * before are there. begin.record and end.record mean nothing, unless stride is 1 and these records
 * follow those in the chunk. Every thread may do so with a chunk of its own. */
TFW_API int tfw_encode_more(tfw_chunk *chunk, const tfw_input *inputs, size_t input_count,
                            uint64_t records, uint64_t first, uint64_t stride, uint64_t count,
                            uint64_t most, uint32_t flags, tfw_error *error);

/* CDEF-END */

#ifdef __cplusplus
}
#endif

#endif /* TFWIRE_TFWIRE_PIPELINE_H */
