/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and types of Arrow from a consumer's side, by the words of the format alone: whether they
 * are well-formed, what their rows hold, and releasing them in any order. */
#ifndef TFWIRE_TESTS_FUZZ_ARROW_CHECK_H
#define TFWIRE_TESTS_FUZZ_ARROW_CHECK_H

#include "fuzz.h"

#include "arrow/abi.h"

enum { MOST_CHILDREN = 16 };

/* ---- Small things --------------------------------------------------------------------------- */

static inline bool is_string_type(const char *format) {
    return format[1] == '\0' && strchr("zZuU", format[0]) != NULL;
}

static inline bool is_wide_type(const char *format) { return strchr("ZU", format[0]) != NULL; }

static inline size_t size_of_type(const char *format) { return format[0] == 'l' ? 8 : 4; }

static inline int64_t fixed_size(const char *format) { return strtoll(format + 3, NULL, 10); }

static inline bool is_null(const struct ArrowArray *a, int64_t at) {
    const uint8_t *bits = a->buffers[0];
    return bits != NULL && (bits[at / 8] >> at % 8 & 1) == 0;
}

static inline int64_t offset_at(const struct ArrowArray *a, bool wide, int64_t at) {
    return wide ? ((const int64_t *)a->buffers[1])[at] : ((const int32_t *)a->buffers[1])[at];
}

