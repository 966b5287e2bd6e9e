/* SPDX-License-Identifier: Apache-2.0 */
/* Rows out of pickles: known streams, both ways of reading them, streams that lie. */
#include "check.h"

extern bool tfwi_test_no_usual_rows; /* pickle_rows.c: every row goes through the machine */

/* What tfwire._examples.encode_rows pickles, where l = [7, 8] and t = (28, 28), of
 *   [{"a": True, "b": -5, "c": 2.5, "d": "t\u00e9xt", "e": b"bytes", "f": [1, 2.5], "g": [],
 *     "h": l},
 *    {"a": False, "b": 300, "c": 0.0, "d": "t\u00e9xt", "e": b"", "f": [3, 4], "g": ["x", b"y"],
 *     "h": l},
 *    {"b": 70000, "a": 2**40, "c": [[1, 2], [3, 4]], "d": t, "e": t},
 *    {"only": 1},
 *    {},
 *    {"a": np.int64(3), "c": np.arange(3), "d": np.array(["p", "q"]), "h": bytearray(b"ba"),
 *     "f": (1, 2, 3, 4)},
 *    the first row again] */
static char stream[] =
    "\x80\x05\x95\x6e\x01\x00\x00\x00\x00\x00\x00\x5d\x94\x28\x7d\x94\x28\x8c\x01\x61\x94\x88\x8c"
    "\x01\x62\x94\x4a\xfb\xff\xff\xff\x8c\x01\x63\x94\x47\x40\x04\x00\x00\x00\x00\x00\x00\x8c\x01"
    "\x64\x94\x8c\x05\x74\xc3\xa9\x78\x74\x94\x8c\x01\x65\x94\x43\x05\x62\x79\x74\x65\x73\x94\x8c"
    "\x01\x66\x94\x5d\x94\x28\x4b\x01\x47\x40\x04\x00\x00\x00\x00\x00\x00\x65\x8c\x01\x67\x94\x5d"
    "\x94\x8c\x01\x68\x94\x5d\x94\x28\x4b\x07\x4b\x08\x65\x75\x7d\x94\x28\x68\x02\x89\x68\x03\x4d"
    "\x2c\x01\x68\x04\x47\x00\x00\x00\x00\x00\x00\x00\x00\x68\x05\x68\x06\x68\x07\x43\x00\x94\x68"
    "\x09\x5d\x94\x28\x4b\x03\x4b\x04\x65\x68\x0b\x5d\x94\x28\x8c\x01\x78\x94\x43\x01\x79\x94\x65"
    "\x68\x0d\x68\x0e\x75\x7d\x94\x28\x68\x03\x4a\x70\x11\x01\x00\x68\x02\x8a\x06\x00\x00\x00\x00"
    "\x00\x01\x68\x04\x5d\x94\x28\x5d\x94\x28\x4b\x01\x4b\x02\x65\x5d\x94\x28\x4b\x03\x4b\x04\x65"
    "\x65\x68\x05\x4b\x1c\x4b\x1c\x86\x94\x68\x07\x68\x19\x75\x7d\x94\x8c\x04\x6f\x6e\x6c\x79\x94"
    "\x4b\x01\x73\x7d\x94\x7d\x94\x28\x68\x02\x8c\x1c\x74\x66\x77\x69\x72\x65\x2e\x5f\x65\x78\x61"
    "\x6d\x70\x6c\x65\x73\x2e\x65\x6e\x63\x6f\x64\x65\x5f\x72\x6f\x77\x73\x94\x8c\x06\x6e\x61\x74"
    "\x69\x76\x65\x94\x93\x94\x4b\x03\x85\x94\x52\x94\x68\x04\x68\x20\x4b\x03\x43\x18\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x94\x86"
    "\x94\x52\x94\x68\x05\x68\x20\x5d\x94\x28\x8c\x01\x70\x94\x8c\x01\x71\x94\x65\x85\x94\x52\x94"
    "\x68\x0d\x96\x02\x00\x00\x00\x00\x00\x00\x00\x62\x61\x94\x68\x09\x28\x4b\x01\x4b\x02\x4b\x03"
    "\x4b\x04\x74\x94\x75\x68\x01\x65\x2e";

