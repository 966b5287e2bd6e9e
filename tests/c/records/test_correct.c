/* SPDX-License-Identifier: Apache-2.0 */
/* Correction of a flipped bit: every bit, every pair of bits. */
#include "records.h"

#ifdef TFW_TEST_QUICK
enum { EXHAUSTIVE = 70, LONG_RECORDS = 3, PLACES = 20 };
#else
enum { EXHAUSTIVE = 300, LONG_RECORDS = 6, PLACES = 40 };
#endif

/* A record of length payload bytes, framed; to be freed. */
static uint8_t *make_record(size_t length, uint64_t seed) {
    uint8_t *record = malloc(length + TFWI_FRAME_SIZE);
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < length; i++) {
        record[TFW_HEADER_SIZE + i] = (uint8_t)(check_random(&state) >> 56);
    }
    tfw_span span = {TFW_HEADER_SIZE, length};
    CHECK_EQ(TFW_OK, tfw_frame(record, length + TFWI_FRAME_SIZE, &span, 1, NULL));
    return record;
}

static void flip_bit(uint8_t *data, size_t bit) { data[bit / 8] ^= (uint8_t)(1u << (bit % 8)); }

static int correct(const uint8_t *record, size_t length, tfw_flip *flip) {
    size_t len = length + TFWI_FRAME_SIZE;
    return tfw_correct(record, len, len, 0, flip, NULL);
}

/* Flips a bit of a record that is whole, and checks that it is found. Returns 1 if ambiguous. */
static int found_again(uint8_t *record, size_t length, size_t bit) {
    tfw_flip flip;
    flip_bit(record, bit);
    CHECK_EQ(TFW_OK, correct(record, length, &flip));
    if (!flip.ambiguous) {
        CHECK_EQ(bit, flip.byte * 8 + (uint64_t)flip.bit);
    }
    flip_bit(record, bit);
    return flip.ambiguous;
}

static void every_bit_of_short_records_is_found(void) {
    for (size_t length = 0; length <= EXHAUSTIVE; length += length < 40 ? 1 : 33) {
        uint8_t *record = make_record(length, length);
        int ambiguous = 0;
        for (size_t bit = 0; bit < 8 * (length + TFWI_FRAME_SIZE); bit++) {
            ambiguous += found_again(record, length, bit);
        }
        CHECK(ambiguous <= 3); /* runs of the mask: rare even where there are many bits */
        free(record);
    }
}

/* Sizes around those of the tables, with bits at both ends and in between. */
static void bits_of_long_records_are_found(void) {
    const size_t lengths[] = {1023, 4096, 16385, 65537, 1000003, 8388608};
    for (size_t i = 0; i < LONG_RECORDS; i++) {
        size_t bits = 8 * (lengths[i] + TFWI_FRAME_SIZE);
        size_t step = bits / PLACES | 1;
        uint8_t *record = make_record(lengths[i], i);
        int ambiguous = 0;
        int tried = 0;
        for (size_t bit = 8 * TFW_HEADER_SIZE; bit < bits - 32; bit += step, tried++) {
            ambiguous += found_again(record, lengths[i], bit);
        }
        ambiguous += found_again(record, lengths[i], bits - 33);
        CHECK(ambiguous < tried);
        for (size_t bit = 0; bit < 8 * TFW_HEADER_SIZE; bit += 17) {
            CHECK_EQ(0, found_again(record, lengths[i], bit));
        }
        for (size_t bit = bits - 32; bit < bits; bit += 3) {
            found_again(record, lengths[i], bit);
        }
        free(record);
    }
}

/* Two flipped bits are never taken for one without a warning. */
static void no_pair_of_bits_is_taken_for_one(void) {
    const size_t lengths[] = {0, 1, 2, 8, 21, 40};
    size_t ambiguous = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t bits = 8 * (lengths[i] + TFWI_FRAME_SIZE);
        uint8_t *record = make_record(lengths[i], i + 7);
        for (size_t a = 1; a < bits; a++) {
            flip_bit(record, a);
            for (size_t b = 0; b < a; b++) {
                tfw_flip flip;
                flip_bit(record, b);
                int status = correct(record, lengths[i], &flip);
                CHECK(status == TFW_E_LENGTH_CRC || status == TFW_E_DATA_CRC ||
                      (status == TFW_OK && flip.ambiguous));
                ambiguous += status == TFW_OK;
                flip_bit(record, b);
            }
            flip_bit(record, a);
        }
        free(record);
    }
    CHECK(ambiguous < 100);
}