/* A character of UTF-8, by its definition: its length, or 0. */
static inline size_t utf8_character(const uint8_t *p, size_t len) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t size = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3
                        : p[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = size < 2 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (i >= len || p[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (p[i] & 0x3fu);
    }
    const bool good = code >= least[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return good ? size : 0;
}

static inline bool is_utf8_text(const uint8_t *p, size_t len) {
    for (size_t i = 0, size; i < len; i += size) {
        size = utf8_character(p + i, len - i);
        if (size == 0) {
            return false;
        }
    }
    return true;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

enum { NULL_HASH = 77, LIST_HASH = 88 };

/* What element i holds, as a number that does not depend on how it is laid out. */
static inline uint64_t row_hash(const struct ArrowSchema *t, const struct ArrowArray *a,
                                int64_t i) {
    const int64_t at = a->offset + i;
    uint64_t h = LIST_HASH;
    if (is_null(a, at)) {
        return NULL_HASH;
    }
    if (t->dictionary != NULL) {
        return row_hash(t->dictionary, a->dictionary, ((const int32_t *)a->buffers[1])[at]);
    }
    if (is_string_type(t->format)) {
        const bool wide = is_wide_type(t->format);
        const int64_t begin = offset_at(a, wide, at), end = offset_at(a, wide, at + 1);
        return fuzz_hash(h, (const uint8_t *)a->buffers[2] + begin, (size_t)(end - begin));
    }
    if (t->format[0] != '+') {
        const size_t size = size_of_type(t->format);
        return fuzz_hash(h, (const uint8_t *)a->buffers[1] + (size_t)at * size, size);
    }
    const bool is_struct = t->format[1] == 's', is_fixed = t->format[1] == 'w';
    const int64_t size = is_fixed ? fixed_size(t->format) : 0;
    const int64_t first = is_struct ? 0 : is_fixed ? at * size : offset_at(a, true, at);
    const int64_t last = is_struct   ? t->n_children
                         : is_fixed ? first + size : offset_at(a, true, at + 1);
    for (int64_t k = first; k < last; k++) {
        const int64_t child = is_struct ? k : 0;
        h = fuzz_hash_number(h, row_hash(t->children[child], a->children[child],
                                         is_struct ? at : k));
    }
    return h;
}

/* ---- Layout --------------------------------------------------------------------------------- */

static inline void check_validity(const struct ArrowArray *a) {
    int64_t nulls = 0;
    for (int64_t i = 0; i < a->length; i++) {
        nulls += is_null(a, a->offset + i);
    }
    CHECK(a->null_count == nulls || (a->null_count == -1 && a->buffers[0] != NULL));
}

static inline void check_strings(const struct ArrowSchema *t, const struct ArrowArray *a) {
    const bool wide = is_wide_type(t->format), text = strchr("uU", t->format[0]) != NULL;
    const uint8_t *bytes = a->buffers[2];
    for (int64_t i = a->offset; i < a->offset + a->length; i++) {
        const int64_t begin = offset_at(a, wide, i), end = offset_at(a, wide, i + 1);
        CHECK(begin >= 0 && begin <= end && bytes != NULL);
        CHECK(!text || is_utf8_text(bytes + begin, (size_t)(end - begin)));
    }
}

/* The length that the child of a list has at least. */
static inline int64_t check_lists(const struct ArrowSchema *t, const struct ArrowArray *a) {
    const int64_t end = a->offset + a->length;
    if (t->format[1] == 'w') {
        return end * fixed_size(t->format);
    }
    CHECK(strcmp("+L", t->format) == 0);
    CHECK(offset_at(a, true, a->offset) >= 0);
    for (int64_t i = a->offset; i < end; i++) {
        CHECK(offset_at(a, true, i) <= offset_at(a, true, i + 1));
    }
    return offset_at(a, true, end);
}

/* Whether an array is one of its type, with all inside of it; at least so many elements. */
static inline void check_layout(const struct ArrowSchema *t, const struct ArrowArray *a,
                                int64_t least) {
    const bool nested = t->format[0] == '+';
    const int64_t buffers = t->format[1] == 's' || t->format[1] == 'w' ? 1
                            : is_string_type(t->format) ? 3 : 2;
    CHECK(t->release != NULL && a->release != NULL && t->name != NULL);
    CHECK(a->length >= least && a->offset >= 0);
    CHECK_EQ(buffers, a->n_buffers);
    CHECK_EQ(t->n_children, a->n_children);
    CHECK((t->dictionary == NULL) == (a->dictionary == NULL));
    check_validity(a);
    if (is_string_type(t->format)) {
        check_strings(t, a);
    }
    if (t->dictionary != NULL) {
        check_layout(t->dictionary, a->dictionary, 0);
        for (int64_t i = a->offset; i < a->offset + a->length; i++) {
            const int32_t index = ((const int32_t *)a->buffers[1])[i];
            CHECK(index >= 0 && index < a->dictionary->length);
        }
    }
    const int64_t inside = !nested                 ? 0
                           : t->format[1] == 's' ? a->offset + a->length : check_lists(t, a);
    for (int64_t i = 0; i < t->n_children; i++) {
        check_layout(t->children[i], a->children[i], inside);
    }
}

/* ---- Releasing ------------------------------------------------------------------------------ */

/* Moves some children out, as consumers do, and releases those and the rest in any order. */
#define DEFINE_RELEASE(name, type)                                                          \
    static inline void name(struct type *whole, uint64_t *random) {                         \
        struct type moved[MOST_CHILDREN + 1];                                               \
        size_t count = 0;                                                                   \
        for (int64_t i = 0; i <= whole->n_children; i++) {                                  \
            struct type *part = i < whole->n_children ? whole->children[i] : whole->dictionary; \
            if (part != NULL && check_random(random) % 2 != 0) {                            \
                moved[count++] = *part;                                                     \
                part->release = NULL;                                                       \
            }                                                                               \
        }                                                                                   \
        const bool first = check_random(random) % 2 != 0;                                   \
        if (first) {                                                                        \
            whole->release(whole);                                                          \
        }                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                \
            name(&moved[i], random);                                                        \
        }                                                                                   \
        if (!first) {                                                                       \
            whole->release(whole);                                                          \
        }                                                                                   \
        CHECK(whole->release == NULL);                                                      \
    }

DEFINE_RELEASE(release_array_anyhow, ArrowArray)
DEFINE_RELEASE(release_schema_anyhow, ArrowSchema)

#endif /* TFWIRE_TESTS_FUZZ_ARROW_CHECK_H */