/* The messages, one after the other, as protobuf writes them. */
static const char messages[] =
    "\x0a\x77\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01\x0a\x13\x0a\x01\x62\x12"
    "\x0e\x1a\x0c\x0a\x0a\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x0d\x0a\x01\x63"
    "\x12\x08\x12\x06\x0a\x04\x00\x00\x20\x40\x0a\x0e\x0a\x01\x64\x12\x09\x0a\x07\x0a"
    "\x05\x74\xc3\xa9\x78\x74\x0a\x0e\x0a\x01\x65\x12\x09\x0a\x07\x0a\x05\x62\x79\x74"
    "\x65\x73\x0a\x11\x0a\x01\x66\x12\x0c\x12\x0a\x0a\x08\x00\x00\x80\x3f\x00\x00\x20"
    "\x40\x0a\x05\x0a\x01\x67\x12\x00\x0a\x0b\x0a\x01\x68\x12\x06\x1a\x04\x0a\x02\x07"
    "\x08\x0a\x6c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x00\x0a\x0b\x0a\x01\x62"
    "\x12\x06\x1a\x04\x0a\x02\xac\x02\x0a\x0d\x0a\x01\x63\x12\x08\x12\x06\x0a\x04\x00"
    "\x00\x00\x00\x0a\x0e\x0a\x01\x64\x12\x09\x0a\x07\x0a\x05\x74\xc3\xa9\x78\x74\x0a"
    "\x09\x0a\x01\x65\x12\x04\x0a\x02\x0a\x00\x0a\x0b\x0a\x01\x66\x12\x06\x1a\x04\x0a"
    "\x02\x03\x04\x0a\x0d\x0a\x01\x67\x12\x08\x0a\x06\x0a\x01\x78\x0a\x01\x79\x0a\x0b"
    "\x0a\x01\x68\x12\x06\x1a\x04\x0a\x02\x07\x08\x0a\x48\x0a\x0f\x0a\x01\x61\x12\x0a"
    "\x1a\x08\x0a\x06\x80\x80\x80\x80\x80\x20\x0a\x0c\x0a\x01\x62\x12\x07\x1a\x05\x0a"
    "\x03\xf0\xa2\x04\x0a\x0d\x0a\x01\x63\x12\x08\x1a\x06\x0a\x04\x01\x02\x03\x04\x0a"
    "\x0b\x0a\x01\x64\x12\x06\x1a\x04\x0a\x02\x1c\x1c\x0a\x0b\x0a\x01\x65\x12\x06\x1a"
    "\x04\x0a\x02\x1c\x1c\x0a\x0f\x0a\x0d\x0a\x04\x6f\x6e\x6c\x79\x12\x05\x1a\x03\x0a"
    "\x01\x01\x0a\x00\x0a\x45\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x03\x0a\x0c"
    "\x0a\x01\x63\x12\x07\x1a\x05\x0a\x03\x00\x01\x02\x0a\x0d\x0a\x01\x64\x12\x08\x0a"
    "\x06\x0a\x01\x70\x0a\x01\x71\x0a\x0d\x0a\x01\x66\x12\x08\x1a\x06\x0a\x04\x01\x02"
    "\x03\x04\x0a\x0b\x0a\x01\x68\x12\x06\x0a\x04\x0a\x02\x62\x61\x0a\x77\x0a\x0a\x0a"
    "\x01\x61\x12\x05\x1a\x03\x0a\x01\x01\x0a\x13\x0a\x01\x62\x12\x0e\x1a\x0c\x0a\x0a"
    "\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x0d\x0a\x01\x63\x12\x08\x12\x06\x0a"
    "\x04\x00\x00\x20\x40\x0a\x0e\x0a\x01\x64\x12\x09\x0a\x07\x0a\x05\x74\xc3\xa9\x78"
    "\x74\x0a\x0e\x0a\x01\x65\x12\x09\x0a\x07\x0a\x05\x62\x79\x74\x65\x73\x0a\x11\x0a"
    "\x01\x66\x12\x0c\x12\x0a\x0a\x08\x00\x00\x80\x3f\x00\x00\x20\x40\x0a\x05\x0a\x01"
    "\x67\x12\x00\x0a\x0b\x0a\x01\x68\x12\x06\x1a\x04\x0a\x02\x07\x08";

