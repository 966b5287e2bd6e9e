/* SPDX-License-Identifier: Apache-2.0 */
/* tfwire: TFRecord files and tf.train.Example messages, read and written in C.
 *
 * The public header of the C library; tfwire_pipeline.h is that of threads, tfwire_arrow.h that of
 * Arrow data, and tfwire_python.h has what only the Python package needs.
 * Conventions, stated once:
 *
 * 1. Names. Functions and types begin with tfw_, values with TFW_. A function without an opaque
 *    object among its arguments is pure: it depends on its arguments alone (tfw_read_at
 *    and tfw_walk also on the file). Four are not pure: tfw_free gives memory back;
 *    tfw_crc32c_select sets the kernel, tfw_crc32c_kernel says which one is set, and
 *    tfw_crc32c_kernel_name what this machine can run. They too serve any number of threads.
 * 2. Results. An int result is a status: TFW_OK is 0, positive values are ordinary outcomes
 *    (TFW_END, TFW_NEED_INPUT, TFW_NEED_SPACE), negative values are failures with fixed numbers.
 *    Functions with another result type cannot fail.
 * 3. Errors. A tfw_error belongs to the caller and is the last argument; it may be NULL. A failure
 *    writes it, success never does, other outcomes only where the function says so. Functions
 *    without it (tfw_crc32c_select, tfw_gather, and those of tfwire_python.h for byte strings)
 *    explain a failure only by the status. There is no global or thread-local error.
 * 4. Ownership. Opaque objects come from tfw_X_create and go to tfw_X_free, which accepts NULL.
 *    Memory that a function hands over is released with tfw_free. Borrowed pointers live until
 *    the next call on the same object.
 * 5. Threads. Pure functions, a tfw_schema once created and a tfw_cache serve any number of them.
 *    Every other object is for one thread at a time; different objects are independent. A
 *    tfw_pipeline alone starts threads and takes locks; its functions say what may be called
 *    beside them. A forked child has no threads: the pipeline of its parent fails there, and frees
 *    nothing.
 * 6. Side effects. The library never prints, aborts or reads the environment. Its only global state
 *    is the pointer to the checksum kernel (atomic; set at the first use, or by tfw_crc32c_select),
 *    and the number of the process (atomic; set by the first pipeline, and by each fork).
 * 7. Trust. A length is used only once its checksum verifies, memory is reserved only for bytes
 *    that are present, and no caller's buffer is read or written outside its stated bounds.
 * 8. Arguments. Memory that is written overlaps no other argument, unless a function says so. A
 *    pointer may be NULL where its count or length is 0. Arrays of numbers and of structs are
 *    aligned as their types must be. Flags that a function does not name are TFW_E_ARGUMENT.
 * 9. Changes. While a call runs, no other thread may change what it reads: pointers, sizes, spans,
 *    names, messages to be parsed or decoded. Four things may change, which gives some result or an
 *    error but never a wrong access: bytes that are only copied or checksummed, the columns that
 *    tfw_encode reads, the offsets of a tfw_indexed_file, the splits of tfw_pad.
 * 10. Sizes. Parameters that are sizes or counts of what lies in memory are size_t; offsets in
 *    files, lengths and numbers of records are uint64_t. Arrays of them are int64_t, as the arrays
 *    of columns are (tfw_walk, tfw_exchange), and so are the fields of a tfw_error.
 * 11. Limits. A schema has at most 2^20 features, and a name less than INT_MAX bytes. Where
 *    addresses have 32 bits, a record of 4 GiB or more is TFW_E_TOO_LARGE.
 * 12. Growth. A struct that begins with its size may get further members at its end. The caller
 *    sets size to sizeof of the struct, also before the library fills the others in; another size
 *    is TFW_E_ARGUMENT (tfw_survey_get: what has no room is not written). All other structs stay as
 *    they are, since they lie in arrays or in others: members that are reserved are to be 0.
 *
 * Records (bytes <-> spans) and examples (spans <-> columns) never call each other; they meet in
 * tfw_span, and a tfw_pipeline calls both. The text between the CDEF marks is
 * also what cffi reads, so it holds no preprocessor line but integer constants.
 */
#ifndef TFWIRE_H
#define TFWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFW_VERSION_STRING "0.1.0"
#define TFW_VERSION_MAJOR 0
#define TFW_VERSION_MINOR 1
#define TFW_VERSION_PATCH 0
/* For comparisons: #if TFW_VERSION >= TFW_MAKE_VERSION(0, 2, 0) */
#define TFW_MAKE_VERSION(major, minor, patch) ((major) * 1000000 + (minor) * 1000 + (patch))
#define TFW_VERSION TFW_MAKE_VERSION(TFW_VERSION_MAJOR, TFW_VERSION_MINOR, TFW_VERSION_PATCH)

/* Symbols of a shared library. Define TFW_API as nothing where the library is compiled in, and
 * TFW_BUILD_DLL where a DLL for Windows is compiled. */
#ifndef TFW_API
#ifdef TFW_BUILD_DLL
#define TFW_API __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define TFW_API __attribute__((visibility("default")))
#else
#define TFW_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* CDEF-BEGIN */

/* ---- Status and errors ---------------------------------------------------------------------- */

