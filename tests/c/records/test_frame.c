/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner, the framer and the packer. */
#include "check.h"

#include "records/frame.h"

static const uint8_t GOAT[] = /* the tutorials' Example: (False, 4, b'goat', 0.9876) */
    "\nR\n\x11\n\x08" "feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08" "feature1\x12\x05\x1a\x03\n"
    "\x01\x04\n\x14\n\x08" "feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08" "feature3\x12\x08\x12"
    "\x06\n\x04[\xd3\x7c?";

enum { GOAT_LEN = 84, MANY = 300 };

/* Payload i of a test file: i % 97 bytes that depend on i. */
static size_t put_payload(uint8_t *out, size_t i) {
    for (size_t k = 0; k < i % 97; k++) {
        out[k] = (uint8_t)(i * 31 + k * 7);
    }
    return i % 97;
}

/* Packs count payloads one by one into out; ends[i] is where record i ends. */
static size_t make_file(uint8_t *out, size_t capacity, size_t *ends, size_t count) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t payload[97];
        tfw_span span = {0, put_payload(payload, i)};
        size_t len = 0;
        CHECK_EQ(TFW_OK, tfw_pack(payload, sizeof payload, &span, 1, out + at, capacity - at, &len,
                                  NULL));
        at += len;
        ends[i] = at;
    }
    return at;
}

static void packing_gives_the_bytes_that_tensorflow_writes(void) {
    const uint8_t header[] = {0x54, 0, 0, 0, 0, 0, 0, 0, 0x5f, 0x51, 0x45, 0x87};
    const uint8_t footer[] = {0xb5, 0x24, 0xe9, 0xbe};
    uint8_t out[GOAT_LEN + 16];
    tfw_span span = {0, GOAT_LEN};
    size_t len = 0;
    CHECK_EQ(TFW_OK, tfw_pack(GOAT, GOAT_LEN, &span, 1, out, sizeof out, &len, NULL));
    CHECK_EQ(100, len);
    CHECK_EQ(0, memcmp(out, header, sizeof header));
    CHECK_EQ(0, memcmp(out + 12, GOAT, GOAT_LEN));
    CHECK_EQ(0, memcmp(out + 96, footer, sizeof footer));
}

static void length_checksums_match_the_golden_ones(void) {
    const uint64_t lengths[] = {0, 1, 84};
    const uint32_t crcs[] = {0x07980329, 0x41de7501, 0x8745515f};
    for (size_t i = 0; i < 3; i++) {
        uint8_t header[12];
        tfwi_store64(header, lengths[i]);
        CHECK_EQ(crcs[i], tfwi_length_crc(tfwi_crc32c_current(), header));
    }
}

static void framing_in_place_equals_packing(void) {
    uint8_t packed[MANY * 113], framed[MANY * 113];
    size_t ends[MANY];
    tfw_span spans[MANY];
    size_t len = make_file(packed, sizeof packed, ends, MANY);
    memset(framed, 0xaa, sizeof framed);
    for (size_t i = 0; i < MANY; i++) {
        size_t begin = i != 0 ? ends[i - 1] : 0;
        spans[i] = (tfw_span){begin + 12, put_payload(framed + begin + 12, i)};
    }
    CHECK_EQ(TFW_OK, tfw_frame(framed, len, spans, MANY, NULL));
    CHECK_EQ(0, memcmp(packed, framed, len));
}

static void scanning_finds_every_record(void) {
    uint8_t data[MANY * 113];
    size_t ends[MANY];
    tfw_span spans[MANY + 1];
    size_t len = make_file(data, sizeof data, ends, MANY);
    size_t count = 99, consumed = 99;
    CHECK_EQ(TFW_OK, tfw_scan(data, len, 0, 0, spans, MANY + 1, &count, &consumed, NULL));
    CHECK_EQ(MANY, count);
    CHECK_EQ(len, consumed);
    for (size_t i = 0; i < MANY; i++) {
        uint8_t payload[97];
        CHECK_EQ(put_payload(payload, i), spans[i].length);
        CHECK_EQ((i != 0 ? ends[i - 1] : 0) + 12, spans[i].offset);
        CHECK_EQ(0, memcmp(payload, data + spans[i].offset, spans[i].length));
    }
}