/* The function of Python that stands for an array. */
#define NATIVE "\x8c\x1ctfwire._examples.encode_rows\x94\x8c\x06native\x94\x93\x94"

/* The array was pickled on a little-endian machine; its numbers are in the order of this one. */
static void turn_array(void) {
#ifdef TFWI_BIG_ENDIAN
    for (size_t i = 0; i + 26 < sizeof stream; i++) {
        if (memcmp(stream + i, "C\x18\0\0\0\0\0\0\0\0\x01", 11) == 0) {
            for (uint64_t v = 0; v < 3; v++) {
                memcpy(stream + i + 2 + 8 * v, &v, 8);
            }
        }
    }
#endif
}

#define STREAM_LEN (sizeof stream - 1)
#define MESSAGES_LEN (sizeof messages - 1)
#define ROWS 7

typedef struct result {
    int status;
    size_t done;
    size_t len;
    uint8_t out[4096];
    tfw_span spans[16];
} result;

static void encode(tfw_rows *rows, const void *data, size_t len, bool usual, unsigned flags,
                   result *out) {
    tfwi_test_no_usual_rows = !usual;
    memset(out, 0, sizeof *out);
    out->status = tfw_rows_encode(rows, data, len, flags, 0, 0, out->out, sizeof out->out,
                                  out->spans, 16, &out->done, &out->len, NULL);
    memset(out->out + out->len, 0, sizeof out->out - out->len);
    tfwi_test_no_usual_rows = false;
}

static tfw_rows *new_rows(void) {
    tfw_rows *rows;
    CHECK_EQ(TFW_OK, tfw_rows_create(SEED, &rows, NULL));
    return rows;
}

static void test_a_stream_of_every_kind_of_value(void) {
    tfw_rows *rows = new_rows();
    result r;
    for (int times = 0; times < 8; times++) { /* keys and templates are remembered */
        encode(rows, stream, STREAM_LEN, times % 2 == 0, 0, &r);
        CHECK_EQ(TFW_OK, r.status);
        CHECK_EQ(ROWS, r.done);
        CHECK_EQ(MESSAGES_LEN, r.len);
        CHECK(memcmp(messages, r.out, MESSAGES_LEN) == 0);
    }
    tfw_rows_free(rows);
}

/* Both ways of reading agree on a stream, which lies before an unreadable page. */
static void check_agreement(tfw_rows *rows, const uint8_t *data, size_t len) {
    static result usual, machine;
    guarded g = guarded_new(len, true);
    memcpy(g.data, data, len);
    encode(rows, g.data, len, true, 0, &usual);
    encode(rows, g.data, len, false, 0, &machine);
    CHECK(usual.status <= TFW_OK);
    CHECK_EQ(machine.status, usual.status);
    CHECK_EQ(machine.done, usual.done);
    CHECK_EQ(machine.len, usual.len);
    CHECK(memcmp(machine.out, usual.out, sizeof usual.out) == 0);
    guarded_free(g);
}

/* f = np.array([1.5], np.float32); [{"s": np.float32(0.5), "a": np.ones(2, np.float32)},
 * {"s": np.int8(-1), "a": np.zeros(0, np.int64)}, {"s": f, "a": f},
 * {"s": np.array(["x"]), "a": []}] */
