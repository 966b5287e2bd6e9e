/* SPDX-License-Identifier: Apache-2.0 */
/* tfwire: columns and record files as Arrow data, by the conventions of tfwire.h.
 *
 * The structs of the Arrow C interfaces are in arrow/abi.h, and in the headers of every Arrow
 * library. The functions here return each struct in its own memory, which tfw_arrow_X_free releases
 * with its contents; the contents may be moved out before. Every function that the structs point to
 * is C and may be called by any thread, by one at a time for each struct. Buffers are
 * reference-counted.
 */
#ifndef TFWIRE_ARROW_H
#define TFWIRE_ARROW_H

#include "tfwire.h"

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;
struct tfw_chunk; /* tfwire_pipeline.h has them */
struct tfw_unknown;

#ifdef __cplusplus
extern "C" {
#endif

/* CDEF-BEGIN */

/* ---- Arrow: layouts ------------------------------------------------------------------------- */

/* The Arrow type of strings. */
enum tfw_arrow_strings {
    TFW_LARGE_BINARY = 0,
    TFW_BINARY = 1, /* offsets of 32 bits: a batch holds less than 2 GiB */
    TFW_LARGE_STRING = 2,
    TFW_STRING = 3
};

/* How the numbers of a partition say where rows begin and end, as for a RaggedFeature. */
enum tfw_partition_kind {
    TFW_UNIFORM_ROW_LENGTH = 0,
    TFW_ROW_LENGTHS = 1,
    TFW_ROW_SPLITS = 2,
    TFW_ROW_STARTS = 3,
    TFW_ROW_LIMITS = 4,
    TFW_VALUE_ROW_IDS = 5
};

typedef struct tfw_partition {
    int32_t kind;      /* enum tfw_partition_kind */
    int32_t reserved;  /* 0 */
    uint64_t column;   /* of the numbers, which are int64 and TFW_VARIABLE */
    uint64_t length;   /* TFW_UNIFORM_ROW_LENGTH: of every row, 1 or more */
} tfw_partition;

/* One column of a table, made of the columns that a schema describes. */
typedef struct tfw_arrow_field {
    const char *name;        /* UTF-8 that ends with 0 */
    const uint8_t *metadata; /* as ArrowSchema has it, or NULL */
    uint64_t metadata_len;
    uint64_t column;         /* of the values */
    int32_t is_list;         /* 1: a feature list */
    int32_t strings;         /* enum tfw_arrow_strings */
    int32_t is_flat;         /* 1: one fixed list of all the values of the shape, as tensors have */
    int32_t is_scalar;       /* 1: a TFW_VARIABLE feature of one value or none, which is null */
    const uint64_t *shape;   /* of a record's values, an element's, or a step's: rank sizes, whose
                                product is the count of a dense or repeated feature */
    uint64_t rank;
    const tfw_partition *partitions; /* rows of rows, outermost first; of a TFW_VARIABLE feature */
    uint64_t partition_count;
    const uint64_t *index_columns; /* a struct of indices and values; int64 and TFW_VARIABLE, as
                                      the values are */
    uint64_t index_count;
} tfw_arrow_field;

/* How columns become a table; immutable, counted, for any number of threads. */
typedef struct tfw_arrow_layout tfw_arrow_layout;

/* Flags of tfw_arrow_layout_create. */
enum tfw_arrow_flags {
    TFW_ARROW_POSITIONS = 1, /* after the fields: the file, number and offset of every record */
    TFW_ARROW_SEQUENCE = 2,  /* records are SequenceExamples */
    TFW_ARROW_SAMPLED = 4    /* the schemas are those of some records: a dense column of these is
                                null where a record has no value of it, and takes its default if
                                the pipeline has TFW_EMPTY_IS_MISSING; errors say what to do */
};

/* Copies everything but the schemas (either may be NULL), which belong to the layout on success.
 * TFW_E_ARGUMENT: a field asks for a column that does not exist, or not in this form. */
TFW_API int tfw_arrow_layout_create(const tfw_arrow_field *fields, size_t count,
                                    tfw_schema *context, tfw_schema *lists, unsigned flags,
                                    tfw_arrow_layout **out_layout, tfw_error *error);
TFW_API void tfw_arrow_layout_free(tfw_arrow_layout *layout);

/* The type of its tables, a struct. */
TFW_API int tfw_arrow_schema_create(const tfw_arrow_layout *layout, struct ArrowSchema **out_schema,
                                    tfw_error *error);
TFW_API void tfw_arrow_schema_free(struct ArrowSchema *schema);

/* ---- Arrow: batches ------------------------------------------------------------------------- */

/* Records [first, first + count) of a pipeline's chunk as an array. The pipeline has the layout's
 * schemas and TFW_PIPELINE_NOTE_ABSENT. The array keeps the memory of the columns, each its own,
 * and needs neither chunk nor pipeline. With TFW_ARROW_POSITIONS the pipeline has
 * TFW_PIPELINE_POSITIONS, and names are those of its files from the one in which the chunk begins
 * on, UTF-8 that ends with 0.
 * An error has the index of the field in error->feature. Record error->record, counted from first,
 * is the first that does not fit: TFW_E_COUNT: partitions or indices and values, or several values
 * of a scalar; TFW_E_WIRE: a string is not UTF-8; TFW_E_UNSUPPORTED: strings reach 2 GiB. */
TFW_API int tfw_arrow_chunk_create(const tfw_arrow_layout *layout, const struct tfw_chunk *chunk,
                                   uint64_t first, uint64_t count, const char *const *names,
                                   struct ArrowArray **out_array, tfw_error *error);

/* Another array over the same buffers: of count records, from record first on. TFW_E_ARGUMENT: it
 * has fewer records. REQUIRES: one of these two functions made it. */
TFW_API int tfw_arrow_array_share(const struct ArrowArray *array, size_t first, size_t count,
                                  struct ArrowArray **out_array, tfw_error *error);
TFW_API void tfw_arrow_array_free(struct ArrowArray *array);

/* ---- Arrow: streams ------------------------------------------------------------------------- */

typedef struct tfw_arrow_stream_options {
    size_t size;              /* sizeof(tfw_arrow_stream_options) */
    uint64_t batch_size;      /* records of an array; fewer at the end and before an error */
    uint64_t max_record_size; /* 0: no limit but the file's own size */
    uint32_t flags;           /* TFW_NO_DATA_CRC */
    uint32_t num_threads;     /* that read, the caller of get_next included; 0: 1 */
    const char *const *paths; /* of plain regular files, read one after the other; in bytes as the
                                 system takes them */
    const char *const *names; /* of the same files, in errors and positions: UTF-8 */
    size_t path_count;
    struct ArrowArray *const *arrays; /* delivered before the records of the files; shared */
    size_t array_count;
    const char *message;      /* NULL, or the text of an error after all of them */
    int32_t os_errno;         /* of that error, not 0 */
    /* NULL, or called when reading ends, by whichever thread consumes, if records have keys that
     * the schemas have not: with them, and the name of the file of the first. */
    void (*report)(const char *name, const struct tfw_unknown *unknown, size_t count);
} tfw_arrow_stream_options;

/* A stream that reads files while it is consumed. It copies all that the options lead to, and
 * shares the layout. Damage, a record that does not fit and a file that cannot be read end it: the
 * records before are delivered, then get_next fails, and get_last_error says where and why. */
TFW_API int tfw_arrow_stream_create(const tfw_arrow_layout *layout,
                                    const tfw_arrow_stream_options *options,
                                    struct ArrowArrayStream **out_stream, tfw_error *error);
TFW_API void tfw_arrow_stream_free(struct ArrowArrayStream *self);

/* CDEF-END */

#ifdef __cplusplus
}
#endif

#endif /* TFWIRE_ARROW_H */
