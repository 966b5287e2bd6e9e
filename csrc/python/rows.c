/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to messages: the pairs that were read become an Example. */
#include "python/rows.h"

#ifdef TFW_PYTHON

static double item_number(uint64_t bits, uint64_t type) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return type == TFWI_ITEM_INT ? (double)(int64_t)bits : value;
}

static uint8_t *put_string(const tfwi_element *string, uint8_t *p) {
    const uint8_t *text = (const uint8_t *)(uintptr_t)string->a;
    return tfwi_put_text(text, (size_t)string->b, (size_t)string->b, p);
}

static void put_item_string(const tfwi_prefix *f, const tfwi_element *string, tfwi_output *out) {
    out->at = put_string(string, tfwi_prefix_put_packed(f, (size_t)string->b, out->at));
}

static void put_float_list(const tfwi_prefix *f, const tfwi_element *e, size_t count,
                           tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, 4 * count, out->at);
    for (size_t i = 0; i < count; i++, p += 4) {
        float value = (float)item_number(e[i].a, e[i].b);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        tfwi_store32(p, bits);
    }
    out->at = p;
}

static void put_int_list(tfwi_prefix *f, const tfwi_element *e, size_t count, tfwi_output *out) {
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        p = tfwi_put_varint(p, e[i].a, tfwi_varint_size(e[i].a));
    }
    out->at = tfwi_prefix_place(f, TFWI_PACKED_LENGTHS(f), out->at, p);
}

static void put_string_list(tfwi_prefix *f, const tfwi_element *e, size_t count,
                            tfwi_output *out) {
    if (count == 1) {
        put_item_string(f, e, out);
        return;
    }
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        *p++ = TFWI_TAG(1, TFWI_WIRE_LEN);
        p = tfwi_put_length(p, e[i].b);
        p = put_string(&e[i], p);
    }
    out->at = tfwi_prefix_place(f, TFWI_LIST_LENGTHS(f), out->at, p);
}

/* The number of values; strings: also their bytes in all. */
static size_t measure_item(const tfwi_rows *r, const tfwi_item *value, int32_t kind,
                           size_t *out_text_len) {
    *out_text_len = value->type == TFWI_ITEM_STRING ? (size_t)value->b : 0;
    if (value->type == TFWI_ITEM_RAW) {
        return (size_t)(value->b / (kind == TFW_INT64 ? 8 : 4));
    }
    if (value->type != TFWI_ITEM_LIST) {
        return 1;
    }
    for (uint64_t i = 0; kind == TFW_BYTES && i < value->b; i++) {
        *out_text_len += (size_t)r->tape.of[value->a + i].b;
    }
    return (size_t)value->b;
}

static void put_item_list(tfwi_rows *r, tfwi_prefix *f, const tfwi_item *list, int32_t kind,
                          tfwi_output *out) {
    const tfwi_element *elements = list->b != 0 ? &r->tape.of[list->a] : NULL;
    size_t count = (size_t)list->b;
    switch (kind) {
    case TFW_FLOAT: put_float_list(f, elements, count, out); break;
    case TFW_INT64: put_int_list(f, elements, count, out); break;
    default: put_string_list(f, elements, count, out);
    }
}

static void put_array(tfwi_rows *r, tfwi_prefix *f, const tfwi_item *array, size_t count,
                      tfwi_output *out) {
    const uint8_t *values = (const uint8_t *)(uintptr_t)array->a;
    if (array->kind == TFW_INT64) {
        tfwi_put_int64s(r->writer, f, values, count, out);
    } else {
        tfwi_put_floats(f, values, count, out);
    }
}