static void test_values_of_numpy(void) {
    static const uint8_t pickled[] =
        "\x80\x05\x95\xa9\x00\x00\x00\x00\x00\x00\x00\x5d\x94\x28\x7d\x94\x28\x8c\x01\x73"
        "\x94\x8c\x1c\x74\x66\x77\x69\x72\x65\x2e\x5f\x65\x78\x61\x6d\x70\x6c\x65\x73\x2e"
        "\x65\x6e\x63\x6f\x64\x65\x5f\x72\x6f\x77\x73\x94\x8c\x06\x6e\x61\x74\x69\x76\x65"
        "\x94\x93\x94\x47\x3f\xe0\x00\x00\x00\x00\x00\x00\x85\x94\x52\x94\x8c\x01\x61\x94"
        "\x68\x05\x4b\x02\x43\x08\x00\x00\x80\x3f\x00\x00\x80\x3f\x94\x86\x94\x52\x94\x75"
        "\x7d\x94\x28\x68\x02\x68\x05\x4a\xff\xff\xff\xff\x85\x94\x52\x94\x68\x08\x68\x05"
        "\x4b\x03\x43\x00\x94\x86\x94\x52\x94\x75\x7d\x94\x28\x68\x02\x68\x05\x4b\x02\x43"
        "\x04\x00\x00\xc0\x3f\x94\x86\x94\x52\x94\x68\x08\x68\x15\x75\x7d\x94\x28\x68\x02"
        "\x68\x05\x5d\x94\x8c\x01\x78\x94\x61\x85\x94\x52\x94\x68\x08\x5d\x94\x75\x65\x2e";
    static const char expected[] =
        "\x0a\x22\x0a\x11\x0a\x01\x61\x12\x0c\x12\x0a\x0a\x08\x00\x00\x80\x3f\x00\x00\x80"
        "\x3f\x0a\x0d\x0a\x01\x73\x12\x08\x12\x06\x0a\x04\x00\x00\x00\x3f\x0a\x1e\x0a\x07"
        "\x0a\x01\x61\x12\x02\x1a\x00\x0a\x13\x0a\x01\x73\x12\x0e\x1a\x0c\x0a\x0a\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x1e\x0a\x0d\x0a\x01\x61\x12\x08\x12\x06\x0a"
        "\x04\x00\x00\xc0\x3f\x0a\x0d\x0a\x01\x73\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f"
        "\x0a\x13\x0a\x05\x0a\x01\x61\x12\x00\x0a\x0a\x0a\x01\x73\x12\x05\x0a\x03\x0a\x01"
        "\x78";
#ifndef TFWI_BIG_ENDIAN
    tfw_rows *rows = new_rows();
    result r;
    encode(rows, pickled, sizeof pickled - 1, true, 0, &r);
    CHECK_EQ(TFW_OK, r.status);
    CHECK_EQ(sizeof expected - 1, r.len);
    CHECK(memcmp(expected, r.out, sizeof expected - 1) == 0);
    for (size_t len = 1; len < sizeof pickled; len++) {
        check_agreement(rows, pickled, len);
    }
    tfw_rows_free(rows);
#endif
}

/* A stream under construction. */
typedef struct builder {
    uint8_t data[16384];
    size_t len;
} builder;

static void put(builder *b, const char *bytes, size_t len) {
    memcpy(b->data + b->len, bytes, len);
    b->len += len;
}

#define PUT(b, text) put(b, text, sizeof(text) - 1)

/* More keys than one byte can number, longer forms of strings and numbers, frames everywhere, a
 * list in three parts. */