static int by_power(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The bit of a payload that adds the power in the upper half of an entry. */
static void flip_power(uint8_t *payload, size_t length, uint64_t entry) {
    size_t exponent = (uint32_t)entry;
    payload[length - 1 - exponent / 8] ^= (uint8_t)(1u << (7 - exponent % 8));
}

/* In a long record there are pairs that look like one flipped bit of the footer: where the run
 * that its mask makes of it has as many bits as two bits of the payload, an even number. */
static void two_bits_that_look_like_one_are_ambiguous(void) {
    enum { LENGTH = 40000, BITS = 8 * LENGTH };
    uint8_t *record = make_record(LENGTH, 3);
    uint8_t *payload = record + TFW_HEADER_SIZE;
    uint32_t stored = tfwi_load32(payload + LENGTH);
    uint64_t *powers = malloc(BITS * sizeof *powers);
    uint32_t power = tfw_crc32c_combine(UINT32_C(0x80000000), 0, 4);
    for (size_t i = 0; i < BITS; i++) {
        powers[i] = (uint64_t)power << 32 | i;
        power = (power >> 1) ^ (power & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    qsort(powers, BITS, sizeof *powers, by_power);
    int pairs = 0;
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t run = tfwi_crc32c_unmask(stored ^ UINT32_C(1) << bit) ^ tfwi_crc32c_unmask(stored);
        for (size_t i = 0; i < BITS && pairs < 20; i++) {
            uint64_t other = ((powers[i] >> 32) ^ run) << 32;
            size_t low = 0;
            for (size_t step = (size_t)1 << 20; step != 0; step /= 2) {
                low += low + step <= BITS && powers[low + step - 1] < other ? step : 0;
            }
            if (low < BITS && (powers[low] ^ other) >> 32 == 0) {
                tfw_flip flip;
                pairs++;
                flip_power(payload, LENGTH, powers[i]);
                flip_power(payload, LENGTH, powers[low]);
                CHECK_EQ(TFW_OK, correct(record, LENGTH, &flip));
                CHECK_EQ(1, flip.ambiguous);
                CHECK_EQ(TFW_HEADER_SIZE + LENGTH + bit / 8, flip.byte);
                flip_power(payload, LENGTH, powers[i]);
                flip_power(payload, LENGTH, powers[low]);
            }
        }
    }
    CHECK(pairs > 0);
    free(powers);
    free(record);
}

/* The promise about pairs rests on P having the factor x + 1: every power of x is odd. */
static void powers_of_x_are_odd(void) {
    uint32_t power = UINT32_C(0x80000000);
    bool odd = true;
    for (size_t i = 0; i < 1000000; i++) {
        odd = odd && __builtin_parity(power);
        power = (power >> 1) ^ (power & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    CHECK(odd);
}

static void a_whole_record_has_nothing_to_correct(void) {
    uint8_t *record = make_record(50, 1);
    tfw_flip flip;
    CHECK_EQ(TFW_END, correct(record, 50, &flip));
    free(record);
}

static void more_input_is_asked_for(void) {
    uint8_t *record = make_record(50, 1);
    tfw_flip flip;
    tfw_error error;
    CHECK_EQ(TFW_NEED_INPUT, tfw_correct(record, 5, UINT64_MAX, 0, &flip, &error));
    CHECK_EQ(12, error.expected);
    CHECK_EQ(TFW_NEED_INPUT, tfw_correct(record, 12, UINT64_MAX, 0, &flip, &error));
    CHECK_EQ(66, error.expected);
    flip_bit(record, 3);
    CHECK_EQ(TFW_NEED_INPUT, tfw_correct(record, 20, 66, 0, &flip, &error));
    CHECK_EQ(66, error.expected);
    CHECK_EQ(TFW_E_LENGTH_CRC, tfw_correct(record, 20, 65, 0, &flip, &error));
    CHECK_EQ(TFW_E_LENGTH_CRC, tfw_correct(record, 66, 66, 49, &flip, &error));
    CHECK_EQ(TFW_OK, tfw_correct(record, 66, 66, 50, &flip, &error));
    flip_bit(record, 3);
    CHECK_EQ(TFW_E_TOO_LARGE, tfw_correct(record, 66, 66, 49, &flip, &error));
    free(record);
}

/* A header is corrected only where it leads to a payload that verifies. */
static void a_flipped_bit_in_header_and_payload_each_is_too_much(void) {
    uint8_t *record = make_record(50, 1);
    tfw_flip flip;
    flip_bit(record, 3);
    flip_bit(record, 8 * 20);
    CHECK_EQ(TFW_E_LENGTH_CRC, correct(record, 50, &flip));
    free(record);
}

#ifdef TFW_TEST_FAULTS
static void failing_memory_is_reported(void) {
    uint8_t *record = make_record(5000, 1);
    const size_t bits[] = {3, 8 * 100, 8 * 5012 + 1};
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        flip_bit(record, bits[i]);
        for (long n = 0;; n++) {
            tfw_flip flip;
            tfw_error error;
            tfwi_test_fail_allocation = n;
            int status = tfw_correct(record, 5016, 5016, 0, &flip, &error);
            if (status == TFW_OK) {
                break;
            }
            CHECK_EQ(TFW_E_MEMORY, status);
        }
        tfwi_test_fail_allocation = -1;
        flip_bit(record, bits[i]);
    }
    free(record);
}
#endif

/* x^k repeats in payloads of 256 MiB: the place of a bit cannot be told. */
static void payloads_that_are_too_long_are_not_corrected(void) {
    const size_t payload = (size_t)1 << 28, len = payload + TFWI_FRAME_SIZE;
    uint8_t *record = calloc(len, 1); /* pages of zeros, which take no memory */
    tfw_flip flip;
    tfw_error error;
    if (record == NULL) {
        return;
    }
    tfwi_store64(record, payload);
    tfwi_store32(record + 8, tfwi_length_crc(tfwi_crc32c_current(), record));
    CHECK_EQ(TFW_E_DATA_CRC, tfw_correct(record, len, len, 0, &flip, &error));
    free(record);
}

int main(void) {
    RUN(every_bit_of_short_records_is_found);
    RUN(bits_of_long_records_are_found);
    RUN(no_pair_of_bits_is_taken_for_one);
    RUN(two_bits_that_look_like_one_are_ambiguous);
    RUN(powers_of_x_are_odd);
    RUN(a_whole_record_has_nothing_to_correct);
    RUN(more_input_is_asked_for);
    RUN(a_flipped_bit_in_header_and_payload_each_is_too_much);
#ifdef TFW_TEST_FAULTS
    RUN(failing_memory_is_reported);
#endif
#ifndef TFW_TEST_QUICK
    RUN(payloads_that_are_too_long_are_not_corrected);
#endif
    return check_report("correct");
}
