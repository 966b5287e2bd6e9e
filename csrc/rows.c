/* Rows to messages: what unpickle.c reads becomes Examples. */
#include "numbers.h"
#include "unpickle.h"

/* A key's use from which on its template pays. */
#define TEMPLATE_USES 4

/* Keys are remembered from call to call, up to this number. */
#define MAX_KEYS 4096

/* The prefixes of a key, by kind less one. */
typedef struct key_prefixes {
    tfwi_scalar scalars[3]; /* where the prefix has a template; else all 0 */
    tfwi_prefix of[3];
    uint32_t uses[3]; /* 0: not made yet */
} key_prefixes;

struct tfw_rows {
    tfwi_unpickler u;
    TFWI_ARRAY(key_prefixes) prefixes; /* by key */
    TFWI_ARRAY(void *) blocks;         /* their memory */
    TFWI_ARRAY(uint32_t) order;        /* of the pairs, by name */
    TFWI_ARRAY(const tfwi_scalar *) scalars; /* of a run of numbers */
    const tfwi_writer *writer;
    bool sort_keys;                    /* what order was made for */
    uint64_t stamp;
    size_t guess; /* bytes of the last message's length */
};

/* ---- Order of the keys ---------------------------------------------------------------------- */

static bool comes_before(const tfw_rows *r, uint32_t i, uint32_t j) {
    const tfwi_key *a = &r->u.keys.of[r->u.pairs.of[i].key];
    const tfwi_key *b = &r->u.keys.of[r->u.pairs.of[j].key];
    int order = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);
    return order != 0 ? order < 0 : a->len < b->len;
}

/* Sorts order[0, count) by merging halves; spare is as long. */
static void sort(const tfw_rows *r, uint32_t *order, uint32_t *spare, size_t count) {
    if (count < 2) {
        return;
    }
    size_t half = count / 2;
    sort(r, order, spare, half);
    sort(r, order + half, spare, count - half);
    memcpy(spare, order, half * sizeof *order);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        if (j < count && comes_before(r, order[j], spare[i])) {
            order[k] = order[j++];
        } else {
            order[k] = spare[i++];
        }
    }
}

/* Finds the order for keys that are not those of the row before. */
static int find_order(tfw_rows *r) {
    size_t count = r->u.pairs.count;
    r->order.count = 0;
    r->stamp++;
    if (count > UINT32_MAX / 2) {
        return TFWI_UNKNOWN;
    }
    if (TFWI_RESERVE(r->order, 2 * count) != TFW_OK ||
        TFWI_RESERVE(r->scalars, count) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t *stamp = &r->u.keys.of[r->u.pairs.of[i].key].stamp;
        if (*stamp == r->stamp) {
            return TFWI_UNKNOWN; /* the same key as str and as bytes */
        }
        *stamp = r->stamp;
        r->order.of[i] = (uint32_t)i;
    }
    if (r->sort_keys && count > 1) {
        sort(r, r->order.of, r->order.of + count, count);
    }
    return TFW_OK;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static uint64_t *take_words(tfw_rows *r, size_t words) {
    if (TFWI_RESERVE(r->blocks, 1) != TFW_OK) {
        return NULL;
    }
    void *block = tfwi_calloc(words, sizeof(uint64_t));
    if (block != NULL) {
        r->blocks.of[r->blocks.count++] = block;
    }
    return block;
}

/* Gives every key a place for its prefixes. */
static int make_places(tfw_rows *r) {
    size_t more = r->u.keys.count - r->prefixes.count;
    if (TFWI_RESERVE(r->prefixes, more) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    memset(r->prefixes.of + r->prefixes.count, 0, more * sizeof *r->prefixes.of);
    r->prefixes.count += more;
    return TFW_OK;
}

/* Makes a prefix, or its template. */
static int make_prefix(tfw_rows *r, uint32_t index, int32_t kind, uint32_t use) {
    const tfwi_key *key = &r->u.keys.of[index];
    tfwi_prefix *f = &r->prefixes.of[index].of[kind - 1];
    uint64_t *memory = take_words(r, use == 0 ? tfwi_prefix_text_words(key->len)
                                              : tfwi_prefix_template_words(key->len));
    if (memory == NULL) {
        return TFW_E_MEMORY;
    }
    if (use == 0) {
        tfwi_prefix_init(f, (const char *)key->name, key->len, kind, memory);
    } else {
        tfwi_prefix_prepare(f, memory);
        tfwi_scalar scalar;
        if (tfwi_scalar_init(&scalar, f, kind, NULL)) {
            r->prefixes.of[index].scalars[kind - 1] = scalar;
        }
    }
    return TFW_OK;
}

/* The prefix for a key and a kind; NULL: no memory. */
TFWI_INLINE tfwi_prefix *prefix_of(tfw_rows *r, uint32_t index, int32_t kind) {
    if (TFWI_UNLIKELY(index >= r->prefixes.count) && make_places(r) != TFW_OK) {
        return NULL;
    }
    key_prefixes *prefixes = &r->prefixes.of[index];
    uint32_t use = prefixes->uses[kind - 1];
    if (TFWI_UNLIKELY(use <= TEMPLATE_USES)) {
        if ((use == 0 || use == TEMPLATE_USES) && make_prefix(r, index, kind, use) != TFW_OK) {
            return NULL;
        }
        prefixes->uses[kind - 1] = use + 1;
    }
    return &prefixes->of[kind - 1];
}

static double number_of(uint64_t bits, uint64_t type) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return type == TFWI_INT ? (double)(int64_t)bits : value;
}

static void put_string(const tfw_rows *r, const tfwi_prefix *f, uint64_t offset, uint64_t len,
                       tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, (size_t)len, out->at);
    out->at = tfwi_put_text(r->u.stream + offset, (size_t)len, r->u.len - (size_t)offset, p);
}