static void test_the_longer_forms_of_opcodes(void) {
    static builder b;
    tfw_rows *rows = new_rows();
    result r;
    b.len = 0;
    PUT(&b, "\x80\x05]\x94(}\x94(");
    for (int i = 0; i < 300; i++) {
        char key[] = "\x8c\x02??\x94M\x34\x12";
        key[2] = (char)('a' + i / 26);
        key[3] = (char)('a' + i % 26);
        put(&b, key, 8);
    }
    PUT(&b, "u}\x94(j\x2b\x01\0\0\x95\0\0\0\0\0\0\0\0X\x02\0\0\0\xc3\xa9\x94");
    PUT(&b, "\x95\0\0\0\0\0\0\0\0h\x02]\x94(K\x01\x95\0\0\0\0\0\0\0\0K\x02" "e("
            "J\xff\xff\xff\xff\x8a\x01\x80" "e(\x8a\0\x8a\x08\0\0\0\0\0\0\0\x80" "e");
    PUT(&b, "h\x03\x8e\x03\0\0\0\0\0\0\0\x01\x02\x03\x94h\x04\x96\x01\0\0\0\0\0\0\0z\x94");
    PUT(&b, "h\x05\x8d\x01\0\0\0\0\0\0\0y\x94h\x06" "B\0\0\0\0\x94h\x07h\x02u");
    PUT(&b, "}\x94(h\x02K\x01u(h\x03K\x02uee.");
    encode(rows, b.data, b.len, true, 0, &r);
    CHECK_EQ(TFW_NEED_SPACE, r.status); /* 300 features */
    size_t done, len;
    static uint8_t out[2][16384];
    tfw_span spans[4];
    for (int usual = 0; usual < 2; usual++) {
        tfwi_test_no_usual_rows = !usual;
        CHECK_EQ(TFW_OK, tfw_rows_encode(rows, b.data, b.len, 0, 0, 0, out[usual], 16384, spans, 4,
                                         &done, &len, NULL));
        CHECK_EQ(3, done);
    }
    tfwi_test_no_usual_rows = false;
    CHECK(memcmp(out[0], out[1], len) == 0);
    const uint8_t *second = out[0] + spans[1].offset;
    static const uint8_t list[] = "\x1a\x23\n\x21\x01\x02" /* [1, 2, -1, -128, 0, -2**63] */
                                  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                  "\x80\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"
                                  "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    bool found = false;
    for (size_t i = 0; i + sizeof list <= spans[1].length; i++) {
        found = found || memcmp(second + i, list, sizeof list - 1) == 0;
    }
    CHECK(found);
    tfw_rows_free(rows);
}

static void test_the_order_of_a_row_can_be_kept(void) {
    static const char row[] = "\x80\x05}\x94(\x8c\x01z\x94K\x01\x8c\x01y\x94K\x02u.";
    tfw_rows *rows = new_rows();
    result r;
    for (int times = 0; times < 2; times++) {
        encode(rows, row, sizeof row - 1, true, TFW_KEEP_ORDER, &r);
        CHECK_EQ(TFW_OK, r.status);
        CHECK_EQ('z', r.out[6]);
        encode(rows, row, sizeof row - 1, true, 0, &r);
        CHECK_EQ('y', r.out[6]);
    }
    tfw_rows_free(rows);
}

static void test_room_is_left_around_every_message(void) {
    tfw_rows *rows = new_rows();
    uint8_t out[4096];
    tfw_span spans[ROWS];
    size_t done, len, at = 0;
    CHECK_EQ(TFW_OK, tfw_rows_encode(rows, (const uint8_t *)stream, STREAM_LEN, 0, 12, 4, out,
                                     sizeof out, spans, ROWS, &done, &len, NULL));
    for (size_t i = 0, from = 0; i < ROWS; i++) {
        CHECK_EQ(at + 12, spans[i].offset);
        CHECK(memcmp(messages + from, out + spans[i].offset, spans[i].length) == 0);
        at = spans[i].offset + spans[i].length + 4;
        from += spans[i].length;
    }
    CHECK_EQ(at, len);
    tfw_rows_free(rows);
}

