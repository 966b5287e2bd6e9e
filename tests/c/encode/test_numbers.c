/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers on the wire: every writer gives the bytes of the plainest one, for values of all widths,
 * and touches no more than it may. */
#include "check.h"

#include "base/cpu.h"
#include "encode/numbers.h"

enum { VALUES = 1000, CANARY = 0xa5 };

static int64_t ints[VALUES];
static float floats[VALUES];
static uint8_t expected[16384];
static uint8_t found[sizeof expected];

/* Every width from 0 to 64 bits, the edges of each, both signs. */
static void make_values(void) {
    uint64_t state = 7;
    for (size_t i = 0; i < VALUES; i++) {
        unsigned width = (unsigned)(i % 65);
        uint64_t most = width == 0 ? 0 : UINT64_MAX >> (64 - width);
        uint64_t edges[] = {most, most / 2 + 1, check_random(&state) & most, ~most};
        ints[i] = (int64_t)edges[i / 65 % 4];
        floats[i] = (float)(double)ints[i];
    }
}

static uint8_t *plain_varint(uint8_t *p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) {
        *p++ = (uint8_t)(v | 0x80);
    }
    *p++ = (uint8_t)v;
    return p;
}

static void check_same(const uint8_t *end, const uint8_t *expected_end) {
    CHECK_EQ(expected_end - expected, end - found);
    CHECK(memcmp(expected, found, (size_t)(end - found)) == 0);
    CHECK_EQ(CANARY, end[TFWI_SLACK]);
}

static void check_lists(const tfwi_writer *writer) {
    for (size_t first = 0; first < VALUES; first += 7) {
        for (size_t count = 0; count <= VALUES - first; count = 2 * count + 1) {
            uint8_t *p = expected;
            for (size_t i = 0; i < count; i++) {
                p = plain_varint(p, (uint64_t)ints[first + i]);
            }
            memset(found, CANARY, sizeof found);
            check_same(writer->int64s(ints + first, count, found), p);
        }
    }
}

/* Lists of numbers that take a byte each, but for one, at any address. */
static void check_short_lists(const tfwi_writer *writer) {
    enum { MOST = 40 };
    static const int64_t others[] = {127, 128, INT64_C(1) << 32, INT64_C(1) << 56, -1};
    uint8_t unaligned[8 * MOST + 1];
    for (size_t count = 0; count <= MOST; count++) {
        for (size_t other = 0; other <= count; other++) {
            uint8_t *p = expected;
            for (size_t i = 0; i < count; i++) {
                int64_t v = i == other ? others[(count + other) % 5] : (int64_t)(i * 31 % 128);
                memcpy(unaligned + 1 + 8 * i, &v, sizeof v);
                p = plain_varint(p, (uint64_t)v);
            }
            memset(found, CANARY, 1024);
            check_same(writer->int64s(unaligned + 1, count, found), p);
        }
    }
}

/* A feature of a name that is name_len bytes long, as protobuf writes it. */
static uint8_t *plain_feature(uint8_t *p, size_t name_len, int32_t kind, size_t record) {
    uint8_t value[TFWI_MAX_VARINT];
    size_t len = sizeof(float);
    uint32_t bits;
    memcpy(&bits, &floats[record], sizeof bits);
    tfwi_store32(value, bits);
    if (kind == TFW_INT64) {
        len = (size_t)(plain_varint(value, (uint64_t)ints[record]) - value);
    }
    const size_t list = 2 + len, feature = 2 + list, entry = 2 + name_len + 2 + feature;
    const uint8_t tags[] = {0x0a, (uint8_t)entry, 0x0a, (uint8_t)name_len};
    memcpy(p, tags, sizeof tags);
    memset(p + 4, 'k', name_len);
    p += 4 + name_len;
    const uint8_t inner[] = {0x12, (uint8_t)feature, (uint8_t)(kind << 3 | 2), (uint8_t)list,
                             0x0a, (uint8_t)len};
    memcpy(p, inner, sizeof inner);
    memcpy(p + 6, value, len);
    return p + 6 + len;
}

/* Names of 0 to 109 bytes; longer ones have no template, or not always. */
static void check_scalars(const tfwi_writer *writer) {
    enum { NAMES = 110 };
    static tfwi_scalar scalars[NAMES];
    static const tfwi_scalar *pointers[NAMES];
    static uint64_t memory[NAMES][64];
    char name[NAMES];
    memset(name, 'k', sizeof name);
    for (size_t len = 0; len < NAMES; len++) {
        tfwi_prefix f;
        int32_t kind = len % 3 == 0 ? TFW_FLOAT : TFW_INT64;
        size_t words = tfwi_prefix_text_words(len);
        CHECK(words + tfwi_prefix_template_words(len) <= 64);
        pointers[len] = &scalars[len];
        tfwi_prefix_init(&f, name, len, kind, memory[len]);
        tfwi_prefix_prepare(&f, memory[len] + words);
        bool usable = tfwi_scalar_init(&scalars[len], &f, kind, kind == TFW_FLOAT ? (void *)floats
                                                                                : (void *)ints);
        CHECK_EQ(len + 8 + TFWI_MAX_VARINT < 0x80, usable);
    }
    for (size_t record = 0; record < VALUES; record++) {
        uint8_t *p = expected;
        for (size_t len = 0; len < NAMES; len++) {
            p = plain_feature(p, len, scalars[len].kind, record);
        }
        memset(found, CANARY, sizeof found);
        check_same(writer->scalars(pointers, NAMES, record, found), p);
    }
}

static void test_every_writer_gives_the_same_bytes(void) {
    size_t supported = 0;
    const tfwi_writer *writer;
    make_values();
    for (size_t i = 0; (writer = tfwi_writer_at(i)) != NULL; i++) {
        if (tfwi_cpu_has(writer->features)) {
            supported++;
            check_lists(writer);
            check_short_lists(writer);
            check_scalars(writer);
        }
    }
    CHECK(supported >= 1);
    CHECK(tfwi_cpu_has(tfwi_writer_best()->features));
}

static void test_a_long_name_has_no_scalar(void) {
    char name[200] = {0};
    uint64_t memory[128];
    tfwi_prefix f;
    tfwi_scalar scalar;
    tfwi_prefix_init(&f, name, sizeof name, TFW_INT64, memory);
    tfwi_prefix_prepare(&f, memory + tfwi_prefix_text_words(sizeof name));
    CHECK(!tfwi_scalar_init(&scalar, &f, TFW_INT64, ints));
}

int main(void) {
    RUN(test_every_writer_gives_the_same_bytes);
    RUN(test_a_long_name_has_no_scalar);
    return check_report("numbers");
}