static void put_float_list(const tfwi_prefix *f, const tfwi_element *e, size_t count,
                           tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, 4 * count, out->at);
    for (size_t i = 0; i < count; i++, p += 4) {
        float value = (float)number_of(e[i].a, e[i].b);
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
    out->at = tfwi_prefix_place(f, TFWI_PACKED(f), out->at, p);
}

static void put_string_list(const tfw_rows *r, tfwi_prefix *f, const tfwi_element *e, size_t count,
                            tfwi_output *out) {
    if (count == 1) {
        put_string(r, f, e->a, e->b, out);
        return;
    }
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        *p++ = 0x0a;
        p = tfwi_put_length(p, e[i].b);
        p = tfwi_put_text(r->u.stream + e[i].a, (size_t)e[i].b, r->u.len - (size_t)e[i].a, p);
    }
    out->at = tfwi_prefix_place(f, TFWI_LIST(f), out->at, p);
}

/* The kind of a value: of a list, the one its elements have in common; TFW_NONE: they have none.
 * An empty list gets any. */
static int32_t kind_of(const tfwi_item *value) {
    if (value->type != TFWI_LIST) {
        return value->type == TFWI_RAW ? value->kind : value->type;
    }
    switch (value->kinds) {
    case 0:
    case TFWI_BIT(TFWI_INT): return TFW_INT64;
    case TFWI_BIT(TFWI_FLOAT):
    case TFWI_BIT(TFWI_FLOAT) | TFWI_BIT(TFWI_INT): return TFW_FLOAT;
    case TFWI_BIT(TFWI_STRING): return TFW_BYTES;
    default: return TFW_NONE;
    }
}

/* How many values there are; strings: their bytes in all. */
static size_t measure(const tfw_rows *r, const tfwi_item *value, int32_t kind,
                      size_t *out_text_len) {
    *out_text_len = value->type == TFWI_STRING ? (size_t)value->b : 0;
    if (value->type == TFWI_RAW) {
        return (size_t)(value->b / (kind == TFW_INT64 ? 8 : 4));
    }
    if (value->type != TFWI_LIST) {
        return 1;
    }
    for (uint64_t i = 0; kind == TFW_BYTES && i < value->b; i++) {
        *out_text_len += (size_t)r->u.tape.of[value->a + i].b;
    }
    return (size_t)value->b;
}