/* Values that Python must look at: the rows before them are encoded. */
static void test_room_that_overflows_is_refused(void) {
    const uint8_t stream[] = {0x80, 5, '}', 0x94, '.'};
    tfw_rows *rows;
    tfw_span span;
    size_t done = 1, len = 1;
    CHECK_EQ(TFW_OK, tfw_rows_create(SEED, &rows, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_rows_encode(rows, stream, sizeof stream, 0, SIZE_MAX, 1, NULL, 0,
                                             &span, 1, &done, &len, NULL));
    CHECK(done == 0 && len == 0);
    tfw_rows_free(rows);
}

static void test_what_is_not_known_ends_the_run(void) {
    static const struct {
        const char *value;
        size_t len;
    } values[] = {
#define VALUE(text) {text, sizeof text - 1}
        VALUE("]\x94(K\x01Ne"),                        /* [1, None] */
        VALUE("]\x94(]\x94Na]\x94K\x01" "ae"),        /* [[None], [1]] */
        VALUE("N\x85\x94"),                            /* (None,) */
        VALUE("\x8a\x09\0\0\0\0\0\0\0\x80\0"),         /* 2**63 */
        VALUE("}\x94"),                                 /* a dict */
        VALUE("]\x94(K\x01\x8c\x01x\x94" "e"),          /* [1, "x"] */
        VALUE("]\x94(]\x94K\x01" "a]\x94(K\x01K\x02" "ee"), /* [[1], [1, 2]] */
        VALUE("]\x94(]\x94(]\x94K\x01" "a]\x94" "eK\x01" "e"), /* deeper and mixed */
        VALUE("\x8c\x03\xed\xa0\x80\x94"),              /* a lone surrogate */
        VALUE("h\x00"),                                 /* the row itself */
        VALUE("h\x7f"),                                 /* nothing */
        VALUE("\x8c\x01x\x94\x8c\x01y\x94\x93\x94)R\x94"), /* x.y() */
        VALUE(NATIVE ")R\x94"),                         /* native() */
        VALUE(NATIVE "K\x00" "C\x01z\x94\x86\x94R\x94"), /* native(0, b"z") */
        VALUE("]\x94" NATIVE "K\x00" "C\x00\x94\x86\x94R\x94" "a"), /* [native(0, b"")] */
        VALUE(NATIVE "K\x01" "C\x01z\x94\x86\x94R\x94"), /* native(1, b"z") */
        VALUE(NATIVE "K\x04" "C\x00\x94\x86\x94R\x94"),  /* native(4, b"") */
        VALUE("Z"),                                     /* no opcode */
#undef VALUE
    };
    tfw_rows *rows = new_rows();
    result r;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char data[128] = "\x80\x05]\x94(}\x94(\x8c\x01k\x94K\x07u}\x94(h\x02";
        size_t len = 19;
        memcpy(data + len, values[i].value, values[i].len);
        memcpy(data + len + values[i].len, "ue.", 3);
        for (int usual = 0; usual < 2; usual++) {
            encode(rows, data, len + values[i].len + 3, usual, 0, &r);
            CHECK_EQ(TFW_E_UNSUPPORTED, r.status);
            CHECK_EQ(1, r.done);
            CHECK_EQ(14, r.len);
        }
    }
    tfw_rows_free(rows);
}

/* What Python makes of arrays without values, of every kind. */
static void test_arrays_without_values_keep_their_kind(void) {
    for (char kind = TFW_BYTES; kind <= TFW_INT64; kind++) {
        char row[] = "\x80\x05}\x94\x8c\x01k\x94" NATIVE "K\x01" "C\x00\x94\x86\x94R\x94s.";
        char message[] = "\x0a\x09\x0a\x07\x0a\x01k\x12\x02\x0a\x00";
        tfw_rows *rows = new_rows();
        result r;
        row[sizeof row - 11] = kind;
        message[9] = (char)(kind << 3 | 2);
        for (int usual = 0; usual < 2; usual++) {
            encode(rows, row, sizeof row - 1, usual, 0, &r);
            CHECK_EQ(TFW_OK, r.status);
            CHECK_EQ(sizeof message - 1, r.len);
            CHECK(memcmp(r.out + r.spans[0].offset, message, sizeof message - 1) == 0);
        }
        tfw_rows_free(rows);
    }
}

