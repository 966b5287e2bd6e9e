/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to messages: the rows of a stream become Examples. */
#include "python/rows.h"

/* Keys are remembered from call to call, up to this number. */
#define MAX_KEYS 4096

/* ---- Writing -------------------------------------------------------------------------------- */

static double item_number(uint64_t bits, uint64_t type) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return type == TFWI_ITEM_INT ? (double)(int64_t)bits : value;
}

static void put_item_string(const tfw_rows *r, const tfwi_prefix *f, uint64_t offset, uint64_t len,
                            tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, (size_t)len, out->at);
    out->at = tfwi_put_text(r->u.stream + offset, (size_t)len, r->u.len - (size_t)offset, p);
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

static void put_string_list(const tfw_rows *r, tfwi_prefix *f, const tfwi_element *e, size_t count,
                            tfwi_output *out) {
    if (count == 1) {
        put_item_string(r, f, e->a, e->b, out);
        return;
    }
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        *p++ = TFWI_TAG(1, TFWI_WIRE_LEN);
        p = tfwi_put_length(p, e[i].b);
        p = tfwi_put_text(r->u.stream + e[i].a, (size_t)e[i].b, r->u.len - (size_t)e[i].a, p);
    }
    out->at = tfwi_prefix_place(f, TFWI_LIST_LENGTHS(f), out->at, p);
}

/* The kind of a value; of a list, that of its elements. TFW_NONE: numbers and strings are mixed. An
 * empty list may have any. */
static int32_t kind_of(const tfwi_item *value) {
    if (value->type != TFWI_ITEM_LIST) {
        return value->type == TFWI_ITEM_RAW ? value->kind : value->type;
    }
    switch (value->kinds) {
    case 0:
    case TFWI_BIT(TFWI_ITEM_INT): return TFW_INT64;
    case TFWI_BIT(TFWI_ITEM_FLOAT):
    case TFWI_BIT(TFWI_ITEM_FLOAT) | TFWI_BIT(TFWI_ITEM_INT): return TFW_FLOAT;
    case TFWI_BIT(TFWI_ITEM_STRING): return TFW_BYTES;
    default: return TFW_NONE;
    }
}

/* The number of values; strings: also their bytes in all. */
static size_t measure_item(const tfw_rows *r, const tfwi_item *value, int32_t kind,
                           size_t *out_text_len) {
    *out_text_len = value->type == TFWI_ITEM_STRING ? (size_t)value->b : 0;
    if (value->type == TFWI_ITEM_RAW) {
        return (size_t)(value->b / (kind == TFW_INT64 ? 8 : 4));
    }
    if (value->type != TFWI_ITEM_LIST) {
        return 1;
    }
    for (uint64_t i = 0; kind == TFW_BYTES && i < value->b; i++) {
        *out_text_len += (size_t)r->u.tape.of[value->a + i].b;
    }
    return (size_t)value->b;
}

static void put_item_list(tfw_rows *r, tfwi_prefix *f, const tfwi_item *list, int32_t kind,
                          tfwi_output *out) {
    const tfwi_element *elements = &r->u.tape.of[list->a];
    size_t count = (size_t)list->b;
    switch (kind) {
    case TFW_FLOAT: put_float_list(f, elements, count, out); break;
    case TFW_INT64: put_int_list(f, elements, count, out); break;
    default: put_string_list(r, f, elements, count, out);
    }
}

static void put_array(tfw_rows *r, tfwi_prefix *f, const tfwi_item *array, size_t count,
                      tfwi_output *out) {
    const uint8_t *values = r->u.stream + array->a;
    if (array->kind == TFW_INT64) {
        tfwi_put_int64s(r->writer, f, values, count, out);
    } else {
        tfwi_put_floats(f, values, count, out);
    }
}

TFWI_INLINE int put_pair(tfw_rows *r, const tfwi_pair *pair, tfwi_output *out) {
    const tfwi_item *value = &pair->value;
    if (value->type == TFWI_ITEM_MISSING) {
        return TFW_OK;
    }
    int32_t kind = kind_of(value);
    if (kind == TFW_NONE) {
        return TFWI_UNKNOWN;
    }
    tfwi_prefix *f = tfwi_rows_prefix(r, pair->key, kind);
    if (f == NULL) {
        return TFW_E_MEMORY;
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
    case TFWI_ITEM_STRING: put_item_string(r, f, value->a, value->b, out); break;
    case TFWI_ITEM_RAW: put_array(r, f, value, count, out); break;
    default: put_item_list(r, f, value, kind, out);
    }
    return TFW_OK;
}