enum tfw_status {
    TFW_OK = 0,
    TFW_END = 1,        /* no more records */
    TFW_NEED_INPUT = 2, /* feed more bytes and call again */
    TFW_NEED_SPACE = 3, /* the output is full: take what is there and call again */

    TFW_E_ARGUMENT = -1, /* a precondition does not hold */
    TFW_E_MEMORY = -2,
    TFW_E_IO = -3,          /* see os_errno */
    TFW_E_UNSUPPORTED = -4, /* by this CPU or build, or for this input */

    TFW_E_TRUNCATED = -10,  /* the input ends inside a record */
    TFW_E_LENGTH_CRC = -11, /* header: length and its checksum disagree */
    TFW_E_DATA_CRC = -12,   /* payload and its checksum disagree */
    TFW_E_TOO_LARGE = -13,  /* a record above max_record_size */
    TFW_E_INDEX = -14,      /* a good header, but not of the length that the index says */

    TFW_E_WIRE = -20,    /* not a well-formed protobuf message */
    TFW_E_MISSING = -21, /* a required feature is absent */
    TFW_E_KIND = -22,    /* values not of the kind that the schema says */
    TFW_E_COUNT = -23,   /* not the number of values that the schema says */
    TFW_E_SCHEMA = -24   /* the schema itself is not valid */
};

#define TFW_ERROR_TEXT_SIZE 96

/* Why and where a call failed. Fields that do not apply are -1 (text: empty). */
typedef struct tfw_error {
    int32_t status;
    int32_t os_errno;
    int64_t record;   /* readers: number in the file; batches: index into the spans */
    int64_t offset;   /* readers: file offset of the record; parsers: offset in the message */
    int32_t feature;  /* index in the schema */
    int32_t list;     /* 1 when the feature is one of a SequenceExample's feature lists */
    int64_t row;      /* feature lists: index of the step */
    int64_t expected; /* a count, a kind (enum tfw_kind), a checksum or a size, by status */
    int64_t found;
    char text[TFW_ERROR_TEXT_SIZE]; /* what was wrong, in a few ASCII words, never payload */
} tfw_error;

/* The library's version, "major.minor.patch": TFW_VERSION_STRING when it was compiled. */
TFW_API const char *tfw_version(void);

/* The name of a status ("TFW_E_DATA_CRC"), or "TFW_E_UNKNOWN". */
TFW_API const char *tfw_status_name(int status);

/* Releases memory that a function handed over. NULL is allowed. */
TFW_API void tfw_free(void *memory);

/* ---- CRC-32C -------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli, reflected 0x82f63b78) of data, continuing from crc; 0 begins. data may be
 * NULL when len is 0. */
TFW_API uint32_t tfw_crc32c(uint32_t crc, const void *data, size_t len);

/* CRC-32C of A followed by B, from the CRC of each and the length of B. */
TFW_API uint32_t tfw_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

/* The masked form that TFRecord files store: rotate right by 15, add 0xa282ead8. */
TFW_API uint32_t tfw_crc32c_mask(uint32_t crc);
TFW_API uint32_t tfw_crc32c_unmask(uint32_t masked);

/* The kernel in use: "portable", "sse42", "avx2", "avx512", "armv8". */
TFW_API const char *tfw_crc32c_kernel(void);

/* Kernel i of this build, best first, or NULL past the last. *out_supported (may be NULL): whether
 * this machine can run it. */
TFW_API const char *tfw_crc32c_kernel_name(size_t i, bool *out_supported);

/* Forces a kernel by name; NULL returns to the best. TFW_E_ARGUMENT: no such kernel in this build;
 * TFW_E_UNSUPPORTED: this machine cannot run it. */
TFW_API int tfw_crc32c_select(const char *name);

/* ---- Records: framing ----------------------------------------------------------------------- */

#define TFW_HEADER_SIZE 12 /* uint64 length, uint32 masked CRC of the length, little-endian */
#define TFW_FOOTER_SIZE 4  /* uint32 masked CRC of the payload */

/* A payload: bytes [offset, offset + length) of the buffer that it comes with. */
typedef struct tfw_span {
    uint64_t offset;
    uint64_t length;
} tfw_span;

/* What a reader does at damage. The values are fixed.
 *
 * Skipping: if a record's payload is damaged and its length leads to another header or to the end,
 * exactly this record is left out. Otherwise reading goes on at the next place whose header and
 * payload both verify; that may be a record inside a payload. */
enum tfw_on_corrupt {
    TFW_CORRUPT_RAISE = 0, /* report it */
    TFW_CORRUPT_SKIP = 1,  /* note the region, resynchronise, go on */
    TFW_CORRUPT_TAIL = 2,  /* a truncated last record ends the file; other damage is reported */
    TFW_CORRUPT_STOP = 3   /* any damage ends the file; the region is noted */
};

/* Flags of tfw_scan, tfw_tally_block and tfw_tally_spans. */
enum tfw_scan_flags {
    TFW_NO_DATA_CRC = 1 /* leave out payload checksums; headers are always checked */
};

/* Finds the records at the beginning of data.
 *
 * Writes at most span_capacity spans, their number to *out_count, and the bytes that they take with
 * their frames to *out_consumed; both are valid whatever is returned.
 * TFW_OK: data ends at a record's end, or the spans are full. TFW_NEED_INPUT: data ends inside a
 * record; error->expected holds the bytes that record needs in all, as far as known (12 or more).
 * TFW_E_LENGTH_CRC, TFW_E_DATA_CRC, TFW_E_TOO_LARGE: the record at *out_consumed is damaged, with
 * error->offset = *out_consumed, error->record = *out_count. */