/* None, and what Python makes of other values that are missing. */
static void test_a_missing_value_is_an_absent_feature(void) {
    static const char one[] = "\x80\x05}\x94\x8c\x01k\x94Ns.",
        some[] = "\x80\x05}\x94(\x8c\x01" "a\x94N\x8c\x01k\x94K\x07\x8c\x01z\x94" NATIVE
                 "K\x00" "C\x00\x94\x86\x94R\x94\x8c\x01y\x94h\x09u.",
        message[] = "\x0a\x0c\x0a\x0a\x0a\x01k\x12\x05\x1a\x03\x0a\x01\x07";
#undef NATIVE
    tfw_rows *rows = new_rows();
    result r;
    for (int times = 0; times < 16; times++) { /* from some use on, keys have templates */
        encode(rows, one, sizeof one - 1, times % 2 != 0, 0, &r);
        CHECK(r.status == TFW_OK && r.len == 2 && memcmp(r.out, "\x0a\x00", 2) == 0);
        encode(rows, some, sizeof some - 1, times % 2 != 0, 0, &r);
        CHECK(r.status == TFW_OK && r.len == sizeof message - 1);
        CHECK(memcmp(r.out, message, r.len) == 0);
    }
    tfw_rows_free(rows);
}

static void test_a_key_twice_is_not_known(void) {
    static const char row[] = "\x80\x05}\x94(\x8c\x01k\x94K\x01" "C\x01k\x94K\x02u.";
    tfw_rows *rows = new_rows();
    result r;
    for (int times = 0; times < 3; times++) {
        encode(rows, row, sizeof row - 1, true, 0, &r);
        CHECK_EQ(TFW_E_UNSUPPORTED, r.status);
    }
    tfw_rows_free(rows);
}

static void test_a_list_within_itself_is_not_known(void) {
    static const char row[] = "\x80\x05}\x94\x8c\x01k\x94]\x94h\x02" "as.";
    tfw_rows *rows = new_rows();
    result r;
    encode(rows, row, sizeof row - 1, true, 0, &r);
    CHECK_EQ(TFW_E_UNSUPPORTED, r.status);
    tfw_rows_free(rows);
}

/* Ends in an unreadable page, whatever the capacity. */
static void test_a_full_output_is_never_overrun(void) {
    tfw_rows *rows = new_rows();
    tfw_span spans[ROWS];
    size_t done, len;
    for (size_t capacity = 0; capacity < MESSAGES_LEN + 512; capacity += 3) {
        guarded g = guarded_new(capacity, true);
        int status = tfw_rows_encode(rows, (const uint8_t *)stream, STREAM_LEN, 0, 0, 0, g.data,
                                     capacity, spans, ROWS, &done, &len, NULL);
        CHECK(status == (done == ROWS ? TFW_OK : TFW_NEED_SPACE));
        CHECK(memcmp(messages, g.data, len) == 0);
        guarded_free(g);
    }
    CHECK_EQ(ROWS, done);
    CHECK_EQ(TFW_NEED_SPACE, tfw_rows_encode(rows, (const uint8_t *)stream, STREAM_LEN, 0, 0, 0,
                                             (uint8_t[4096]){0}, 4096, spans, ROWS - 1, &done,
                                             &len, NULL));
    tfw_rows_free(rows);
}

static void test_every_truncation_of_a_stream(void) {
    tfw_rows *rows = new_rows();
    for (size_t len = 0; len < STREAM_LEN; len++) {
        check_agreement(rows, (const uint8_t *)stream, len);
    }
    tfw_rows_free(rows);
}

