/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_rows_encode: any stream gives well-formed messages or is refused. An encoder that remembers
 * keys gives what a new one gives, with less room too, and where memory fails on the way; the
 * order of the keys changes nothing else; and rows that do not look usual give what they give when
 * they do. */
#include "common/fuzz.h"

enum { MAX_ROWS = 64 };

typedef struct encoded {
    uint8_t *out;
    size_t capacity;
    tfw_span spans[MAX_ROWS];
    size_t done;
    size_t len;
    int status;
} encoded;

/* What all calls of a run share. */
typedef struct setting {
    size_t headroom;
    size_t tailroom;
    unsigned flags;
} setting;

typedef struct stream {
    uint8_t *data;
    size_t len;
} stream;

static tfw_rows *new_rows(void) {
    tfw_rows *rows = NULL;
    CHECK_EQ(TFW_OK, tfw_rows_create(SEED, &rows, NULL));
    return rows;
}

static void encode(tfw_rows *rows, encoded *e, const stream *s, const setting *how,
                   size_t max_rows) {
    tfw_error error;
    e->out = fuzz_alloc(e->capacity);
    e->status = tfw_rows_encode(rows, s->data, s->len, how->flags, how->headroom, how->tailroom,
                                e->out, e->capacity, e->spans, max_rows, &e->done, &e->len,
                                &error);
    CHECK(e->status == TFW_OK || e->status == TFW_NEED_SPACE ||
          e->status == TFW_E_UNSUPPORTED || e->status == TFW_E_MEMORY);
    CHECK(e->done <= max_rows && e->len <= e->capacity);
    size_t at = 0;
    for (size_t i = 0; i < e->done; i++) {
        CHECK_EQ(at + how->headroom, e->spans[i].offset);
        at = (size_t)(e->spans[i].offset + e->spans[i].length) + how->tailroom;
    }
    CHECK_EQ(at, e->len);
}

/* With room enough, unless a stream says a thing so often that there is none. */
static void encode_all(tfw_rows *rows, encoded *e, const stream *s, const setting *how) {
    e->capacity = 1 << 12;
    for (;;) {
        encode(rows, e, s, how, MAX_ROWS);
        if (e->status != TFW_NEED_SPACE || e->done == MAX_ROWS || e->capacity > 1 << 20) {
            return;
        }
        free(e->out);
        e->capacity *= 4;
    }
}

/* The messages of b are the first of a. */
static void check_first(const encoded *a, const encoded *b) {
    for (size_t i = 0; i < b->done; i++) {
        const tfw_span *s = &a->spans[i], *t = &b->spans[i];
        CHECK(i < a->done && s->length == t->length);
        CHECK(check_failures != 0 ||
              memcmp(a->out + s->offset, b->out + t->offset, (size_t)s->length) == 0);
    }
}

static void check_same(const encoded *a, const encoded *b) {
    CHECK_EQ(a->status, b->status);
    CHECK_EQ(a->done, b->done);
    CHECK_EQ(a->len, b->len);
    check_first(a, b);
}

static void check_messages(const encoded *e) {
    tfw_dicts d = {.pickle = NULL};
    size_t done = 0;
    CHECK_EQ(TFW_OK, tfw_decode(e->out, e->len, e->spans, e->done, 0, &d, &done, NULL));
    CHECK_EQ(e->done, done);
    tfw_dicts_free(&d);
}

/* ---- Rows that do not look usual ------------------------------------------------------------ */