TFW_API int tfw_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
                     tfw_span *out_spans, size_t span_capacity, size_t *out_count,
                     size_t *out_consumed, tfw_error *error);

/* Writes header and footer around payloads that already lie in data.
 * REQUIRES: TFW_HEADER_SIZE bytes before and TFW_FOOTER_SIZE bytes after every span belong to it;
 * TFW_E_ARGUMENT when a frame would leave [0, len). */
TFW_API int tfw_frame(uint8_t *data, size_t len, const tfw_span *spans, size_t count,
                      tfw_error *error);

/* Copies payloads into out as framed records, one after the other. *out_len is the bytes written,
 * the sum of lengths plus 16 each; TFW_E_ARGUMENT when that exceeds capacity. */
TFW_API int tfw_pack(const uint8_t *data, size_t len, const tfw_span *spans, size_t count,
                     uint8_t *out, size_t capacity, size_t *out_len, tfw_error *error);

/* ---- Records: totals ------------------------------------------------------------------------ */

/* The totals of many records; all zeros without any. */
typedef struct tfw_tally {
    uint64_t records;
    uint64_t payload_bytes; /* sum of the lengths, modulo 2^64 */
    uint64_t hash;     /* sum, modulo 2^64, of a hash of each record's length and CRC: the same in
                          any order; that of two sets is the sum of theirs */
    uint32_t file_crc; /* CRC-32C of the file that the records make */
    uint32_t reserved;
} tfw_tally;

/* Adds the records of which data consists. They must have been verified: the CRCs of long payloads
 * are taken from their footers. With TFW_NO_DATA_CRC only the headers must have been: file_crc is
 * then computed from all of data, and hash from the CRCs in the footers.
 * TFW_E_ARGUMENT: data does not end with a record, unknown flags; nothing is added then. */
TFW_API int tfw_tally_block(tfw_tally *tally, const uint8_t *data, size_t len, unsigned flags,
                            tfw_error *error);

/* The same for records that lie in data[0, data_len) with their frames, such as those of a
 * tfw_batch. TFW_E_ARGUMENT also when a frame leaves the data. */
TFW_API int tfw_tally_spans(tfw_tally *tally, const uint8_t *data, size_t data_len,
                            const tfw_span *spans, size_t count, unsigned flags,
                            tfw_error *error);

/* Lowers *shortest and raises *longest to the lengths of spans. */
TFW_API void tfw_span_lengths(const tfw_span *spans, size_t count, uint64_t *shortest,
                              uint64_t *longest);

/* Hashes of the bytes of spans, by a seed: without knowing it, nobody can choose bytes of the same
 * hash. TFW_E_ARGUMENT: a span leaves the data. */
TFW_API int tfw_hash_spans(uint64_t seed, const uint8_t *data, size_t data_len,
                           const tfw_span *spans, size_t count, uint64_t *out_hashes,
                           tfw_error *error);

/* Adds one record, by the CRC and length of its payload. */
TFW_API void tfw_tally_record(tfw_tally *tally, uint32_t crc, uint64_t length);

/* ---- Records: correction of a single flipped bit -------------------------------------------- */

/* The one flipped bit that explains why a record does not verify. */
typedef struct tfw_flip {
    uint64_t record;   /* readers: number in the file; else 0 */
    uint64_t offset;   /* readers: file offset of the record; else 0 */
    uint64_t byte;     /* counted from the first byte of the record's header */
    int32_t bit;       /* 0, the lowest, to 7 */
    int32_t ambiguous; /* 1: flipping another bit, or two, would make the record verify, too. In
                          the footer of more than 16 KiB: it might */
    int32_t applied;   /* readers: 1: the record was delivered, corrected */
    int32_t reserved;
} tfw_flip;

/* Looks for the flipped bit in the record at data[0, len). available: the bytes of the input from
 * there on (UINT64_MAX: not known). With the bit flipped back the record verifies.
 *
 * A flipped bit of the header is found only if the payload verifies. In payloads of 256 MiB and
 * more no bit is found. Three flipped bits may look like one; arbitrary damage to a payload of n
 * bits does so with probability n / 2^32.
 * TFW_OK: found. TFW_END: the record verifies as it is. TFW_NEED_INPUT: call again with
 * error->expected bytes. TFW_E_LENGTH_CRC, TFW_E_DATA_CRC: no single bit explains the damage.
 * TFW_E_TOO_LARGE. */
TFW_API int tfw_correct(const uint8_t *data, size_t len, uint64_t available,
                        uint64_t max_record_size, tfw_flip *out_flip, tfw_error *error);

/* ---- Records: buffered sequential reader ---------------------------------------------------- */

typedef struct tfw_reader tfw_reader;

/* Flags of a reader, beside TFW_NO_DATA_CRC. */
enum tfw_reader_flags {
    TFW_CORRECT = 2,          /* deliver records of which one bit is flipped, corrected */
    TFW_CORRECT_AMBIGUOUS = 4 /* with TFW_CORRECT, also where that is ambiguous */
};

