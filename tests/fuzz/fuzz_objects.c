/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_object_spans and tfw_pack_objects on byte strings as some interpreter lays them out. */
#include "common/fuzz.h"

enum { MAX_OBJECTS = 32, OURS = 77, FRAME = TFW_HEADER_SIZE + TFW_FOOTER_SIZE };

typedef struct object {
    uintptr_t references;
    uintptr_t type;
    size_t length;
    uint8_t bytes[];
} object;

static const tfw_object_layout layout = {OURS, offsetof(object, type), offsetof(object, length),
                                         offsetof(object, bytes)};

/* A type, a length; the object ends with its bytes. */
static object *make_object(input *in) {
    uintptr_t type = OURS + (input_byte(in) & 1);
    size_t length = input_byte(in);
    object *made = fuzz_alloc(sizeof(object) + length);
    *made = (object){.references = 1, .type = type, .length = length};
    memset(made->bytes, (int)length, length);
    return made;
}

static void check_spans(object *const *objects, size_t count, size_t ours) {
    tfw_span spans[MAX_OBJECTS];
    int status = tfw_object_spans((const uintptr_t *)objects, count, &layout, spans);
    CHECK_EQ(ours == count ? TFW_OK : TFW_E_UNSUPPORTED, status);
    for (size_t i = 0; i < ours; i++) {
        CHECK_EQ((uintptr_t)objects[i]->bytes, spans[i].offset);
        CHECK_EQ(objects[i]->length, spans[i].length);
    }
}

static void check_pack(object *const *objects, size_t count, size_t ours, size_t capacity) {
    size_t expected = 0, size = 0, done, len, found, consumed;
    tfw_span spans[MAX_OBJECTS];
    while (expected < ours && objects[expected]->length + FRAME <= capacity - size) {
        size += objects[expected++]->length + FRAME;
    }
    uint8_t *out = fuzz_alloc(capacity);
    int status = tfw_pack_objects((const uintptr_t *)objects, count, &layout, out, capacity, &done,
                                  &len);
    CHECK_EQ(expected == count ? TFW_OK : expected == ours ? TFW_E_UNSUPPORTED : TFW_NEED_SPACE,
             status);
    CHECK_EQ(expected, done);
    CHECK_EQ(size, len);
    CHECK_EQ(TFW_OK, tfw_scan(out, len, 0, 0, spans, MAX_OBJECTS, &found, &consumed, NULL));
    CHECK_EQ(expected, found);
    for (size_t i = 0; i < found; i++) {
        CHECK_EQ(objects[i]->length, spans[i].length);
        CHECK(memcmp(objects[i]->bytes, out + spans[i].offset, objects[i]->length) == 0);
    }
    free(out);
}

/* room; how many objects; the objects. */
static void run(input *in) {
    object *objects[MAX_OBJECTS];
    size_t capacity = (size_t)input_number(in, 2) % 4096;
    size_t count = input_byte(in) % (MAX_OBJECTS + 1), ours = 0;
    for (size_t i = 0; i < count; i++) {
        objects[i] = make_object(in);
    }
    while (ours < count && objects[ours]->type == OURS) {
        ours++;
    }
    check_spans(objects, count, ours);
    check_pack(objects, count, ours, capacity);
    for (size_t i = 0; i < count; i++) {
        free(objects[i]);
    }
}

FUZZ_TARGET(run)
