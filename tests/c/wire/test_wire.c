/* The wire format by itself: varints of every length, fields of every type, groups. */
#include "proto.h"
#include "wire/wire.h"

/* Reads from a copy that ends at an unreadable page. */
static bool read_varint(blob bytes, uint64_t *value, size_t *len, tfwi_fault *fault) {
    guarded page = guarded_new(bytes.len, true);
    memcpy(page.data, bytes.data, bytes.len);
    const uint8_t *next = tfwi_read_varint(page.data, page.data + bytes.len, value, fault);
    *len = next != NULL ? (size_t)(next - page.data) : 0;
    if (next == NULL) {
        CHECK(fault->at == page.data);
        CHECK_EQ(TFW_E_WIRE, fault->status);
    }
    guarded_free(page);
    return next != NULL;
}

static void test_varints_of_every_length(void) {
    for (size_t bit = 0; bit < 64; bit++) {
        uint64_t value = UINT64_C(1) << bit | (bit > 3 ? 5 : 0), found;
        for (size_t len = bit / 7 + 1; len <= 10; len++) {
            size_t taken;
            tfwi_fault fault;
            blob bytes = JOIN(long_varint(value, len), RAW("\x00"));
            CHECK(read_varint(bytes, &found, &taken, &fault));
            CHECK_EQ(value, found);
            CHECK_EQ(len, taken);
            for (size_t cut = 0; cut < len; cut++) {
                CHECK(!read_varint((blob){bytes.data, cut}, &found, &taken, &fault));
            }
        }
    }
}

static void test_varints_of_more_than_ten_bytes_are_refused(void) {
    uint64_t value;
    size_t len;
    tfwi_fault fault;
    CHECK(!read_varint(long_varint(1, 11), &value, &len, &fault));
    CHECK(strcmp("a varint is too long", fault.text) == 0);
    CHECK(!read_varint(repeat(RAW("\xff"), 10), &value, &len, &fault));
    CHECK(!read_varint(repeat(RAW("\xff"), 9), &value, &len, &fault));
    CHECK(strcmp("ends inside a varint", fault.text) == 0);
}

static bool read_field(blob bytes, tfwi_field *out, size_t *taken, tfwi_fault *fault) {
    const uint8_t *next = tfwi_read_field(bytes.data, bytes.data + bytes.len, out, fault);
    *taken = next != NULL ? (size_t)(next - bytes.data) : 0;
    return next != NULL;
}

/* Each type of field, with short and long tags and lengths, whole and cut anywhere. */
static void test_fields_of_every_type(void) {
    const struct {
        uint32_t type;
        blob payload;
        size_t len; /* of the payload without its own length */
    } cases[] = {
        {TFWI_WIRE_VARINT, varint(300), 0},
        {TFWI_WIRE_FIXED64, RAW("12345678"), 8},
        {TFWI_WIRE_FIXED32, RAW("1234"), 4},
        {TFWI_WIRE_LEN, JOIN(varint(3), RAW("abc")), 3},
        {TFWI_WIRE_LEN, JOIN(long_varint(3, 5), RAW("abc")), 3},
        {TFWI_WIRE_LEN, JOIN(varint(200), repeat(RAW("x"), 200)), 200},
        {TFWI_WIRE_LEN, RAW("\0"), 0},
    };
    const uint32_t numbers[] = {1, 15, 16, 1000, (UINT32_C(1) << 29) - 1};
    for (size_t c = 0; c < COUNT(cases); c++) {
        for (size_t n = 0; n < COUNT(numbers); n++) {
            blob bytes = JOIN(tag(numbers[n], cases[c].type), cases[c].payload);
            tfwi_field found;
            tfwi_fault fault;
            size_t taken;
            CHECK(read_field(JOIN(bytes, RAW("more")), &found, &taken, &fault));
            CHECK_EQ(TFWI_TAG(numbers[n], cases[c].type), found.tag);
            if (cases[c].type == TFWI_WIRE_VARINT) {
                CHECK_EQ(300, found.value);
            } else {
                CHECK_EQ(cases[c].len, found.len);
            }
            CHECK_EQ(bytes.len, taken);
            for (size_t cut = 1; cut < bytes.len; cut++) {
                guarded page = guarded_new(cut, true);
                memcpy(page.data, bytes.data, cut);
                CHECK(!read_field((blob){page.data, cut}, &found, &taken, &fault));
                CHECK(fault.at >= page.data && fault.at <= page.data + cut);
                guarded_free(page);
            }
        }
    }
}