static void test_streams_that_lie(void) {
    static const uint8_t opcodes[] = "(.aehjsut)]}RBCGJKMXN\x80\x85\x86\x87\x88\x8a\x8c\x8d"
                                     "\x8e\x93\x94\x95\x96\x00\x01\x02\x7f\xff";
    tfw_rows *rows = new_rows();
    uint8_t data[STREAM_LEN];
    for (size_t at = 0; at < STREAM_LEN; at++) {
        for (size_t i = 0; i < sizeof opcodes; i++) {
            memcpy(data, stream, STREAM_LEN);
            data[at] = opcodes[i];
            check_agreement(rows, data, STREAM_LEN);
        }
    }
    uint64_t seed = 11;
    for (int times = 0; times < 20000; times++) {
        memcpy(data, stream, STREAM_LEN);
        for (uint64_t n = 1 + check_random(&seed) % 6; n > 0; n--) {
            data[check_random(&seed) % STREAM_LEN] =
                opcodes[check_random(&seed) % sizeof opcodes];
        }
        check_agreement(rows, data, STREAM_LEN);
    }
    tfw_rows_free(rows);
}

static void test_more_keys_than_are_remembered(void) {
    tfw_rows *rows = new_rows();
    result r;
    for (int i = 0; i < 10000; i++) {
        uint8_t row[] = "\x80\x05}\x94\x8c\x03" "000\x94K\x01s.";
        row[6] = (uint8_t)('0' + i / 1000);
        row[7] = (uint8_t)('0' + i / 32 % 32);
        row[8] = (uint8_t)('0' + i % 32);
        encode(rows, row, sizeof row - 1, true, 0, &r);
        CHECK(r.status == TFW_OK && r.len == 16 && memcmp(r.out + 6, row + 6, 3) == 0);
    }
    tfw_rows_free(rows);
}

#ifdef TFW_TEST_FAULTS
/* Each allocation fails for a stream read in one of the two ways; the rows serve again. */
static void fail_every_allocation(const void *data, size_t len, bool usual) {
    result expected, r = {.status = TFW_E_MEMORY}, again;
    tfw_rows *rows = new_rows();
    encode(rows, data, len, usual, 0, &expected);
    tfw_rows_free(rows);
    for (long n = 0; r.status == TFW_E_MEMORY; n++) {
        tfwi_test_fail_allocation = n;
        r.status = tfw_rows_create(SEED, &rows, NULL);
        if (r.status == TFW_OK) {
            encode(rows, data, len, usual, 0, &r);
        }
        tfwi_test_fail_allocation = -1;
        if (rows != NULL && r.status == TFW_E_MEMORY) {
            encode(rows, data, len, usual, 0, &again);
            CHECK_EQ(expected.len, again.len);
        }
        tfw_rows_free(rows);
    }
    CHECK_EQ(TFW_OK, r.status);
    CHECK_EQ(expected.len, r.len);
    CHECK(memcmp(expected.out, r.out, expected.len) == 0);
}
#endif

static void test_every_failing_allocation_is_reported(void) {
#ifdef TFW_TEST_FAULTS
    static const char row[] = "\x80\x05}\x94(\x8c\x01" "a\x94]\x94(K\x01K\x02" "e\x8c\x01"
                              "b\x94K\x03u.";
    for (int usual = 0; usual < 2; usual++) {
        fail_every_allocation(stream, STREAM_LEN, usual != 0);
        fail_every_allocation(row, sizeof row - 1, usual != 0); /* not in a list */
    }
#endif
}

int main(void) {
    turn_array();
    RUN(test_a_stream_of_every_kind_of_value);
    RUN(test_values_of_numpy);
    RUN(test_the_longer_forms_of_opcodes);
    RUN(test_the_order_of_a_row_can_be_kept);
    RUN(test_room_is_left_around_every_message);
    RUN(test_room_that_overflows_is_refused);
    RUN(test_what_is_not_known_ends_the_run);
    RUN(test_arrays_without_values_keep_their_kind);
    RUN(test_a_missing_value_is_an_absent_feature);
    RUN(test_a_key_twice_is_not_known);
    RUN(test_a_list_within_itself_is_not_known);
    RUN(test_a_full_output_is_never_overrun);
    RUN(test_every_truncation_of_a_stream);
    RUN(test_streams_that_lie);
    RUN(test_more_keys_than_are_remembered);
    RUN(test_every_failing_allocation_is_reported);
    return check_report("rows");
}
