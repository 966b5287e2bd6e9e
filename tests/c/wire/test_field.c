/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of every type, and groups. */
#include "proto.h"
#include "wire/field.h"

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

int main(void) {
    RUN(test_fields_of_every_type);
    RUN(test_what_is_not_a_field);
    RUN(test_groups_are_one_field);
    blobs_free();
    return check_report("field");
}