typedef struct tfw_reader_options {
    size_t size;              /* sizeof(tfw_reader_options) */
    uint64_t buffer_size;     /* bytes read at a time; 0: 256 KiB */
    uint64_t max_record_size; /* 0: no limit but the input's own size */
    uint64_t offset;          /* where in the file to begin */
    int32_t fd;               /* file source: read as by tfw_read_at, never closed; -1: fed */
    uint32_t flags;           /* TFW_NO_DATA_CRC, TFW_CORRECT, TFW_CORRECT_AMBIGUOUS */
    uint32_t on_corrupt;      /* enum tfw_on_corrupt */
    uint32_t reserved;        /* 0 */
} tfw_reader_options;

/* Whole, verified records lying in the reader's buffer until its next call. */
typedef struct tfw_batch {
    size_t size; /* sizeof(tfw_batch) */
    const uint8_t *data;
    uint64_t data_len; /* readable bytes at data; the last 64 are zeros after the input */
    const tfw_span *spans;
    uint64_t count;
    uint64_t payload_bytes; /* sum of the lengths */
    uint64_t offset;        /* file offset of data[0]; a record begins 12 before its payload */
    uint64_t first_record;  /* number of spans[0] in the file; a damaged record counts as one, and
                               so does all that was searched through after it */
    const uint64_t *numbers; /* of each record, where something was left out between them; else
                                NULL: the records lie without gaps, their numbers too */
} tfw_batch;

/* A stretch of the file that was left out. Stretches that touch are joined, so the last may grow; a
 * record that is cut stays apart.
 * TFW_CORRUPT_STOP with a fed source: it ends with what had been fed. */
typedef struct tfw_region {
    uint64_t begin;
    uint64_t end;
    uint64_t record;  /* number of the first record left out */
    uint64_t needed;  /* TFW_E_TRUNCATED: bytes that the record takes, if known; else 0 */
    int32_t reason;   /* TFW_E_TRUNCATED, TFW_E_LENGTH_CRC, TFW_E_DATA_CRC, TFW_E_TOO_LARGE */
    int32_t records;  /* that it counts as; negative: some of its bytes may hold others. INT32_MAX
                         and -INT32_MAX: as many, or more */
} tfw_region;

TFW_API int tfw_reader_create(const tfw_reader_options *options, tfw_reader **out_reader,
                              tfw_error *error);
TFW_API void tfw_reader_free(tfw_reader *reader);

/* The next records, at least one and at most max_records (0: as many as are ready).
 * TFW_END at the end, also on every later call. TFW_NEED_INPUT (fed source only): reserve, fill,
 * commit, and call again. Damage under TFW_CORRUPT_RAISE is reported after every record before it
 * was delivered, and again on every later call. */
TFW_API int tfw_reader_next(tfw_reader *reader, size_t max_records, tfw_batch *out_batch,
                            tfw_error *error);

/* Goes on at another file offset, where the record of that number begins. Regions before it and
 * flipped bits stay noted; those after it are met again. For callers that read some records by
 * themselves, such as long ones straight to where they belong. A fed source forgets its input and
 * asks for what the file has from that offset on. TFW_E_ARGUMENT: an impossible offset. */
TFW_API int tfw_reader_seek(tfw_reader *reader, uint64_t offset, uint64_t record,
                            tfw_error *error);

/* Fed source: room for input, *out_len >= 1 bytes at *out_data. It grows with the bytes that have
 * arrived, never with a length that a header only declares. */
TFW_API int tfw_reader_reserve(tfw_reader *reader, uint8_t **out_data, size_t *out_len,
                               tfw_error *error);

/* Fed source: len of the reserved bytes were filled. len == 0: the input has ended. If TFW_END
 * followed, with nothing left to read, more input may come; no record continues across such an
 * end. */
TFW_API int tfw_reader_commit(tfw_reader *reader, size_t len, tfw_error *error);

#define TFW_MOST_REGIONS 65536

/* The regions left out so far: writes at most capacity of them from index first on, returns how
 * many are kept. Of more than TFW_MOST_REGIONS only the first ones and the last are. */
TFW_API size_t tfw_reader_skipped(const tfw_reader *reader, size_t first, tfw_region *out_regions,
                                  size_t capacity);

/* The number of regions left out so far, also of those not kept, and the bytes in them. */
TFW_API uint64_t tfw_reader_skipped_total(const tfw_reader *reader, uint64_t *out_bytes);

/* As tfw_reader_skipped, for the flipped bits found under TFW_CORRECT, applied or not. */
TFW_API size_t tfw_reader_flips(const tfw_reader *reader, size_t first, tfw_flip *out_flips,
                                size_t capacity);

/* The number of flipped bits found so far, also of those not kept, and of those applied. */
TFW_API uint64_t tfw_reader_flips_total(const tfw_reader *reader, uint64_t *out_applied);

/* ---- Records: random access ------------------------------------------------------------------
 * Records lie without gaps, so n + 1 offsets describe n of them: record i is the bytes
 * [offsets[i], offsets[i + 1]) of its file, with its frame. */

/* Reads len bytes of a file at an offset, *out_got of them: fewer only where the file ends. The
 * file's position stays, unless other threads use it on Windows. TFW_E_IO. */
TFW_API int tfw_read_at(int32_t fd, uint8_t *out, size_t len, uint64_t offset, size_t *out_got,
                        tfw_error *error);

