/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffles: a random order of numbers; the buffer, in which elements are exchanged; and copying
 * strings side by side. */
#include "base/common.h"

/* ---- A random order ------------------------------------------------------------------------- */

enum { ROUNDS = 6, NUMBERS = 64 /* that go through the network side by side */ };

/* The finalizer of SplitMix64: every bit depends on every other. */
TFWI_INLINE uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

/* A Feistel network on numbers of 2 * half bits. */
typedef struct network {
    uint64_t keys[ROUNDS];
    unsigned half;
} network;

static network network_of(uint64_t key, uint64_t size) {
    network n = {.half = 1};
    while (n.half < 32 && (size - 1) >> (2 * n.half) != 0) {
        n.half++;
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        n.keys[i] = mix((i + 1) * UINT64_C(0x9E3779B97F4A7C15) + key);
    }
    return n;
}

TFWI_INLINE uint64_t pass(const network *n, uint64_t value) {
    const uint64_t mask = (UINT64_C(1) << n->half) - 1;
    uint64_t left = value >> n->half, right = value & mask;
    for (size_t i = 0; i < ROUNDS; i++) {
        const uint64_t next = left ^ (mix(right + n->keys[i]) & mask);
        left = right;
        right = next;
    }
    return left << n->half | right;
}

/* Some numbers. Those that leave the range go through the network again. */
static void permute(const network *n, uint64_t size, int64_t *numbers, size_t count) {
    size_t outside[NUMBERS], left = count;
    for (size_t i = 0; i < count; i++) {
        outside[i] = i;
    }
    while (left != 0) {
        size_t still = 0;
        for (size_t i = 0; i < left; i++) {
            const size_t at = outside[i];
            const uint64_t value = pass(n, (uint64_t)numbers[at]);
            numbers[at] = (int64_t)value;
            outside[still] = at;
            still += value >= size;
        }
        left = still;
    }
}

int tfw_permute(uint64_t key, uint64_t size, int64_t *numbers, size_t count, tfw_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || (uint64_t)numbers[i] >= size) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a number outside of the range");
        }
    }
    if (count == 0) {
        return TFW_OK;
    }
    const network n = network_of(key, size);
    for (size_t first = 0; first < count; first += NUMBERS) {
        permute(&n, size, numbers + first, count - first < NUMBERS ? count - first : NUMBERS);
    }
    return TFW_OK;
}

/* ---- The buffer ----------------------------------------------------------------------------- */

/* Element i of others for the one of held that random number first + i draws. */
typedef struct exchange {
    uint64_t key, first, num_held;
    uint8_t *held, *others;
    int64_t *held_numbers, *other_numbers;
    size_t count;
} exchange;

/* Inlined for each size, so that a copy is a move or two. */
TFWI_INLINE void exchange_elements(const exchange *x, size_t size) {
    uint8_t element[2 * sizeof(uint64_t)];
    for (size_t i = 0; i < x->count; i++) {
        const uint64_t random = mix((x->first + i + 1) * UINT64_C(0x9E3779B97F4A7C15) + x->key);
        const size_t slot = (size_t)((random >> 32) * x->num_held >> 32);
        const int64_t number = x->held_numbers[slot];
        memcpy(element, x->held + slot * size, size);
        x->held_numbers[slot] = x->other_numbers[i];
        memcpy(x->held + slot * size, x->others + i * size, size);
        x->other_numbers[i] = number;
        memcpy(x->others + i * size, element, size);
    }
}

int tfw_exchange(uint64_t key, uint64_t first, void *held, int64_t *held_numbers, size_t num_held,
                 void *others, int64_t *other_numbers, size_t element_size, size_t count,
                 tfw_error *error) {
    const exchange x = {.key = key,
                        .first = first,
                        .num_held = num_held,
                        .held = held,
                        .others = others,
                        .held_numbers = held_numbers,
                        .other_numbers = other_numbers,
                        .count = count};
    if (count != 0 && (num_held == 0 || num_held > UINT32_MAX)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a buffer without elements, or with 2^32 or more");
    }
    switch (element_size) {
    case 4:
        exchange_elements(&x, 4);
        return TFW_OK;
    case 8:
        exchange_elements(&x, 8);
        return TFW_OK;
    case 16:
        exchange_elements(&x, 16);
        return TFW_OK;
    default:
        return tfwi_fail(error, TFW_E_ARGUMENT, "elements of other than 4, 8 or 16 bytes");
    }
}

int tfw_gather(tfw_span *spans, size_t count, uint8_t *out, size_t capacity, size_t *out_count) {
    size_t at = 0, i = 0;
    for (; i < count && spans[i].length <= capacity - at; i++) {
        size_t length = (size_t)spans[i].length;
        if (length != 0) {
            memcpy(out + at, (const uint8_t *)(uintptr_t)spans[i].offset, length);
        }
        spans[i].offset = (uintptr_t)out + at; /* out may be NULL */
        at += length;
    }
    *out_count = i;
    return i == count ? TFW_OK : TFW_NEED_SPACE;
}