TFWI_INLINE int put_pair(tfwi_rows *r, const tfwi_pair *pair, tfwi_output *out) {
    const tfwi_item *value = &pair->value;
    if (value->type == TFWI_ITEM_MISSING) {
        return TFW_OK;
    }
    int32_t kind = tfwi_kind_of(r, pair);
    if (kind == TFW_NONE) {
        return TFWI_UNKNOWN;
    }
    int status;
    tfwi_prefix *f = tfwi_rows_prefix(r, pair->key, kind, &status);
    if (f == NULL) {
        return status;
    }
    size_t text_len;
    size_t count = measure_item(r, value, kind, &text_len);
    if (!tfwi_has_room(out, tfwi_feature_bound(f, kind, count, text_len))) {
        return TFW_NEED_SPACE;
    }
    if (count == 0) { /* an array knows its kind, a list does not */
        unsigned lengths = value->type == TFWI_ITEM_RAW ? TFWI_LIST_LENGTHS(f) : f->outer;
        out->at = tfwi_prefix_put(f, lengths, 0, out->at);
        return TFW_OK;
    }
    float rounded;
    switch (value->type) {
    case TFWI_ITEM_INT: tfwi_put_int64(f, (int64_t)value->a, out); break;
    case TFWI_ITEM_FLOAT:
        rounded = (float)item_number(value->a, TFWI_ITEM_FLOAT);
        tfwi_put_floats(f, &rounded, 1, out);
        break;
    case TFWI_ITEM_STRING: put_item_string(f, &(tfwi_element){value->a, value->b}, out); break;
    case TFWI_ITEM_RAW: put_array(r, f, value, count, out); break;
    default: put_item_list(r, f, value, kind, out);
    }
    return TFW_OK;
}

/* Finds a run of numbers, from pair first on, whose prefixes have templates. */
static size_t find_run(tfwi_rows *r, size_t first, size_t *out_bound) {
    size_t run = 0;
    *out_bound = TFWI_SLACK;
    for (size_t i = first; i < r->pairs.count; i++, run++) {
        tfwi_pair *pair = &r->pairs.of[r->order.of[i]];
        tfwi_item *value = &pair->value;
        if ((value->type != TFWI_ITEM_INT && value->type != TFWI_ITEM_FLOAT) ||
            pair->key >= r->prefixes.count) {
            break;
        }
        tfwi_scalar *scalar = &r->prefixes.of[pair->key].scalars[value->type - 1];
        if (scalar->template == NULL) {
            break;
        }
        if (value->type == TFWI_ITEM_FLOAT) {
            float rounded = (float)item_number(value->a, TFWI_ITEM_FLOAT);
            memcpy(&value->a, &rounded, sizeof rounded);
        }
        scalar->values = &value->a;
        r->scalars.of[run] = scalar;
        *out_bound += tfwi_scalar_bound(scalar);
    }
    return run;
}

/* Writes the features of a row, runs of numbers at once. */
static int put_pairs(tfwi_rows *r, tfwi_output *out) {
    for (size_t i = 0, run; i < r->pairs.count; i += run) {
        size_t bound;
        run = find_run(r, i, &bound);
        if (TFWI_UNLIKELY(run != 0 && !tfwi_has_room(out, bound))) {
            return TFW_NEED_SPACE;
        }
        if (run != 0) {
            out->at = r->writer->scalars(r->scalars.of, run, 0, out->at);
            continue;
        }
        tfwi_pair *pair = &r->pairs.of[r->order.of[i]];
        int status = put_pair(r, pair, out);
        run = status == TFW_OK;
        if (status == TFWI_OTHER_KIND) { /* once more, if it can be made to fit */
            status = tfwi_rows_fit(r, pair);
        }
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
}

int tfwi_put_row(tfwi_rows *r, tfwi_output *out) {
    int status = r->same_keys ? TFW_OK : tfwi_rows_order(r);
    if (status == TFW_OK && r->compares && !(r->same_keys && r->is_settled)) {
        status = tfwi_rows_settle(r);
    }
    if (status != TFW_OK) {
        return status;
    }
    if (!tfwi_has_room(out, TFWI_SECTION_BOUND)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *start = out->at;
    tfwi_output inner = {start + 1 + r->guess, out->end - TFWI_MAX_VARINT};
    status = put_pairs(r, &inner);
    if (status != TFW_OK) {
        return status;
    }
    out->at = tfwi_close_section(start, TFWI_TAG(1, TFWI_WIRE_LEN), &r->guess, inner.at);
    return out->at - start > INT32_MAX ? TFWI_UNKNOWN : TFW_OK;
}

#endif /* TFW_PYTHON */