/* Finds the records of a file by their headers, which are verified. Payloads are not, and those
 * longer than a page are not even read.
 *
 * Begins at *offset and advances it past the last record found. Writes where each begins, at most
 * capacity, and their number to *out_count; both are valid whatever is returned. end is the size of
 * the file; buffer, of 12 bytes or more (some 100 KiB serve best), is scratch.
 * TFW_OK: capacity reached. TFW_END: *offset == end. TFW_E_LENGTH_CRC, TFW_E_TOO_LARGE,
 * TFW_E_TRUNCATED: the record at *offset is damaged; error->record counts those of this call. */
TFW_API int tfw_walk(int32_t fd, uint64_t end, uint64_t *offset, uint8_t *buffer,
                     size_t buffer_len, int64_t *out_offsets, size_t capacity, size_t *out_count,
                     tfw_error *error);

/* The bytes of a file that stay in memory once they were read, for records that are read again: a
 * second read of a block of 64 KiB costs no call of the system. It has the address space of the
 * whole file, and serves forked children, too. What the file held when it was read counts, also if
 * it has changed since.
 * TFW_E_MEMORY: there is no room. */
typedef struct tfw_cache tfw_cache;
TFW_API int tfw_cache_create(uint64_t size, tfw_cache **out_cache, tfw_error *error);
TFW_API void tfw_cache_free(tfw_cache *cache);

/* A file whose records are read by number. */
typedef struct tfw_indexed_file {
    const int64_t *offsets; /* of its records, and the end of the last */
    uint64_t count;         /* of records */
    tfw_cache *cache;       /* of the file, or NULL */
    int32_t fd;
    uint32_t reserved;      /* 0 */
} tfw_indexed_file;

/* Verifies one record in pieces: its 12-byte header, a payload of the expected length, its 4-byte
 * footer. TFW_OK, TFW_E_LENGTH_CRC, TFW_E_INDEX or TFW_E_DATA_CRC. */
TFW_API int tfw_verify_record(const uint8_t *header, const uint8_t *payload, uint64_t length,
                              const uint8_t *footer, tfw_error *error);

/* ---- Examples: schema ----------------------------------------------------------------------- */

/* The kinds of a Feature; the numbers are its oneof's field numbers. */
enum tfw_kind {
    TFW_NONE = 0, /* a Feature in which no kind is set */
    TFW_BYTES = 1,
    TFW_FLOAT = 2, /* float32 */
    TFW_INT64 = 3
};

enum tfw_layout {
    TFW_DENSE = 1,   /* exactly count values in every record (feature list: in every step) */
    TFW_VARIABLE = 2, /* any number of values; absent means none */
    TFW_REPEATED = 3  /* any multiple of count values; absent means none. Of several entries of a
                         key, one without a kind never hides an earlier one, as with dense */
};

/* One feature that the caller asks for. */
typedef struct tfw_feature {
    const char *name; /* bytes of the key, need not be UTF-8 */
    uint64_t name_len;
    int32_t kind;                   /* TFW_BYTES, TFW_FLOAT, TFW_INT64 */
    int32_t layout;                 /* enum tfw_layout */
    uint64_t count;                 /* dense: values per record; repeated: per element */
    const void *default_values;     /* dense: count int64_t or float, or the bytes of all strings;
                                       NULL with has_default 0: the feature is required */
    const int64_t *default_offsets; /* bytes: count + 1 offsets into default_values */
    int32_t has_default;            /* dense feature lists, without values: absence is allowed */
    int32_t reserved;               /* 0 */
} tfw_feature;

typedef struct tfw_schema tfw_schema;

/* Copies everything; the schema is immutable and may be shared. TFW_E_SCHEMA (error->feature):
 * a key twice, an unknown kind or layout, a default that does not fit, sizes that are too large.
 * TFW_E_ARGUMENT: too many features. seed, a random number, goes into the hashes of keys, so that
 * no file can choose keys that collide. No result depends on it. */
TFW_API int tfw_schema_create(const tfw_feature *features, size_t count, uint64_t seed,
                              tfw_schema **out_schema, tfw_error *error);
TFW_API void tfw_schema_free(tfw_schema *schema);

/* ---- Examples: messages to columns ---------------------------------------------------------- */

/* Columns under construction: one per feature of a schema. Dense int64 and float columns are
 * written into memory that the caller binds; all others grow. A record that fails leaves nothing
 * in them. */
typedef struct tfw_columns tfw_columns;

/* Flags of tfw_columns_create. */
enum tfw_columns_flags {
    TFW_FEATURE_LISTS = 1, /* columns of feature lists: rows of steps of values */
    TFW_OWN_NUMBERS = 2,   /* dense numbers grow as all others do; none can be bound */
    TFW_NOTE_ABSENT = 4,   /* tell an empty list from a feature that is absent or has no kind */
    TFW_NOTE_UNKNOWN = 8   /* note keys of records that the schema has not, for pipelines */
};

/* The schema must live while the columns are used; the two may be freed in any order. */
TFW_API int tfw_columns_create(const tfw_schema *schema, unsigned flags, tfw_columns **out_columns,
                               tfw_error *error);
TFW_API void tfw_columns_free(tfw_columns *columns);

/* Forgets all records; bound memory stays bound, and grown memory is kept for reuse. */
TFW_API void tfw_columns_clear(tfw_columns *columns);

