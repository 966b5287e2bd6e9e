/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the pickles that tfw_decode writes: checks that an unpickler would read them as what
 * they should be, and gives the decoded messages as hashes. Of one key it keeps the value. */
#ifndef TFWIRE_TESTS_FUZZ_PICKLE_H
#define TFWIRE_TESTS_FUZZ_PICKLE_H

#include "fuzz.h"

enum node_type { NODE_STR, NODE_BYTES, NODE_BUFFER, NODE_LIST, NODE_DICT, NODE_TUPLE };

typedef struct node {
    enum node_type type;
    uint64_t hash;
    const uint8_t *data; /* strings */
    uint64_t len;        /* strings: bytes; lists, dicts: members; buffers: number */
} node;

typedef struct unpickler {
    const tfw_dicts *dicts;
    const uint8_t *at;
    const uint8_t *end;
    node *stack; /* a pickle of n bytes has at most n nodes, marks and memos */
    size_t depth;
    size_t *marks;
    size_t mark_count;
    node *memo;
    size_t memo_count;
    uint64_t buffers; /* taken so far */
    int64_t next[4];  /* by kind: where the next buffer begins */
    const char *key;  /* the one to keep */
    bool has_value;   /* of the last dict that ended */
    node value;
} unpickler;

static inline void push_node(unpickler *u, node n) { u->stack[u->depth++] = n; }

static inline void push_string(unpickler *u, enum node_type type, size_t size_of_length) {
    uint64_t len = 0;
    bool fits = (size_t)(u->end - u->at) >= size_of_length;
    for (size_t i = 0; fits && i < size_of_length; i++) {
        len |= (uint64_t)*u->at++ << (8 * i);
    }
    fits = fits && len <= (uint64_t)(u->end - u->at);
    CHECK(fits);
    if (!fits) {
        abort();
    }
    push_node(u, (node){type, fuzz_hash(type, u->at, (size_t)len), u->at, len});
    u->at += len;
}

/* Buffers of a kind lie one after the other and take all its numbers. */
static inline void push_buffer(unpickler *u) {
    const tfw_dicts *d = u->dicts;
    const int64_t *b = d->buffers + 3 * u->buffers;
    CHECK(u->buffers < d->buffer_count);
    if (u->buffers >= d->buffer_count || b[0] < TFW_BYTES || b[0] > TFW_INT64) {
        abort();
    }
    if (b[0] == TFW_BYTES) { /* an empty list */
        CHECK(b[1] == 0 && b[2] == 0);
        push_node(u, (node){NODE_BUFFER, NODE_BUFFER, NULL, u->buffers++});
        return;
    }
    bool ints = b[0] == TFW_INT64;
    CHECK_EQ(u->next[b[0]], b[1]);
    CHECK(b[1] <= b[2] && (uint64_t)b[2] <= (ints ? d->int64_count : d->float_count));
    u->next[b[0]] = b[2];
    const void *values = ints ? (const void *)(d->int64s + b[1]) : d->floats + b[1];
    size_t size = (size_t)(b[2] - b[1]) * (ints ? 8 : 4);
    push_node(u, (node){NODE_BUFFER, fuzz_hash((uint64_t)b[0], values, size), NULL, u->buffers++});
}

static inline size_t pop_mark(unpickler *u) {
    CHECK(u->mark_count > 0);
    if (u->mark_count == 0 || u->marks[u->mark_count - 1] > u->depth) {
        abort();
    }
    return u->marks[--u->mark_count];
}

/* The members above the mark go into the list or dict below it. */
static inline void add_members(unpickler *u, enum node_type type) {
    size_t first = pop_mark(u);
    if (first == 0 || u->stack[first - 1].type != type) {
        CHECK(!"members of nothing");
        abort();
    }
    node *whole = &u->stack[first - 1];
    u->has_value = type == NODE_DICT ? false : u->has_value;
    for (size_t i = first; i < u->depth; i++, whole->len++) {
        const node *n = &u->stack[i];
        whole->hash = fuzz_hash_number(whole->hash, n->hash);
        if (type != NODE_DICT || (i - first) % 2 != 0) {
            continue;
        }
        CHECK(n->type == NODE_STR && i + 1 < u->depth);
        if (n->len == strlen(u->key) && memcmp(n->data, u->key, (size_t)n->len) == 0) {
            u->has_value = true;
            u->value = n[1];
        }
    }
    u->depth = first;
}

static inline void step(unpickler *u) {
    uint32_t index = 0;
    switch (*u->at++) {
    case '(': u->marks[u->mark_count++] = u->depth; break;
    case ']': push_node(u, (node){NODE_LIST, NODE_LIST, NULL, 0}); break;
    case '}': push_node(u, (node){NODE_DICT, NODE_DICT, NULL, 0}); break;
    case 'e': add_members(u, NODE_LIST); break;
    case 'u': add_members(u, NODE_DICT); break;
    case 0x86:
        CHECK(u->depth >= 2 && u->stack[u->depth - 2].type == NODE_DICT);
        u->depth--;
        u->stack[u->depth - 1].type = NODE_TUPLE;
        u->stack[u->depth - 1].hash =
            fuzz_hash_number(u->stack[u->depth - 1].hash, u->stack[u->depth].hash);
        break;
    case 'C': push_string(u, NODE_BYTES, 1); break;
    case 'B': push_string(u, NODE_BYTES, 4); break;
    case 0x8c: push_string(u, NODE_STR, 1); break;
    case 'X': push_string(u, NODE_STR, 4); break;
    case 0x94: u->memo[u->memo_count++] = u->stack[u->depth - 1]; break;
    case 'h': index = *u->at++; goto recall;
    case 'j':
        index = tfwi_load32(u->at);
        u->at += 4;
    recall:
        CHECK(index < u->memo_count);
        push_node(u, u->memo[index < u->memo_count ? index : 0]);
        break;
    case 0x97: push_buffer(u); break;
    default: CHECK(!"an opcode that is not written"); abort();
    }
}

/* Reads the pickle; writes a hash per message, and what key has in the last. */
static inline void unpickle(const tfw_dicts *dicts, const char *key, uint64_t *out_hashes,
                            size_t count, unpickler *out) {
    size_t size = (size_t)dicts->pickle_len;
    uint8_t *copy = fuzz_copy(dicts->pickle, size);
    unpickler u = {.dicts = dicts, .at = copy + 4, .end = copy + size - 1, .key = key};
    CHECK(size >= 6 && memcmp(copy, "\x80\x05](", 4) == 0 && copy[size - 1] == '.');
    u.stack = fuzz_alloc((size + 2) * sizeof *u.stack);
    u.memo = fuzz_alloc((size + 1) * sizeof *u.memo);
    u.marks = fuzz_alloc((size + 1) * sizeof *u.marks);
    while (u.at < u.end - 1) {
        step(&u);
    }
    CHECK(u.at == u.end - 1 && *u.at == 'e');
    CHECK_EQ(count, u.depth);
    CHECK_EQ(0, u.mark_count);
    CHECK_EQ(dicts->buffer_count, u.buffers);
    CHECK_EQ(dicts->int64_count, u.next[TFW_INT64]);
    CHECK_EQ(dicts->float_count, u.next[TFW_FLOAT]);
    for (size_t i = 0; i < count && i < u.depth; i++) {
        out_hashes[i] = u.stack[i].hash;
    }
    *out = u;
    free(u.stack);
    free(u.memo);
    free(u.marks);
    free(copy);
}

#endif /* TFWIRE_TESTS_FUZZ_PICKLE_H */
