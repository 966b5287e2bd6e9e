/* SPDX-License-Identifier: Apache-2.0 */
/* Record files as fuzz targets make them. Checksums keep random bytes from being records, so the
 * input is a script: what to append, what to damage. */
#ifndef TFWIRE_TESTS_FUZZ_SCRIPT_H
#define TFWIRE_TESTS_FUZZ_SCRIPT_H

#include "fuzz.h"

#define LOG_MAX 512 /* small logs are fast logs */
#include "records.h"

#include <errno.h>

enum {
    SCRIPT_LIMIT = 16 * LOG_MAX, /* bytes of a file: the log holds what they can hold */
    SCRIPT_LONGEST = 2048        /* bytes that one step appends */
};

/* Limits of a record's size. The last is above what any size_t can hold, which is as good as none:
 * the model knows it as 0. */
static const uint64_t script_limits[4] = {0, 100, 2000, UINT64_MAX};
static inline uint64_t script_model_limit(uint64_t limit) { return limit == UINT64_MAX ? 0 : limit; }

enum script_op {
    SCRIPT_RAW = 0,     /* len, bytes */
    SCRIPT_RECORD = 1,  /* len, payload */
    SCRIPT_LONG = 2,    /* len (2 bytes), the byte that its payload repeats */
    SCRIPT_HEADER = 3,  /* a length of 1 + (op >> 4) bytes: a header that verifies */
    SCRIPT_WRONG = 4,   /* len, payload: a record whose footer does not verify */
    SCRIPT_FLIP = 5,    /* where (2 bytes), the bits */
    SCRIPT_CUT = 6,     /* how many bytes are lost at the end */
    SCRIPT_WRAP = 7     /* all that there is becomes the payload of a record */
};

/* The records so far may be damaged by the next step: nobody asks for their ends. */
static inline void script_record(file *f, const void *payload, size_t len) {
    f->count = 0;
    file_append_record(f, payload, len);
}

static inline void script_long(file *f, input *in) {
    uint8_t payload[SCRIPT_LONGEST];
    size_t len = (size_t)input_number(in, 2) % SCRIPT_LONGEST;
    memset(payload, input_byte(in), sizeof payload);
    script_record(f, payload, len);
}

static inline void script_wrap(file *f) {
    if (f->len <= SCRIPT_LONGEST) {
        uint8_t *payload = fuzz_copy(f->data, f->len);
        size_t len = f->len;
        f->len = 0;
        script_record(f, payload, len);
        free(payload);
    }
}

static inline void script_step(file *f, uint8_t op, input *in) {
    size_t len = 0, where;
    const uint8_t *bytes;
    switch (op & 7) {
    case SCRIPT_RAW:
        bytes = input_bytes(in, input_byte(in), &len);
        file_append(f, bytes, len);
        break;
    case SCRIPT_RECORD:
    case SCRIPT_WRONG:
        bytes = input_bytes(in, input_byte(in), &len);
        script_record(f, bytes, len);
        f->data[f->len - 1] ^= (op & 7) == SCRIPT_WRONG;
        break;
    case SCRIPT_LONG: script_long(f, in); break;
    case SCRIPT_HEADER: file_append_header(f, input_number(in, 1 + ((op >> 4) & 7))); break;
    case SCRIPT_FLIP:
        where = (size_t)input_number(in, 2);
        if (f->len != 0) {
            f->data[where % f->len] ^= input_byte(in);
        }
        break;
    case SCRIPT_CUT:
        len = input_byte(in);
        f->len -= len < f->len ? len : f->len;
        break;
    default: script_wrap(f); break;
    }
}

/* The file that the rest of the input describes, at most SCRIPT_LIMIT bytes long. */
static inline void script_run(file *f, input *in) {
    file_append(f, "", 0); /* data is never NULL */
    while (input_left(in) != 0 && f->len <= SCRIPT_LIMIT - SCRIPT_LONGEST - TFWI_FRAME_SIZE) {
        script_step(f, input_byte(in), in);
    }
}

/* ---- The file as something to read from ------------------------------------------------------
 * Reads are served from memory; of the file system only the size is asked for. */

static const file *script_source;
/* Of each thread; not 0: its reads are short, and now and then interrupted. */
static _Thread_local uint64_t script_seed;

static inline ssize_t script_pread(int fd, void *out, size_t len, off_t offset) {
    (void)fd;
    size_t left = (size_t)offset < script_source->len ? script_source->len - (size_t)offset : 0;
    len = len < left ? len : left;
    if (script_seed != 0) {
        uint64_t random = check_random(&script_seed);
        size_t most = (size_t)(random >> 8) % 600 + 1;
        if (random % 8 == 0) {
            errno = EINTR;
            return -1;
        }
        len = len < most ? len : most;
    }
    if (len != 0) {
        memcpy(out, script_source->data + offset, len);
    }
    return (ssize_t)len;
}

/* Makes f what is read from the descriptor returned; seed 0: as it was asked for. */
static inline int script_open(const file *f, uint64_t seed) {
    static int fd = -1;
    if (fd < 0) {
#ifdef __linux__
        fd = memfd_create("fuzz", 0);
#else
        FILE *stream = tmpfile();
        fd = stream != NULL ? fileno(stream) : -1;
#endif
    }
    if (fd < 0 || ftruncate(fd, (off_t)f->len) != 0) {
        abort();
    }
    script_source = f;
    script_seed = seed;
    tfwi_test_pread = script_pread;
    return fd;
}

#endif /* TFWIRE_TESTS_FUZZ_SCRIPT_H */