/* Where a dense int64 or float column's records go: capacity records of count values each. */
TFW_API int tfw_columns_bind(tfw_columns *columns, size_t feature, void *values, size_t capacity,
                             tfw_error *error);

/* Records held. */
TFW_API size_t tfw_columns_records(const tfw_columns *columns);

/* A grown column, handed over: every pointer that is not NULL is the caller's and goes to
 * tfw_free. */
typedef struct tfw_column {
    void *values;           /* int64_t or float values, or the bytes of all strings */
    int64_t *offsets;       /* bytes: value_count + 1 offsets into values; else NULL */
    int64_t *splits;        /* not dense: cells + 1 offsets into the values; dense: NULL */
    int64_t *steps;         /* feature lists: records + 1 offsets into the cells; else NULL */
    uint64_t value_count;   /* values, of whatever kind */
    uint64_t byte_count;    /* size of values in bytes */
    uint64_t cell_count;    /* records; feature lists: steps of all records */
    uint64_t capacity;      /* bytes that values has room for, byte_count or more */
    int64_t *absent;        /* TFW_NOTE_ABSENT: the records that do not have the feature, or one
                               without a kind, or that have a default for it, in increasing order;
                               NULL if there are none. (Steps without a kind are null in Arrow
                               data.) */
    uint64_t absent_count;
} tfw_column;

/* Hands a column over, once; then clear the columns before the next record. values, and whichever
 * of the others the column has, are not NULL even when they hold nothing. */
TFW_API int tfw_columns_take(tfw_columns *columns, size_t feature, tfw_column *out_column,
                             tfw_error *error);

/* Begins a batch in one call: forgets all records, binds memory[i] of capacity records for every
 * column that can be bound, and gives memory[i] of sizes[i] bytes, values that tfw_columns_take
 * handed over, back to every grown one that has none: then memory[i] becomes NULL. */
TFW_API int tfw_columns_begin(tfw_columns *columns, void **memory, const size_t *sizes,
                              size_t capacity, tfw_error *error);

/* Hands over all grown columns in one call: tfw_columns_peek where lent[i] is not 0, otherwise
 * tfw_columns_take, as for all if lent is NULL; zeros for bound ones. On failure none was taken. */
TFW_API int tfw_columns_finish(tfw_columns *columns, const uint8_t *lent,
                               tfw_column *out_columns, tfw_error *error);

/* A grown column, lent: the pointers live until the next call on the columns. */
TFW_API int tfw_columns_peek(tfw_columns *columns, size_t feature, tfw_column *out_column,
                             tfw_error *error);

/* Flags of functions that read messages; each names those that it accepts. */
enum tfw_parse_flags {
    TFW_EMPTY_IS_MISSING = 1, /* a dense feature with an empty list counts as missing */
    TFW_SINGLE = 2,           /* duplicates of a key as TensorFlow's single-record parser */
    TFW_SEQUENCE = 4,         /* messages are SequenceExamples */
    TFW_ADDRESSES = 8         /* the offsets of spans are addresses: messages lie anywhere, nothing
                                 around them is read, data and data_len do not count */
};

/* Parses serialized Examples, data[spans[i]], and appends a record each to columns. Flags:
 * TFW_EMPTY_IS_MISSING, TFW_SINGLE, TFW_ADDRESSES. Values of features that the schema does not name
 * are skipped by their length: damage inside them is not noticed.
 * *out_done (may be NULL) is the number appended, also on failure: record *out_done then failed,
 * error->record is its index, error->feature the feature, error->expected and found the kinds or
 * counts, error->offset the position in the message (TFW_E_WIRE). To leave a bad record out, call
 * again with the spans after it.
 * REQUIRES: every span lies in [0, data_len); bound columns have room. */
TFW_API int tfw_parse(tfw_columns *columns, const uint8_t *data, size_t data_len,
                      const tfw_span *spans, size_t count, unsigned flags, size_t *out_done,
                      tfw_error *error);

/* tfw_parse for SequenceExamples: context (NULL: none wanted) and feature lists (NULL: none
 * wanted), the latter created with TFW_FEATURE_LISTS. Flags: those of tfw_parse. error->list says
 * which of the two failed. A feature list that is absent has no steps. */
TFW_API int tfw_parse_sequence(tfw_columns *context, tfw_columns *lists, const uint8_t *data,
                               size_t data_len, const tfw_span *spans, size_t count,
                               unsigned flags, size_t *out_done, tfw_error *error);

/* ---- Examples: surveys of messages ----------------------------------------------------------- */

/* The values of one kind that a feature has. */
typedef struct tfw_kind_survey {
    uint64_t messages; /* in which the feature is of this kind, also without values */
    uint64_t values;
    int64_t least; /* int64: the values; bytes: their lengths; without any INT64_MAX, INT64_MIN */
    int64_t most;
    double least_float; /* float, without NaN; without any infinity and minus infinity */
    double most_float;
    double sum;    /* of the values without NaN; bytes: of their lengths */
    uint64_t nans; /* how many values are NaN */
} tfw_kind_survey;