/* Finds a run of numbers, from pair first on, whose prefixes have templates. */
static size_t find_run(tfw_rows *r, size_t first, size_t *out_bound) {
    size_t run = 0;
    *out_bound = TFWI_SLACK;
    for (size_t i = first; i < r->u.pairs.count; i++, run++) {
        tfwi_pair *pair = &r->u.pairs.of[r->order.of[i]];
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
static int put_pairs(tfw_rows *r, tfwi_output *out) {
    for (size_t i = 0, run; i < r->u.pairs.count; i += run) {
        size_t bound;
        run = find_run(r, i, &bound);
        if (TFWI_UNLIKELY(run != 0 && !tfwi_has_room(out, bound))) {
            return TFW_NEED_SPACE;
        }
        if (run != 0) {
            out->at = r->writer->scalars(r->scalars.of, run, 0, out->at);
            continue;
        }
        int status = put_pair(r, &r->u.pairs.of[r->order.of[i]], out);
        if (status != TFW_OK) {
            return status;
        }
        run = 1;
    }
    return TFW_OK;
}

static int put_row(tfw_rows *r, tfwi_output *out) {
    int status = r->u.same_keys ? TFW_OK : tfwi_rows_order(r);
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

/* ---- Calls ---------------------------------------------------------------------------------- */

int tfw_rows_create(uint64_t seed, tfw_rows **out_rows, tfw_error *error) {
    tfw_rows *r = tfwi_calloc(1, sizeof *r);
    *out_rows = r;
    if (r == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a row encoder");
    }
    r->guess = 1;
    r->u.keys.seed = tfwi_seed_of(seed);
    r->writer = tfwi_writer_best();
    return TFW_OK;
}

void tfw_rows_free(tfw_rows *r) {
    if (r != NULL) {
        tfwi_rows_forget(r);
        tfw_free(r->blocks.of);
        tfw_free(r->prefixes.of);
        tfw_free(r->order.of);
        tfw_free(r->scalars.of);
        tfw_free(r);
    }
}

/* The result of a call, by the status that ended it. */
static int describe(int status, tfw_error *error) {
    switch (status) {
    case TFW_END: return TFW_OK;
    case TFW_E_MEMORY: return tfwi_fail(error, status, "no memory for the values of a row");
    case TFWI_UNKNOWN: return tfwi_fail(error, status, "a row with values that are not plain");
    default: return tfwi_fail(error, status, "the output is full");
    }
}

int tfw_rows_encode(tfw_rows *r, const uint8_t *stream, size_t len, unsigned flags,
                    size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
                    tfw_span *out_spans, size_t span_capacity, size_t *out_done, size_t *out_len,
                    tfw_error *error) {
    size_t frame;
    int status = tfwi_check_flags(flags, TFW_KEEP_ORDER, error);
    *out_done = 0;
    *out_len = 0;
    if (status != TFW_OK) {
        return status;
    }
    if (tfwi_add_overflows(headroom, tailroom, &frame)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "headroom and tailroom overflow");
    }
    if (r->u.keys.count > MAX_KEYS) {
        tfwi_rows_forget(r);
    }
    bool sort_keys = (flags & TFW_KEEP_ORDER) == 0;
    if (r->sort_keys != sort_keys) {
        r->sort_keys = sort_keys;
        r->u.pairs.count = 0; /* no guesses: find the order again */
    }
    tfwi_unpickle_begin(&r->u, stream, len);
    while ((status = tfwi_unpickle_row(&r->u)) == TFW_OK) {
        if (*out_done == span_capacity || capacity - *out_len < frame) {
            status = TFW_NEED_SPACE;
            break;
        }
        size_t begin = *out_len + headroom;
        tfwi_output output = {out + begin, out + capacity - tailroom};
        status = put_row(r, &output);
        if (status != TFW_OK) {
            break;
        }
        size_t size = (size_t)(output.at - out) - begin;
        out_spans[(*out_done)++] = (tfw_span){begin, size};
        *out_len = begin + size + tailroom;
    }
    if (status != TFW_END) {
        r->u.pairs.count = 0; /* the order may not be that of these keys */
    }
    return describe(status, error);
}
