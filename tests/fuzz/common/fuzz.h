/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: an input that is used up, and the verdict on a run.
 *
 * A target is a function of an input that holds by its checks whatever the input is; FUZZ_TARGET
 * makes it libFuzzer's entry point. The bytes that choose what is done come first and are few, so
 * that mutations of the rest keep their meaning.
 */
#ifndef TFWIRE_TESTS_FUZZ_H
#define TFWIRE_TESTS_FUZZ_H

#include "check.h"

typedef struct input {
    const uint8_t *at;
    const uint8_t *end;
} input;

static inline size_t input_left(const input *in) { return (size_t)(in->end - in->at); }

/* The next byte; 0 when there are no more. */
static inline uint8_t input_byte(input *in) { return in->at != in->end ? *in->at++ : 0; }

/* A little-endian number of size bytes. */
static inline uint64_t input_number(input *in, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)input_byte(in) << (8 * i);
    }
    return value;
}

/* The next len bytes, or as many as there are. */
static inline const uint8_t *input_bytes(input *in, size_t len, size_t *out_len) {
    const uint8_t *begin = in->at;
    *out_len = len < input_left(in) ? len : input_left(in);
    in->at += *out_len;
    return begin;
}

/* Memory that the targets need; they do not survive without it. */
static inline void *fuzz_alloc(size_t size) {
    void *memory = malloc(size != 0 ? size : 1);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* A copy in a block of just its size, so that the sanitizer sees every step beside it. */
static inline uint8_t *fuzz_copy(const void *bytes, size_t len) {
    uint8_t *copy = fuzz_alloc(len);
    if (len != 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

/* A hash that goes on from h. */
static inline uint64_t fuzz_hash(uint64_t h, const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return h ^ len;
}

static inline uint64_t fuzz_hash_number(uint64_t h, uint64_t number) {
    return fuzz_hash(h, &number, sizeof number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FUZZ_TARGET(run)                                            \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {   \
        run(&(input){data, data + len});                            \
        tfwi_test_fail_allocation = -1;                             \
        if (check_failures != 0) {                                  \
            abort();                                                \
        }                                                           \
        return 0;                                                   \
    }

#endif /* TFWIRE_TESTS_FUZZ_H */