/* Bytes after an opcode, as far as the encoder knows it; false: the stream ends, or it does not. */
static bool argument_size(const uint8_t *p, const uint8_t *end, size_t *out_size) {
    static const char plain[] = "(.aesut)]}NR\x85\x86\x87\x88\x89\x93\x94";
    static const char counted1[] = "C\x8a\x8c", counted4[] = "BX", counted8[] = "\x8d\x8e\x96";
    size_t left = (size_t)(end - p) - 1, size = 0;
    uint64_t len = 0;
    if (*p != 0 && strchr(plain, *p) != NULL) {
        *out_size = 0;
        return true;
    }
    if (*p == 0) {
        return false;
    }
    size = strchr(counted1, *p) ? 1 : strchr(counted4, *p) ? 4 : strchr(counted8, *p) ? 8 : 0;
    for (size_t i = 0; i < size && i < left; i++) {
        len |= (uint64_t)p[1 + i] << (8 * i);
    }
    switch (*p) {
    case 'h':
    case 'K':
    case 0x80: size = 1; break;
    case 'M': size = 2; break;
    case 'j':
    case 'J': size = 4; break;
    case 'G':
    case 0x95: size = 8; break;
    default: break;
    }
    *out_size = size + (size_t)len;
    return size != 0 && size <= left && len <= left - size;
}

/* The same stream, where every row first sets no items: that is for the slow way. */
static stream disguised(const stream *s) {
    stream other = {.data = fuzz_alloc(3 * s->len)};
    const uint8_t *p = s->data, *end = p + s->len;
    size_t size;
    while (p != end && argument_size(p, end, &size)) {
        bool row = *p == '}';
        size += row && end - p >= 2 && p[1] == 0x94; /* MEMOIZE */
        memcpy(other.data + other.len, p, 1 + size);
        other.len += 1 + size;
        p += 1 + size;
        if (row) {
            memcpy(other.data + other.len, "(u", 2);
            other.len += 2;
        }
    }
    if (p != end) {
        memcpy(other.data + other.len, p, (size_t)(end - p));
        other.len += (size_t)(end - p);
    }
    return other;
}

static void check_disguised(const encoded *expected, const stream *s, const setting *how) {
    static encoded e;
    stream other = disguised(s);
    tfw_rows *rows = new_rows();
    encode_all(rows, &e, &other, how);
    check_same(expected, &e);
    tfw_rows_free(rows);
    free(e.out);
    free(other.data);
}

/* ---- The target ----------------------------------------------------------------------------- */

/* The other order of keys, and back to the first: the same sizes, the same messages. */
static void check_orders(tfw_rows *rows, const encoded *expected, const stream *s, setting how) {
    static encoded e;
    for (int i = 0; i < 2; i++) {
        how.flags ^= TFW_KEEP_ORDER;
        encode_all(rows, &e, s, &how);
        if (expected->status != TFW_NEED_SPACE) {
            CHECK_EQ(expected->status, e.status);
            CHECK_EQ(expected->len, e.len);
            check_messages(&e);
        }
        if (i == 1) {
            check_same(expected, &e);
        }
        free(e.out);
    }
}

/* flags and failing allocation, room, stream. */
static void run(input *in) {
    static encoded all, few;
    uint8_t choice = input_byte(in), around = input_byte(in);
    size_t room = (size_t)input_number(in, 2) % 5000;
    setting how = {.headroom = around & 15, .tailroom = around >> 4,
                   .flags = (choice & 1) != 0 ? TFW_KEEP_ORDER : 0};
    stream s = {.data = fuzz_copy(in->at, input_left(in)), .len = input_left(in)};
    tfw_rows *rows = new_rows(), *fresh = new_rows();
    encode_all(fresh, &all, &s, &how);
    CHECK(all.status != TFW_E_MEMORY);
    check_messages(&all);
    few.capacity = room;
    tfwi_test_fail_allocation = (choice >> 1) - 1;
    encode(rows, &few, &s, &how, room % MAX_ROWS);
    tfwi_test_fail_allocation = -1;
    check_first(&all, &few);
    check_orders(rows, &all, &s, how);
    check_disguised(&all, &s, &how);
    tfw_rows_free(rows);
    tfw_rows_free(fresh);
    free(s.data);
    free(all.out);
    free(few.out);
}

FUZZ_TARGET(run)