static void scanning_stops_when_the_spans_are_full_and_goes_on_after_them(void) {
    uint8_t data[MANY * 113];
    size_t ends[MANY];
    tfw_span spans[7];
    size_t len = make_file(data, sizeof data, ends, MANY);
    size_t at = 0, records = 0;
    while (at < len) {
        size_t count = 0, consumed = 0;
        CHECK_EQ(TFW_OK, tfw_scan(data + at, len - at, 0, 0, spans, 7, &count, &consumed, NULL));
        records += count;
        at += consumed;
        CHECK_EQ(ends[records - 1], at);
    }
    size_t count = 99, consumed = 99;
    CHECK_EQ(MANY, records);
    CHECK_EQ(TFW_OK, tfw_scan(data, len, 0, 0, spans, 0, &count, &consumed, NULL));
    CHECK_EQ(0, count);
    CHECK_EQ(TFW_OK, tfw_scan(NULL, 0, 0, 0, spans, 7, &count, &consumed, NULL));
    CHECK_EQ(0, count + consumed);
}

/* At every cut, with an unreadable page right after the window and then right before it. */
static void scanning_a_cut_window_reads_nothing_outside_it(void) {
    enum { FEW = 12 };
    uint8_t data[FEW * 113];
    size_t ends[FEW];
    size_t len = make_file(data, sizeof data, ends, FEW);
    for (size_t cut = 0; cut <= len; cut++) {
        size_t whole = 0;
        while (whole < FEW && ends[whole] <= cut) {
            whole++;
        }
        size_t begin = whole != 0 ? ends[whole - 1] : 0;
        for (int at_end = 0; at_end < 2; at_end++) {
            guarded window = guarded_new(cut, at_end != 0);
            tfw_span spans[FEW];
            tfw_error error;
            size_t count = 99, consumed = 99;
            memcpy(window.data, data, cut);
            int status = tfw_scan(window.data, cut, 0, 0, spans, FEW, &count, &consumed, &error);
            CHECK_EQ(cut == begin ? TFW_OK : TFW_NEED_INPUT, status);
            CHECK_EQ(whole, count);
            CHECK_EQ(begin, consumed);
            if (status == TFW_NEED_INPUT) {
                CHECK_EQ(cut - begin < 12 ? 12 : ends[whole] - begin, error.expected);
                CHECK_EQ(cut - begin, error.found);
            }
            guarded_free(window);
        }
    }
}

