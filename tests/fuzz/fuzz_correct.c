/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_correct against trial: of a record with some bits flipped, every single bit is tried, and of
 * a short one every two. */
#include "common/fuzz.h"

#include "records/frame.h"

enum { LONGEST = 200, LONGEST_FOR_PAIRS = 3 };

static void flip(uint8_t *record, size_t bit) { record[bit / 8] ^= (uint8_t)(1u << (bit % 8)); }

/* Whether a whole record that verifies begins here. */
static bool verifies(const uint8_t *record, size_t len) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    uint64_t length = tfwi_load64(record);
    const uint8_t *payload = record + TFW_HEADER_SIZE;
    return tfwi_header_verifies(kernel, record) && length <= len - TFWI_FRAME_SIZE &&
           tfwi_payload_crc(kernel, payload, length) == tfwi_load32(payload + length);
}

static size_t count_singles(uint8_t *record, size_t len, const tfw_flip *found, bool *out_found) {
    size_t count = 0;
    for (size_t bit = 0; bit < 8 * len; bit++) {
        flip(record, bit);
        if (verifies(record, len)) {
            count++;
            *out_found = *out_found || (found->byte == bit / 8 && found->bit == (int)(bit % 8));
        }
        flip(record, bit);
    }
    return count;
}

/* Of the bits of the record itself, which takes size bytes. */
static bool is_pair(uint8_t *record, size_t size, size_t len) {
    bool found = false;
    for (size_t i = 1; i < 8 * size && !found; i++) {
        for (size_t j = 0; j < i && !found; j++) {
            flip(record, i);
            flip(record, j);
            found = verifies(record, len);
            flip(record, j);
            flip(record, i);
        }
    }
    return found;
}

/* What is found does not depend on what is known to follow, and asks for no more than there is. */
static void check_prefix(const uint8_t *record, size_t len, size_t cut, int status) {
    tfw_flip flip;
    tfw_error error = {.status = TFW_OK};
    uint8_t *part = fuzz_copy(record, cut);
    int found = tfw_correct(part, cut, len, 0, &flip, &error);
    if (found == TFW_NEED_INPUT) {
        CHECK(error.expected > (int64_t)cut);
    } else {
        CHECK_EQ(status, found);
    }
    free(part);
}

/* The length of the payload, how much lies after the record, how many bits are flipped; these;
 * the payload. */
static uint8_t *make_record(input *in, size_t *out_len, size_t *out_payload) {
    size_t payload = input_byte(in) % (LONGEST + 1);
    size_t len = payload + TFWI_FRAME_SIZE + input_byte(in) % 32;
    size_t flips = input_byte(in) % 4, bits[3], count;
    for (size_t i = 0; i < flips; i++) {
        bits[i] = (size_t)input_number(in, 2) % (8 * (payload + TFWI_FRAME_SIZE));
    }
    uint8_t *record = fuzz_alloc(len);
    memset(record, 0, len);
    const uint8_t *bytes = input_bytes(in, payload, &count);
    memcpy(record + TFW_HEADER_SIZE, bytes, count);
    tfw_span span = {.offset = TFW_HEADER_SIZE, .length = payload};
    CHECK_EQ(TFW_OK, tfw_frame(record, len, &span, 1, NULL));
    for (size_t i = 0; i < flips; i++) {
        flip(record, bits[i]);
    }
    *out_len = len;
    *out_payload = payload;
    return record;
}

static void run(input *in) {
    size_t cut = input_byte(in), len, payload;
    bool is_one = false;
    tfw_flip found = {.byte = 0};
    uint8_t *record = make_record(in, &len, &payload);
    int status = tfw_correct(record, len, len, 0, &found, NULL);
    if (verifies(record, len)) {
        CHECK_EQ(TFW_END, status);
    } else {
        size_t singles = count_singles(record, len, &found, &is_one);
        CHECK_EQ(singles != 0, status == TFW_OK);
        CHECK_EQ(status == TFW_OK, is_one);
        CHECK(singles < 2 || found.ambiguous);
        if (singles == 1 && payload <= LONGEST_FOR_PAIRS) {
            CHECK_EQ(is_pair(record, payload + TFWI_FRAME_SIZE, len), found.ambiguous);
        }
    }
    check_prefix(record, len, cut % (len + 1), status);
    free(record);
}

FUZZ_TARGET(run)