static void test_what_is_not_a_field(void) {
    const struct {
        blob bytes;
        const char *text;
    } cases[] = {
        {RAW("\x02\x00"), "not a field number"},
        {RAW("\x00\x00"), "not a field number"},
        {RAW("\x80\x80\x80\x80\x10\x00"), "not a field number"},
        {RAW("\x8a\x80\x80\x80\x80\x00\x00"), "a varint is too long"},
        {RAW("\x0a\x81\x80\x80\x80\x80\x00x"), "a varint is too long"},
        {RAW("\x0e"), "not a wire type"},
        {RAW("\x0f"), "not a wire type"},
        {RAW("\x0c"), "a group ends without a beginning"},
        {RAW("\x0a\x01"), "a field exceeds its message"},
        {RAW("\x0b"), "ends inside a group"},
        {RAW("\x0b\x14"), "a group ends as another"},
        {RAW("\x0b\x0a\x05\x0c"), "a field exceeds its message"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tfwi_field found;
        tfwi_fault fault;
        size_t taken;
        CHECK(!read_field(cases[i].bytes, &found, &taken, &fault));
        CHECK_EQ(TFW_E_WIRE, fault.status);
        CHECK(strcmp(cases[i].text, fault.text) == 0);
    }
}

static void test_groups_are_one_field(void) {
    blob inner = JOIN(tag(2, 3), field(9, RAW("x")), tag(3, 0), varint(1), tag(2, 4));
    blob group = JOIN(tag(1, 3), inner, tag(4, 5), RAW("1234"), inner, tag(1, 4));
    tfwi_field found;
    tfwi_fault fault;
    size_t taken;
    CHECK(read_field(JOIN(group, RAW("more")), &found, &taken, &fault));
    CHECK_EQ(group.len, taken);
    CHECK_EQ(TFWI_TAG(1, TFWI_WIRE_GROUP), found.tag);
    for (size_t cut = 1; cut < group.len; cut++) {
        CHECK(!read_field((blob){group.data, cut}, &found, &taken, &fault));
    }
}

/* Blocks of varints of all sizes, read with every room: the same values, one after the other. */
static void test_blocks_of_varints_are_read_piece_by_piece(void) {
    enum { VALUES = 200 };
    uint64_t state = 9;
    for (int round = 0; round < 20; round++) {
        int64_t expected[VALUES], actual[VALUES];
        for (size_t i = 0; i < VALUES; i++) {
            expected[i] = (int64_t)(check_random(&state) >> (check_random(&state) % 64));
        }
        blob block = packed_int64s(expected, VALUES);
        guarded page = guarded_new(block.len, true);
        memcpy(page.data, block.data, block.len);
        size_t room = round < 3 ? (size_t)round + 1 : check_random(&state) % VALUES + 1;
        size_t done = 0, count;
        const uint8_t *p = page.data, *end = page.data + block.len;
        tfwi_fault fault;
        while (p != end) {
            size_t left = VALUES - done < room ? VALUES - done : room;
            p = tfwi_read_varints(p, end, actual + done, left, &count, &fault);
            CHECK(p != NULL && count > 0);
            if (p == NULL) {
                break;
            }
            done += count;
        }
        CHECK_EQ(VALUES, done);
        CHECK(memcmp(expected, actual, sizeof expected) == 0);
        CHECK(tfwi_read_varints(page.data, end - 1 - (block.data[block.len - 1] == 0), actual, 0,
                                &count, &fault) == page.data);
        CHECK_EQ(0, count);
        guarded_free(page);
    }
}

static void test_floats_keep_their_bits(void) {
    const uint32_t bits[] = {0x3f800000, 0x7fc12345, 0xff800001, 0x80000000, 0};
    uint8_t block[1 + sizeof bits];
    uint32_t out[COUNT(bits)];
    for (size_t i = 0; i < COUNT(bits); i++) {
        tfwi_store32(block + 1 + 4 * i, bits[i]);
    }
    tfwi_copy_floats(out, block + 1, COUNT(bits));
    CHECK(memcmp(bits, out, sizeof bits) == 0);
    tfwi_copy_floats(NULL, NULL, 0);
}

int main(void) {
    RUN(test_varints_of_every_length);
    RUN(test_varints_of_more_than_ten_bytes_are_refused);
    RUN(test_fields_of_every_type);
    RUN(test_what_is_not_a_field);
    RUN(test_groups_are_one_field);
    RUN(test_blocks_of_varints_are_read_piece_by_piece);
    RUN(test_floats_keep_their_bits);
    blobs_free();
    return check_report("wire");
}