static void every_flipped_bit_is_found_in_its_record(void) {
    enum { FEW = 5 };
    uint8_t data[FEW * 113];
    size_t ends[FEW];
    size_t len = make_file(data, sizeof data, ends, FEW);
    for (size_t bit = 0; bit < len * 8; bit++) {
        size_t record = 0;
        while (ends[record] <= bit / 8) {
            record++;
        }
        size_t begin = record != 0 ? ends[record - 1] : 0;
        bool in_header = bit / 8 - begin < 12;
        tfw_span spans[FEW];
        tfw_error error;
        size_t count = 99, consumed = 99;
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(in_header ? TFW_E_LENGTH_CRC : TFW_E_DATA_CRC,
                 tfw_scan(data, len, 0, 0, spans, FEW, &count, &consumed, &error));
        CHECK_EQ(record, count);
        CHECK_EQ(begin, consumed);
        CHECK_EQ(begin, error.offset);
        CHECK_EQ(record, error.record);
        CHECK(error.expected != error.found);
        CHECK(strstr(error.text, in_header ? "length checksum" : "payload checksum") != NULL);
        CHECK_EQ(in_header ? TFW_E_LENGTH_CRC : TFW_OK,
                 tfw_scan(data, len, 0, TFW_NO_DATA_CRC, spans, FEW, &count, &consumed, NULL));
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void hostile_lengths_are_refused(void) {
    const uint64_t lengths[] = {UINT64_C(1) << 31, UINT64_C(1) << 40, INT64_MAX,
                                UINT64_C(1) << 63, UINT64_MAX - 15,   UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint8_t data[64] = {0};
        tfw_span spans[4];
        tfw_error error;
        size_t count = 99, consumed = 99;
        tfwi_store64(data, lengths[i]);
        tfwi_store32(data + 8, tfwi_length_crc(tfwi_crc32c_current(), data));
        CHECK_EQ(TFW_E_TOO_LARGE, tfw_scan(data, sizeof data, 1 << 30, 0, spans, 4, &count,
                                           &consumed, &error));
        CHECK_EQ(1 << 30, error.expected);
        CHECK(error.found > error.expected);
        CHECK_EQ(0, count + consumed);
        /* Without a limit, what no buffer can hold is refused, and the rest is waited for. */
        CHECK_EQ(lengths[i] > tfwi_length_limit(0) ? TFW_E_TOO_LARGE : TFW_NEED_INPUT,
                 tfw_scan(data, sizeof data, 0, 0, spans, 4, &count, &consumed, &error));
    }
}

static void a_record_of_just_the_limit_is_accepted(void) {
    uint8_t out[GOAT_LEN + 16];
    tfw_span span = {0, GOAT_LEN};
    size_t len = 0, count = 0, consumed = 0;
    tfw_pack(GOAT, GOAT_LEN, &span, 1, out, sizeof out, &len, NULL);
    CHECK_EQ(TFW_OK, tfw_scan(out, len, GOAT_LEN, 0, &span, 1, &count, &consumed, NULL));
    CHECK_EQ(TFW_E_TOO_LARGE,
             tfw_scan(out, len, GOAT_LEN - 1, 0, &span, 1, &count, &consumed, NULL));
}

static void spans_outside_their_buffer_are_refused(void) {
    uint8_t data[64] = {0}, out[128];
    const tfw_span outside[] = {{60, 5}, {65, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {0, 65}};
    const tfw_span unframable[] = {{11, 1}, {12, 49}, {61, 0}, {0, 0}, {UINT64_MAX, 0}};
    for (size_t i = 0; i < 5; i++) {
        tfw_error error;
        tfw_span spans[2] = {{12, 4}, outside[i]};
        size_t len = 99;
        CHECK_EQ(TFW_E_ARGUMENT,
                 tfw_pack(data, sizeof data, spans, 2, out, sizeof out, &len, &error));
        CHECK_EQ(0, len);
        CHECK_EQ(1, error.record);
        spans[1] = unframable[i];
        CHECK_EQ(TFW_E_ARGUMENT, tfw_frame(data, sizeof data, spans, 2, &error));
        CHECK_EQ(1, error.record);
    }
    size_t len = 99, count = 99, consumed = 99;
    tfw_span span = {12, 48};
    CHECK_EQ(TFW_OK, tfw_frame(data, sizeof data, &span, 1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pack(data, sizeof data, &span, 1, out, 63, &len, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_pack(data, sizeof data, &span, 1, out, 15, &len, NULL));
    CHECK_EQ(TFW_OK, tfw_pack(data, sizeof data, &span, 1, out, 64, &len, NULL));
    CHECK_EQ(64, len);
    CHECK_EQ(TFW_OK, tfw_pack(NULL, 0, NULL, 0, NULL, 0, &len, NULL));
    CHECK_EQ(0, len);
    CHECK_EQ(TFW_E_ARGUMENT, tfw_scan(out, 64, 0, 2, &span, 1, &count, &consumed, NULL));
}

/* Payloads of every length around the copying classes, in buffers without a byte to spare. */
static void packing_reads_and_writes_nothing_outside(void) {
    for (size_t len = 0; len < 600; len++) {
        guarded data = guarded_new(len, true);
        guarded out = guarded_new(2 * (len / 2 + 16), true);
        const tfw_span spans[2] = {{0, len / 2}, {len - len / 2, len / 2}};
        size_t packed = 0;
        for (size_t i = 0; i < len; i++) {
            data.data[i] = (uint8_t)(i * 13);
        }
        CHECK_EQ(TFW_OK, tfw_pack(data.data, len, spans, 2, out.data, 2 * (len / 2 + 16), &packed,
                                  NULL));
        CHECK_EQ(2 * (len / 2 + 16), packed);
        CHECK_EQ(0, memcmp(out.data + 12, data.data, len / 2));
        CHECK_EQ(0, memcmp(out.data + 28 + len / 2, data.data + len - len / 2, len / 2));
        guarded_free(data);
        guarded_free(out);
    }
}

int main(void) {
    RUN(packing_gives_the_bytes_that_tensorflow_writes);
    RUN(length_checksums_match_the_golden_ones);
    RUN(framing_in_place_equals_packing);
    RUN(scanning_finds_every_record);
    RUN(scanning_stops_when_the_spans_are_full_and_goes_on_after_them);
    RUN(scanning_a_cut_window_reads_nothing_outside_it);
    RUN(every_flipped_bit_is_found_in_its_record);
    RUN(hostile_lengths_are_refused);
    RUN(a_record_of_just_the_limit_is_accepted);
    RUN(spans_outside_their_buffer_are_refused);
    RUN(packing_reads_and_writes_nothing_outside);
    return check_report("frame");
}
