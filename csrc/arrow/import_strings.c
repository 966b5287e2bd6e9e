/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of Arrow data: used in place if they lie one after the other, otherwise copied. */
#include "arrow/import_parts.h"

/* A string, anywhere. */
typedef struct text {
    const uint8_t *at;
    uint64_t len;
} text;

enum { VIEW_SIZE = 16, VIEW_INLINE = 12 }; /* shorter ones lie in the view itself */

/* ---- One after the other -------------------------------------------------------------------- */

static int import_offsets(tfwi_column *c, const struct ArrowArray *array, bool is_64) {
    const uint64_t total = c->cells.total;
    int64_t *offsets = tfwi_arena_take(c->arena, total + 1, sizeof *offsets);
    if (offsets == NULL) {
        return tfwi_no_memory(c);
    }
    const uint64_t at = (uint64_t)array->offset + c->cells.begin;
    const int64_t first = tfwi_load_int(array->buffers[1], is_64, at);
    const uint8_t *bytes = array->buffers[2];
    int64_t last = first;
    offsets[0] = 0;
    for (uint64_t i = 1; i <= total; i++) {
        int64_t end = tfwi_load_int(array->buffers[1], is_64, at + i);
        if (first < 0 || end < last) {
            return tfwi_fail_at(c, i - 1, "offsets of strings that decrease, or are negative");
        }
        offsets[i] = end - first;
        last = end;
    }
    if (bytes == NULL && last != first) {
        return tfwi_fail_at(c, 0, "strings without a buffer");
    }
    c->out->values = bytes == NULL ? NULL : bytes + first;
    c->out->byte_count = (uint64_t)(last - first);
    c->out->offsets = offsets;
    return TFW_OK;
}

static int import_fixed(tfwi_column *c, const struct ArrowArray *array) {
    const uint64_t total = c->cells.total;
    const uint64_t width = (uint64_t)c->type->width;
    int64_t *offsets = tfwi_arena_take(c->arena, total + 1, sizeof *offsets);
    if (offsets == NULL) {
        return tfwi_no_memory(c);
    }
    for (uint64_t i = 0; i <= total; i++) {
        offsets[i] = (int64_t)(i * width);
    }
    if (width != 0) {
        const uint8_t *bytes = array->buffers[1];
        c->out->values = bytes + ((uint64_t)array->offset + c->cells.begin) * width;
    }
    c->out->byte_count = total * width;
    c->out->offsets = offsets;
    return TFW_OK;
}

/* ---- Anywhere ------------------------------------------------------------------------------- */

static bool locate_view(const struct ArrowArray *array, uint64_t i, text *out) {
    int32_t parts[4]; /* length, first four bytes, buffer, offset */
    const uint8_t *view = (const uint8_t *)array->buffers[1] + i * VIEW_SIZE;
    memcpy(parts, view, sizeof parts);
    *out = (text){view + 4, (uint64_t)parts[0]};
    if (parts[0] <= VIEW_INLINE) {
        return parts[0] >= 0;
    }
    const int64_t buffers = array->n_buffers - 3;
    const void *sizes = array->buffers[array->n_buffers - 1];
    if (parts[2] < 0 || parts[2] >= buffers || parts[3] < 0 || sizes == NULL ||
        array->buffers[2 + parts[2]] == NULL) {
        return false;
    }
    out->at = (const uint8_t *)array->buffers[2 + parts[2]] + parts[3];
    return tfwi_load_int(sizes, true, (uint64_t)parts[2]) >= (int64_t)parts[0] + parts[3];
}

/* String i of an array's buffers. */
static bool locate(const struct ArrowArray *array, const tfwi_type *type, uint64_t i, text *out) {
    const bool is_64 = type->value == TFWI_VALUE_STRINGS_64;
    if (type->value == TFWI_VALUE_STRING_VIEWS) {
        return locate_view(array, i, out);
    }
    if (type->value == TFWI_VALUE_STRINGS_FIXED) {
        const uint64_t width = (uint64_t)type->width;
        *out = (text){width == 0 ? NULL : (const uint8_t *)array->buffers[1] + i * width, width};
        return true;
    }
    const int64_t begin = tfwi_load_int(array->buffers[1], is_64, i);
    const int64_t end = tfwi_load_int(array->buffers[1], is_64, i + 1);
    const uint8_t *bytes = array->buffers[2];
    if (begin < 0 || end < begin || (bytes == NULL && end != begin)) {
        return false;
    }
    *out = (text){bytes == NULL ? NULL : bytes + begin, (uint64_t)(end - begin)};
    return true;
}

/* Finds all strings, and the offsets of their copies. Null has no bytes. */
static int locate_all(tfwi_column *c, const struct ArrowArray *array, text *strings,
                      int64_t *offsets) {
    const tfwi_cells *cells = &c->cells;
    const uint8_t *bits = tfwi_bitmap(array);
    const uint64_t first = (uint64_t)array->offset;
    offsets[0] = 0;
    for (uint64_t i = 0; i < cells->total; i++) {
        const int64_t position = cells->take != NULL ? cells->take[i]
                                                     : (int64_t)(cells->begin + i);
        const uint64_t at = first + (uint64_t)position;
        strings[i] = (text){NULL, 0};
        if (position >= 0 && (bits == NULL || tfwi_bit(bits, at)) &&
            !locate(array, c->type, at, &strings[i])) {
            return tfwi_fail_at(c, i, "strings outside of their buffers");
        }
        if (strings[i].len > (uint64_t)(INT64_MAX / 16 - offsets[i])) {
            return tfwi_fail_at(c, i, "more bytes than memory can hold");
        }
        offsets[i + 1] = offsets[i] + (int64_t)strings[i].len;
    }
    return tfwi_check_record(c, (uint64_t)offsets[cells->total]);
}

static int import_anywhere(tfwi_column *c, const struct ArrowArray *array) {
    const uint64_t total = c->cells.total;
    int64_t *offsets = tfwi_arena_take(c->arena, total + 1, sizeof *offsets);
    text *strings = tfwi_arena_take(c->arena, total, sizeof *strings);
    if (offsets == NULL || strings == NULL) {
        return tfwi_no_memory(c);
    }
    int status = locate_all(c, array, strings, offsets);
    if (status != TFW_OK) {
        return status;
    }
    const uint64_t size = (uint64_t)offsets[total];
    uint8_t *bytes = tfwi_arena_take(c->arena, size, 1);
    if (bytes == NULL) {
        return tfwi_no_memory(c);
    }
    uint8_t *p = bytes;
    for (uint64_t i = 0; i < total; i++) {
        if (strings[i].len != 0) {
            memcpy(p, strings[i].at, (size_t)strings[i].len);
            p += strings[i].len;
        }
    }
    c->out->values = bytes;
    c->out->byte_count = size;
    c->out->offsets = offsets;
    return TFW_OK;
}

int tfwi_import_strings(tfwi_column *c, const struct ArrowArray *array) {
    const int32_t type = c->type->value;
    c->out->kind = TFW_BYTES;
    if (c->cells.total == 0) {
        return TFW_OK;
    }
    if (type == TFWI_VALUE_STRING_VIEWS || c->cells.take != NULL) {
        return import_anywhere(c, array);
    }
    return type == TFWI_VALUE_STRINGS_FIXED ? import_fixed(c, array)
                                            : import_offsets(c, array,
                                                             type == TFWI_VALUE_STRINGS_64);
}