/* A feature, or a feature list, of the messages surveyed. */
typedef struct tfw_feature_survey {
    size_t size;         /* sizeof(tfw_feature_survey) */
    const uint8_t *name; /* valid until the survey is freed */
    uint64_t name_len;
    uint64_t messages;     /* that have it */
    uint64_t least_values; /* in a message; feature list: in a step; without any UINT64_MAX */
    uint64_t most_values;
    uint64_t least_steps; /* feature list: in a message */
    uint64_t most_steps;
    int32_t is_list;  /* 1: a feature list */
    int32_t not_utf8; /* 1: some of its strings are not UTF-8 */
    tfw_kind_survey kinds[4]; /* by enum tfw_kind */
} tfw_feature_survey;

typedef struct tfw_survey tfw_survey;

/* seed: as for tfw_schema_create. */
TFW_API int tfw_survey_create(uint64_t seed, tfw_survey **out_survey, tfw_error *error);
TFW_API void tfw_survey_free(tfw_survey *survey);

/* Adds serialized Examples, data[spans[i]]. Flags: TFW_SEQUENCE: feature lists too; TFW_ADDRESSES.
 * Of a key that a message has twice the last value counts, of the kinds of a feature the last one.
 * *out_done (may be NULL) is the number added, also on failure: nothing of message *out_done was
 * added then, and error->record is its index. TFW_E_WIRE: it is malformed, at error->offset, or no
 * Example: it has no features, but other fields.
 * TFW_E_UNSUPPORTED: the seed is known, and keys were made to collide. */
TFW_API int tfw_survey_add(tfw_survey *survey, const uint8_t *data, size_t data_len,
                           const tfw_span *spans, size_t count, unsigned flags, size_t *out_done,
                           tfw_error *error);

/* The number of features and feature lists found, and number i of them: those found first come
 * first. REQUIRES: i is below that number. */
TFW_API size_t tfw_survey_count(const tfw_survey *survey);
TFW_API void tfw_survey_get(const tfw_survey *survey, size_t i, tfw_feature_survey *out_feature);

/* ---- Padding -------------------------------------------------------------------------------- */

/* Pads rows of different lengths to the same width: row i of out is values [splits[i],
 * splits[i + 1]) and then copies of the padding, width values in all.
 * TFW_E_ARGUMENT: splits that decrease or leave the value_count values, a row longer than width;
 * what out holds then is undefined.
 * REQUIRES: room at out for rows * width values of value_size bytes. */
TFW_API int tfw_pad(const void *values, size_t value_count, const int64_t *splits, size_t rows,
                    size_t width, size_t value_size, const void *padding, void *out,
                    tfw_error *error);

/* ---- Shuffling ------------------------------------------------------------------------------ */

/* Exchanges numbers of [0, size) for those at these places of a random order of all of them, which
 * key and size alone determine: a Feistel network, through which numbers outside of the range go
 * again ("cycle walking"). For few numbers it does not give all orders equally often.
 * TFW_E_ARGUMENT: a number outside of the range; none was changed. */
TFW_API int tfw_permute(uint64_t key, uint64_t size, int64_t *numbers, size_t count,
                        tfw_error *error);

/* Exchanges elements of a buffer for incoming ones, one after the other: element i of others with
 * one of held, and likewise the number that belongs to each. Random number first + i of a key says
 * with which: SplitMix64's, of which the upper 32 bits are a part of the buffer. An element has 4,
 * 8 or 16 bytes. TFW_E_ARGUMENT: another element_size, no element held, or 2^32 or more; nothing
 * was exchanged. */
TFW_API int tfw_exchange(uint64_t key, uint64_t first, void *held, int64_t *held_numbers,
                         size_t num_held, void *others, int64_t *other_numbers,
                         size_t element_size, size_t count, tfw_error *error);

/* Copies strings that lie anywhere, their offsets being addresses, one after the other, and makes
 * the spans those of the copies. TFW_NEED_SPACE: they take more than capacity; only the first
 * *out_count were copied.
 * REQUIRES: the strings are where the spans say; the copies do not overlap them. */
TFW_API int tfw_gather(tfw_span *spans, size_t count, uint8_t *out, size_t capacity,
                       size_t *out_count);

/* ---- Examples: columns to messages ---------------------------------------------------------- */

enum tfw_presence {
    TFW_ABSENT = 0,  /* the record does not have the feature */
    TFW_PRESENT = 1, /* a list of the column's kind, perhaps empty */
    TFW_KINDLESS = 2 /* a Feature in which no kind is set */
};

/* One feature of many records, to be encoded. */
typedef struct tfw_input {
    const char *name;
    uint64_t name_len;
    int32_t kind;            /* TFW_BYTES, TFW_FLOAT, TFW_INT64 */
    int32_t reserved;        /* 0 */
    uint64_t count;          /* splits NULL: every record has count values */
    const void *values;      /* int64_t or float values, or the bytes of all strings */
    uint64_t value_count;    /* how many there are */
    uint64_t byte_count;     /* size of values in bytes */
    const int64_t *offsets;  /* bytes: value_count + 1 offsets into values; string i is
                                values[offsets[i]] to values[offsets[i + 1]] */
    const int64_t *splits;   /* cells + 1 offsets into the values, or NULL */
    const int64_t *steps;    /* feature lists: records + 1 offsets into the cells; else NULL */
    const uint8_t *presence; /* enum tfw_presence per record, or NULL: all present; feature
                                lists: TFW_KINDLESS holds for every step */
    uint64_t cell_count;     /* entries of splits less one; feature lists: steps of all records */
    const uint8_t *step_presence; /* feature lists: TFW_PRESENT or TFW_KINDLESS per step, or NULL:
                                     all present */
} tfw_input;

