/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of an input: their number, the lengths of all but the last, their bytes. */
#ifndef TFWIRE_TESTS_FUZZ_MESSAGES_H
#define TFWIRE_TESTS_FUZZ_MESSAGES_H

#include "disguise.h"

enum { MAX_MESSAGES = 4 };

typedef struct messages {
    uint8_t *data;
    size_t len;
    tfw_span spans[MAX_MESSAGES];
    size_t count;
} messages;

static inline messages messages_of(input *in) {
    messages m = {.count = (size_t)input_byte(in) % MAX_MESSAGES + 1};
    for (size_t i = 0; i + 1 < m.count; i++) {
        m.spans[i].length = input_number(in, 2);
    }
    m.len = input_left(in);
    m.data = fuzz_copy(in->at, m.len);
    size_t at = 0;
    for (size_t i = 0; i < m.count; i++) {
        size_t left = m.len - at;
        bool all = i + 1 == m.count || m.spans[i].length > left;
        m.spans[i] = (tfw_span){.offset = at, .length = all ? left : m.spans[i].length};
        at += (size_t)m.spans[i].length;
    }
    return m;
}

/* The same in another encoding. */
static inline messages messages_disguised(const messages *m, enum level level, unsigned how) {
    messages other = {.data = fuzz_alloc(disguise_bound(m->len)), .count = m->count};
    for (size_t i = 0; i < m->count; i++) {
        const uint8_t *begin = m->data + m->spans[i].offset;
        uint8_t *out = other.data + other.len;
        size_t len = (size_t)(disguise(out, level, how, begin, begin + m->spans[i].length) - out);
        other.spans[i] = (tfw_span){.offset = other.len, .length = len};
        other.len += len;
    }
    return other;
}

/* Message i alone, in a block of just its size. */
static inline messages messages_single(const messages *m, size_t i) {
    size_t len = (size_t)m->spans[i].length;
    return (messages){.data = fuzz_copy(m->data + m->spans[i].offset, len), .len = len,
                      .spans = {{0, len}}, .count = 1};
}

#endif /* TFWIRE_TESTS_FUZZ_MESSAGES_H */
