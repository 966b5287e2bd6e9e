/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings found in objects, and packed as records. */
#include "check.h"

/* Objects as some interpreter lays them out. */
typedef struct object {
    uintptr_t references;
    uintptr_t type;
    size_t length;
    char bytes[8];
} object;

static void byte_strings_are_found_in_objects(void) {
    const object a = {1, 77, 3, "abc"}, b = {1, 77, 0, ""}, other = {1, 78, 3, "abc"};
    const uintptr_t objects[] = {(uintptr_t)&a, (uintptr_t)&b, (uintptr_t)&other};
    const tfw_object_layout layout = {77, offsetof(object, type), offsetof(object, length),
                                      offsetof(object, bytes)};
    tfw_span spans[3];
    CHECK_EQ(TFW_OK, tfw_object_spans(objects, 2, &layout, spans));
    CHECK_EQ((uintptr_t)a.bytes, spans[0].offset);
    CHECK_EQ(3, spans[0].length);
    CHECK_EQ(0, spans[1].length);
    CHECK_EQ(TFW_E_UNSUPPORTED, tfw_object_spans(objects, 3, &layout, spans));
    CHECK_EQ(TFW_OK, tfw_object_spans(objects, 0, &layout, spans));
}

static void objects_are_packed_as_many_as_fit(void) {
    const object a = {1, 77, 3, "abc"}, b = {1, 77, 0, ""}, other = {1, 78, 3, "abc"};
    const uintptr_t objects[] = {(uintptr_t)&a, (uintptr_t)&b, (uintptr_t)&other};
    const tfw_object_layout layout = {77, offsetof(object, type), offsetof(object, length),
                                      offsetof(object, bytes)};
    const tfw_span spans[] = {{0, 3}, {3, 0}};
    uint8_t expected[35], out[35];
    size_t done = 9, len = 9;
    CHECK_EQ(TFW_OK, tfw_pack((const uint8_t *)"abc", 3, spans, 2, expected, 35, &len, NULL));
    for (size_t capacity = 0; capacity <= sizeof out; capacity++) {
        int status = tfw_pack_objects(objects, 2, &layout, out, capacity, &done, &len);
        CHECK_EQ(capacity < 35 ? TFW_NEED_SPACE : TFW_OK, status);
        CHECK_EQ(capacity < 19 ? 0 : capacity < 35 ? 1 : 2, done);
        CHECK_EQ(capacity < 19 ? 0 : capacity < 35 ? 19 : 35, len);
        CHECK(memcmp(expected, out, len) == 0);
    }
    CHECK_EQ(TFW_E_UNSUPPORTED, tfw_pack_objects(objects, 3, &layout, out, 35, &done, &len));
    CHECK_EQ(2, done);
    CHECK_EQ(35, len);
}

int main(void) {
    RUN(byte_strings_are_found_in_objects);
    RUN(objects_are_packed_as_many_as_fit);
    return check_report("objects");
}