/* Encodes records [first, first + count) as Examples, features in the order of inputs, each
 * payload with headroom bytes before and tailroom bytes after it in out (for the caller to fill).
 * *out_done records were written, taking *out_len bytes, payload i at out_spans[i].
 * TFW_NEED_SPACE: the next record might not fit; error->expected is room enough for it.
 * TFW_E_ARGUMENT: splits or offsets that decrease or exceed their values, an unknown presence, or a
 * message of 2 GiB; error->record and error->feature say where. */
TFW_API int tfw_encode(const tfw_input *inputs, size_t input_count, size_t first, size_t count,
                       size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
                       tfw_span *out_spans, size_t *out_done, size_t *out_len, tfw_error *error);

/* The same for SequenceExamples: context features and feature lists. */
TFW_API int tfw_encode_sequence(const tfw_input *context, size_t context_count,
                                const tfw_input *lists, size_t list_count, size_t first,
                                size_t count, size_t headroom, size_t tailroom, uint8_t *out,
                                size_t capacity, tfw_span *out_spans, size_t *out_done,
                                size_t *out_len, tfw_error *error);

/* ---- Arrow: tables to columns ---------------------------------------------------------------
 * Tables cross as structs of Arrow's C data interface, which say how to release what they hold:
 * no library of Arrow's is needed. Their types are those of the interface. */
struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

/* A table whose records become the inputs of tfw_encode. The import and all that it lends are for
 * one thread at a time. */
typedef struct tfw_import tfw_import;

/* Begins to import a stream, or one batch: then the stream is NULL. What the structs hold moves to
 * the import, which releases it, once. On failure, TFW_E_ARGUMENT if there is nothing in them,
 * nothing was moved. */
TFW_API int tfw_import_create(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                              struct ArrowArray *array, tfw_import **out_import,
                              tfw_error *error);

/* The same for one column: a stream of arrays of any type, or one array. Its input has no name. */
TFW_API int tfw_import_create_column(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                                     struct ArrowArray *array, tfw_import **out_import,
                                     tfw_error *error);

TFW_API void tfw_import_free(tfw_import *import);

/* Reads the schema, to be called once, first. Of a column that is a struct, each field is a column.
 * TFW_E_UNSUPPORTED: not a table, or error->feature is of a type that no feature holds; the text
 * says to what it may be cast. TFW_E_ARGUMENT: a struct that is not as the interface says.
 * TFW_E_IO: the stream failed with error->os_errno. */
TFW_API int tfw_import_schema(tfw_import *import, size_t *out_columns, tfw_error *error);

/* The name of a column, also of one that was refused. */
TFW_API const char *tfw_import_name(const tfw_import *import, size_t column);

/* The name of the field that a column is of a struct, whose columns all have the struct's name and
 * metadata; NULL: it is no field. */
TFW_API const char *tfw_import_field(const tfw_import *import, size_t column);

/* The value of a key in a column's metadata: *out_len bytes, not terminated, as long as the import
 * lives; NULL: there is none. TFW_E_ARGUMENT: metadata that is not as the interface says.
 * REQUIRES: the schema was read. */
TFW_API int tfw_import_metadata(const tfw_import *import, size_t column, const char *key,
                                const char **out_value, size_t *out_len, tfw_error *error);

/* The lists of a column at one depth: list i has the lists of the next depth, or the values, from
 * splits[i] to splits[i + 1]. Those that are null have none. */
typedef struct tfw_level {
    const int64_t *splits;   /* count + 1, from 0 */
    const uint8_t *presence; /* enum tfw_presence of each, or NULL: all present */
    uint64_t count;
} tfw_level;

/* Keeps the lengths of all lists of a column, to be called between the schema and the first
 * records. Only such a column may have lists in lists, or be the field of a struct. Lists that are
 * null in the lists of a record are TFW_KINDLESS: a column of steps. */
TFW_API int tfw_import_nest(tfw_import *import, size_t column, tfw_error *error);

/* The levels of such a column, from the records to the values, for the inputs that
 * tfw_import_next gave last. *out_count is 0 if the column has no lists. */
TFW_API void tfw_import_levels(const tfw_import *import, size_t column,
                               const tfw_level **out_levels, size_t *out_count);

/* Makes the inputs of the next records of a batch: at least one, and as many as can be converted
 * with room bytes of memory. The inputs live until the next call. Numbers of the right type are
 * used in place. Null is an absent feature.
 * TFW_END: there are none left. TFW_E_UNSUPPORTED: null in a list, a row that is null, or a column
 * of lists in lists, or of a struct, whose lengths are not kept (fixed sizes are no lengths).
 * TFW_E_ARGUMENT: a value outside of int64, or a struct that is not as the interface says. Both:
 * error->feature is the column, error->record the record in the table. TFW_E_IO: as before. After a
 * failure there is no next call.
 * REQUIRES: the structs are what their producer made, and buffers as long as these say. */
TFW_API int tfw_import_next(tfw_import *import, size_t room, const tfw_input **out_inputs,
                            uint64_t *out_records, tfw_error *error);

/* What the stream says of its failure, or "". It lives until the next call. */
TFW_API const char *tfw_import_message(tfw_import *import);

/* CDEF-END */

#ifdef __cplusplus
}
#endif

#endif /* TFWIRE_H */
