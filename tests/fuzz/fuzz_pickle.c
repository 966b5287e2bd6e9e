/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_pickle_spans and tfw_pickle_offsets: what they write is what an unpickler reads, whatever
 * the strings; without room, or with offsets that decrease, nothing is written. */
#include "common/fuzz.h"

enum { MAX_STRINGS = 64 };

/* Reads one counted string of a pickle; NULL when it is not one. */
static const uint8_t *read_string(const uint8_t *p, const uint8_t *end, uint64_t *out_len) {
    size_t size = p == end ? 0 : *p == 'C' ? 1 : *p == 'B' ? 4 : *p == 0x8e ? 8 : 0;
    if (size == 0 || (size_t)(end - p) < 1 + size) {
        return NULL;
    }
    *out_len = 0;
    for (size_t i = 0; i < size; i++) {
        *out_len |= (uint64_t)p[1 + i] << (8 * i);
    }
    p += 1 + size;
    return *out_len <= (uint64_t)(end - p) ? p : NULL;
}

static void check_pickle(const uint8_t *pickle, size_t len, const uint8_t *data,
                         const tfw_span *spans, size_t count) {
    const uint8_t *p = pickle + 3, *end = pickle + len;
    uint64_t found;
    CHECK(len >= 5 && memcmp(pickle, "\x80\x04(", 3) == 0);
    for (size_t i = 0; p != NULL && i < count; i++) {
        p = read_string(p, end, &found);
        CHECK(p != NULL && found == spans[i].length);
        if (p != NULL) {
            CHECK(memcmp(p, data + spans[i].offset, (size_t)found) == 0);
            p += found;
        }
    }
    CHECK(p != NULL && end - p == 2 && p[0] == 't' && p[1] == '.');
}

/* Strings that follow each other, by their offsets, if these do not decrease. */
static void check_offsets(const uint8_t *data, size_t size, const int64_t *offsets, size_t count,
                          bool rising, uint8_t *pickle, size_t capacity) {
    tfw_span spans[MAX_STRINGS];
    size_t len = 1;
    int status = tfw_pickle_offsets(data, size, offsets, count, pickle, capacity, &len);
    if (!rising) {
        CHECK(status == TFW_E_ARGUMENT || status == TFW_NEED_SPACE);
        CHECK_EQ(0, len);
        return;
    }
    uint64_t bytes = count != 0 ? (uint64_t)(offsets[count] - offsets[0]) : 0;
    CHECK_EQ(capacity < tfw_pickle_bound(count, bytes) ? TFW_NEED_SPACE : TFW_OK, status);
    for (size_t i = 0; i < count; i++) {
        spans[i] = (tfw_span){(uint64_t)offsets[i], (uint64_t)(offsets[i + 1] - offsets[i])};
    }
    if (status == TFW_OK) {
        check_pickle(pickle, len, data, spans, count);
    }
}

/* room to spare, count; offsets and a lie; any spans; data. */
static void run(input *in) {
    int64_t offsets[MAX_STRINGS + 1];
    tfw_span spans[MAX_STRINGS];
    size_t spare = input_byte(in), count = input_byte(in) % (MAX_STRINGS + 1), len = 0;
    uint8_t lie = input_byte(in);
    uint64_t bytes = 0;
    bool rising = true;
    offsets[0] = input_byte(in);
    for (size_t i = 0; i < count; i++) {
        offsets[i + 1] = offsets[i] + (int64_t)(input_number(in, 1 + (spare & 1)) % 600);
    }
    size_t size = (size_t)offsets[count] + input_byte(in);
    for (size_t i = 0; i < count; i++) {
        spans[i].offset = input_number(in, 2) % (size + 1);
        spans[i].length = input_number(in, 2) % (size + 1 - spans[i].offset);
        bytes += spans[i].length;
    }
    if (lie > 200 && count != 0) {
        offsets[lie % (count + 1)] -= lie;
    }
    for (size_t i = 0; i < count; i++) {
        rising = rising && offsets[0] >= 0 && offsets[i] <= offsets[i + 1];
    }
    uint8_t *data = fuzz_alloc(size);
    for (size_t i = 0; i < size; i++) {
        data[i] = input_byte(in);
    }
    size_t capacity = (size_t)tfw_pickle_bound(count, bytes) + spare - 1;
    uint8_t *pickle = fuzz_alloc(capacity);
    int status = tfw_pickle_spans(data, size, spans, count, pickle, capacity, &len);
    CHECK_EQ(spare == 0 ? TFW_NEED_SPACE : TFW_OK, status);
    if (status == TFW_OK) {
        check_pickle(pickle, len, data, spans, count);
    }
    check_offsets(data, size, offsets, count, rising, pickle, capacity);
    free(data);
    free(pickle);
}

FUZZ_TARGET(run)