static void put_list(tfw_rows *r, tfwi_prefix *f, const tfwi_item *list, int32_t kind,
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
    int32_t kind = kind_of(value);
    if (kind == TFW_NONE) {
        return TFWI_UNKNOWN;
    }
    tfwi_prefix *f = prefix_of(r, pair->key, kind);
    if (f == NULL) {
        return TFW_E_MEMORY;
    }
    size_t text_len;
    size_t count = measure(r, value, kind, &text_len);
    if (!tfwi_has_room(out, tfwi_feature_bound(f, kind, count, text_len))) {
        return TFW_NEED_SPACE;
    }
    if (count == 0) { /* an array knows its kind, a list does not */
        unsigned lengths = value->type == TFWI_RAW ? TFWI_LIST(f) : f->outer;
        out->at = tfwi_prefix_put(f, lengths, 0, out->at);
        return TFW_OK;
    }
    float rounded;
    switch (value->type) {
    case TFWI_INT: tfwi_put_int64(f, (int64_t)value->a, out); break;
    case TFWI_FLOAT:
        rounded = (float)number_of(value->a, TFWI_FLOAT);
        tfwi_put_floats(f, &rounded, 1, out);
        break;
    case TFWI_STRING: put_string(r, f, value->a, value->b, out); break;
    case TFWI_RAW: put_array(r, f, value, count, out); break;
    default: put_list(r, f, value, kind, out);
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
        if ((value->type != TFWI_INT && value->type != TFWI_FLOAT) ||
            pair->key >= r->prefixes.count) {
            break;
        }
        tfwi_scalar *scalar = &r->prefixes.of[pair->key].scalars[value->type - 1];
        if (scalar->template == NULL) {
            break;
        }
        if (value->type == TFWI_FLOAT) {
            float rounded = (float)number_of(value->a, TFWI_FLOAT);
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
    int status = r->u.same_keys ? TFW_OK : find_order(r);
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
    out->at = tfwi_close_section(start, 0x0a, &r->guess, inner.at);
    return out->at - start > INT32_MAX ? TFWI_UNKNOWN : TFW_OK;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

int tfw_rows_create(tfw_rows **out_rows, tfw_error *error) {
    tfw_rows *r = tfwi_calloc(1, sizeof *r);
    *out_rows = r;
    if (r == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a row encoder");
    }
    r->guess = 1;
    r->writer = tfwi_writer_best();
    return TFW_OK;
}

static void forget_keys(tfw_rows *r) {
    for (size_t i = 0; i < r->blocks.count; i++) {
        tfw_free(r->blocks.of[i]);
    }
    r->blocks.count = 0;
    r->prefixes.count = 0;
    tfwi_unpickle_clear(&r->u);
}

void tfw_rows_free(tfw_rows *r) {
    if (r != NULL) {
        forget_keys(r);
        tfw_free(r->blocks.of);
        tfw_free(r->prefixes.of);
        tfw_free(r->order.of);
        tfw_free(r->scalars.of);
        tfw_free(r);
    }
}

/* What a call returns: what ended it. */
static int describe(int status, tfw_error *error) {
    switch (status) {
    case TFW_END: return TFW_OK;
    case TFW_E_MEMORY: return tfwi_fail(error, status, "no memory for the values of a row");
    case TFWI_UNKNOWN: return tfwi_fail(error, status, "a row of other than plain values");
    default: return tfwi_fail(error, status, "the output is full");
    }
}

int tfw_rows_encode(tfw_rows *r, const uint8_t *stream, size_t len, unsigned flags,
                    size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
                    tfw_span *out_spans, size_t span_capacity, size_t *out_done, size_t *out_len,
                    tfw_error *error) {
    size_t frame;
    *out_done = 0;
    *out_len = 0;
    if (tfwi_add_overflows(headroom, tailroom, &frame)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "headroom and tailroom overflow");
    }
    if (r->u.keys.count > MAX_KEYS) {
        forget_keys(r);
    }
    bool sort_keys = (flags & TFW_KEEP_ORDER) == 0;
    if (r->sort_keys != sort_keys) {
        r->sort_keys = sort_keys;
        r->u.pairs.count = 0; /* guess no keys, so that the order is found anew */
    }
    tfwi_unpickle_begin(&r->u, stream, len);
    int status;
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
