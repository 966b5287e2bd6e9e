/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of Arrow data: int64 and float where they lie, all others converted. */
#include "arrow/import_parts.h"

/* float16, by IEEE 754; the bits of a NaN are kept. */
static float half_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t exponent = half >> 10 & 0x1f;
    const uint32_t fraction = half & 0x3ff;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f; /* exact */
        return sign != 0 ? -value : value;
    }
    if (exponent == 0x1f) {
        bits = sign | UINT32_C(0x7f800000) | fraction << 13;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Loops from one type to another, in order and by take. */
#define CONVERT(name, from, to, conversion)                                                  \
    static void name(const uint8_t *p, const int64_t *take, uint64_t count, to *out) {       \
        from v;                                                                              \
        for (uint64_t i = 0; take == NULL && i < count; i++) {                               \
            memcpy(&v, p + i * sizeof v, sizeof v);                                          \
            out[i] = (to)conversion(v);                                                      \
        }                                                                                    \
        for (uint64_t i = 0; take != NULL && i < count; i++) {                               \
            v = 0;                                                                           \
            if (take[i] >= 0) {                                                              \
                memcpy(&v, p + (uint64_t)take[i] * sizeof v, sizeof v);                      \
            }                                                                                \
            out[i] = (to)conversion(v);                                                      \
        }                                                                                    \
    }

CONVERT(from_int8, int8_t, int64_t, )
CONVERT(from_uint8, uint8_t, int64_t, )
CONVERT(from_int16, int16_t, int64_t, )
CONVERT(from_uint16, uint16_t, int64_t, )
CONVERT(from_int32, int32_t, int64_t, )
CONVERT(from_uint32, uint32_t, int64_t, )
CONVERT(from_int64, int64_t, int64_t, ) /* of uint64, too: large ones become negative */
CONVERT(from_float16, uint16_t, float, half_to_float)
CONVERT(from_float32, float, float, )
CONVERT(from_float64, double, float, ) /* beyond the range: infinity, as IEEE 754 says */

static void from_bits(const uint8_t *bits, uint64_t first, const int64_t *take, uint64_t count,
                      int64_t *out) {
    for (uint64_t i = 0; i < count; i++) {
        int64_t position = take != NULL ? take[i] : (int64_t)i;
        out[i] = position >= 0 && tfwi_bit(bits, first + (uint64_t)position);
    }
}

static size_t size_of(int32_t type) {
    switch (type) {
    case TFWI_VALUE_INT8:
    case TFWI_VALUE_UINT8: return 1;
    case TFWI_VALUE_INT16:
    case TFWI_VALUE_UINT16:
    case TFWI_VALUE_FLOAT16: return 2;
    case TFWI_VALUE_INT32:
    case TFWI_VALUE_UINT32:
    case TFWI_VALUE_FLOAT32: return 4;
    default: return 8;
    }
}

void tfwi_convert(int32_t type, const void *buffer, uint64_t first, const int64_t *take,
                  uint64_t count, void *out) {
    if (type == TFWI_VALUE_BITS) {
        from_bits(buffer, first, take, count, out);
        return;
    }
    const uint8_t *p = buffer;
    if (p != NULL) { /* or no position of take is an element */
        p += first * size_of(type);
    }
    switch (type) {
    case TFWI_VALUE_INT8: from_int8(p, take, count, out); break;
    case TFWI_VALUE_UINT8: from_uint8(p, take, count, out); break;
    case TFWI_VALUE_INT16: from_int16(p, take, count, out); break;
    case TFWI_VALUE_UINT16: from_uint16(p, take, count, out); break;
    case TFWI_VALUE_INT32: from_int32(p, take, count, out); break;
    case TFWI_VALUE_UINT32: from_uint32(p, take, count, out); break;
    case TFWI_VALUE_FLOAT16: from_float16(p, take, count, out); break;
    case TFWI_VALUE_FLOAT32: from_float32(p, take, count, out); break;
    case TFWI_VALUE_FLOAT64: from_float64(p, take, count, out); break;
    default: from_int64(p, take, count, out); break;
    }
}

static uint64_t find_negative(const void *of, const tfwi_cells *cells, uint64_t from) {
    const int64_t *values = of;
    while (from < cells->total && values[from] >= 0) {
        from++;
    }
    return from;
}

int tfwi_import_numbers(tfwi_column *c, const struct ArrowArray *array) {
    const int32_t type = c->type->value;
    const bool is_float = type >= TFWI_VALUE_FLOAT16;
    const size_t size = is_float ? sizeof(float) : sizeof(int64_t);
    const tfwi_cells *cells = &c->cells;
    c->out->kind = is_float ? TFW_FLOAT : TFW_INT64;
    if (cells->total == 0) {
        return TFW_OK;
    }
    const uint8_t *buffer = array->buffers[1];
    const uint64_t first = (uint64_t)array->offset + cells->begin;
    if ((type == TFWI_VALUE_INT64 || type == TFWI_VALUE_FLOAT32) && cells->take == NULL &&
        (uintptr_t)buffer % size == 0) {
        c->out->values = buffer + first * size;
        return TFW_OK;
    }
    void *values = tfwi_arena_take(c->arena, cells->total, size);
    if (values == NULL) {
        return tfwi_no_memory(c);
    }
    tfwi_convert(type, buffer, first, cells->take, cells->total, values);
    c->out->values = values;
    return type != TFWI_VALUE_UINT64 ? TFW_OK
                                     : tfwi_refuse(c, find_negative, values, TFW_E_ARGUMENT,
                                                   "a value outside of int64 [-2**63, 2**63)");
}
