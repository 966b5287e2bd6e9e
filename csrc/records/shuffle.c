/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer of a shuffle: exchanging elements, and copying strings side by side. */
#include "base/common.h"

/* Inlined for each size, so that a copy is a move or two. */
TFWI_INLINE void exchange(uint8_t *held, int64_t *held_numbers, uint8_t *others,
                          int64_t *other_numbers, const int64_t *slots, size_t count, size_t size) {
    uint8_t element[2 * sizeof(uint64_t)];
    for (size_t i = 0; i < count; i++) {
        size_t slot = (size_t)slots[i];
        int64_t number = held_numbers[slot];
        memcpy(element, held + slot * size, size);
        held_numbers[slot] = other_numbers[i];
        memcpy(held + slot * size, others + i * size, size);
        other_numbers[i] = number;
        memcpy(others + i * size, element, size);
    }
}

int tfw_exchange(void *held, int64_t *held_numbers, size_t num_held, void *others,
                 int64_t *other_numbers, size_t element_size, const int64_t *slots, size_t count,
                 tfw_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (slots[i] < 0 || (uint64_t)slots[i] >= num_held) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a slot outside of the buffer");
        }
    }
    switch (element_size) {
    case 4:
        exchange(held, held_numbers, others, other_numbers, slots, count, 4);
        return TFW_OK;
    case 8:
        exchange(held, held_numbers, others, other_numbers, slots, count, 8);
        return TFW_OK;
    case 16:
        exchange(held, held_numbers, others, other_numbers, slots, count, 16);
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
