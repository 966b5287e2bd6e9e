/* SPDX-License-Identifier: Apache-2.0 */
/* pickle's stack machine, as far as rows of plain values need it: one opcode at a time. */
#include "python/unpickler.h"

#define MAX_REPLAYS 8

/* ---- Scalars -------------------------------------------------------------------------------- */

static int push(tfwi_unpickler *u, tfwi_item item) {
    if (!TFWI_RESERVE_MORE(u->items, 1)) {
        return TFW_E_MEMORY;
    }
    u->items.of[u->items.count++] = item;
    return TFW_OK;
}

static int push_int(tfwi_unpickler *u, size_t at, size_t size, bool is_signed) {
    if (size > 8 || !tfwi_has(u, size)) {
        return TFWI_UNKNOWN; /* beyond int64, or cut off */
    }
    uint64_t v = tfwi_load_sized(u, size);
    u->at += size;
    v = is_signed ? tfwi_extend_sign(v, size) : v;
    return push(u, (tfwi_item){.type = TFWI_ITEM_INT, .a = v, .at = at});
}

static int push_float(tfwi_unpickler *u, size_t at) {
    if (!tfwi_has(u, 8)) {
        return TFWI_UNKNOWN;
    }
    uint64_t v = tfwi_swap64(tfwi_load64(u->stream + u->at));
    u->at += 8;
    return push(u, (tfwi_item){.type = TFWI_ITEM_FLOAT, .a = v, .at = at});
}

static int push_string(tfwi_unpickler *u, size_t at, size_t size_of_length, bool is_text) {
    if (!tfwi_has(u, size_of_length)) {
        return TFWI_UNKNOWN;
    }
    uint64_t len = tfwi_load_sized(u, size_of_length);
    u->at += size_of_length;
    if (!tfwi_has(u, len) ||
        (is_text && tfwi_has_surrogates(u->stream + u->at, (size_t)len))) {
        return TFWI_UNKNOWN;
    }
    size_t begin = u->at;
    u->at += (size_t)len;
    return push(u, (tfwi_item){.type = TFWI_ITEM_STRING, .a = begin, .b = len, .at = at});
}

static int run_scalar(tfwi_unpickler *u, uint8_t op, size_t at) {
    switch (op) {
    case OP_BININT1: return push_int(u, at, 1, false);
    case OP_BININT2: return push_int(u, at, 2, false);
    case OP_BININT: return push_int(u, at, 4, true);
    case OP_LONG1: {
        if (!tfwi_has(u, 1)) {
            return TFWI_UNKNOWN;
        }
        size_t size = u->stream[u->at++];
        return push_int(u, at, size, true);
    }
    case OP_NEWFALSE:
    case OP_NEWTRUE:
        return push(u, (tfwi_item){.type = TFWI_ITEM_INT, .a = op == OP_NEWTRUE, .at = at});
    case OP_BINFLOAT: return push_float(u, at);
    case OP_NONE: return push(u, (tfwi_item){.type = TFWI_ITEM_MISSING, .at = at});
    case OP_SHORT_BINUNICODE: return push_string(u, at, 1, true);
    case OP_BINUNICODE: return push_string(u, at, 4, true);
    case OP_BINUNICODE8: return push_string(u, at, 8, true);
    case OP_SHORT_BINBYTES: return push_string(u, at, 1, false);
    case OP_BINBYTES: return push_string(u, at, 4, false);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return push_string(u, at, 8, false);
    default: return TFWI_UNKNOWN;
    }
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static bool is_scalar_item(const tfwi_item *item) { return item->type <= TFWI_ITEM_INT; }

/* Lists of equal length become one list of rank 2; their elements already lie in a row. */
static int join_lists(tfwi_unpickler *u, tfwi_item *list, size_t first) {
    const tfwi_item *end = u->items.of + u->items.count;
    for (const tfwi_item *item = u->items.of + first; item < end; item++) {
        bool is_first = list->rank == 0;
        bool follows = item->b == 0 || item->a == list->a + list->b;
        if (item->type != TFWI_ITEM_LIST || item->rank > 1 ||
            (!is_first && (list->rank != 2 || list->inner != item->b || !follows))) {
            return TFWI_UNKNOWN;
        }
        if (is_first) {
            list->rank = 2;
            list->inner = item->b;
            list->a = item->a;
        }
        list->b += item->b;
        list->kinds |= item->kinds;
    }
    return TFW_OK;
}

/* Scalars become elements at the end of the tape. */
static int add_scalars(tfwi_unpickler *u, tfwi_item *list, size_t first) {
    size_t count = u->items.count - first;
    if (list->rank == 0) {
        list->rank = 1;
        list->a = u->tape.count;
    }
    if (list->rank != 1 || list->a + list->b != u->tape.count) {
        return TFWI_UNKNOWN;
    }
    if (!TFWI_RESERVE_MORE(u->tape, count)) {
        return TFW_E_MEMORY;
    }
    const tfwi_item *end = u->items.of + u->items.count;
    for (const tfwi_item *item = u->items.of + first; item < end; item++) {
        if (!is_scalar_item(item)) {
            return TFWI_UNKNOWN;
        }
        list->kinds |= TFWI_BIT(item->type);
        u->tape.of[u->tape.count++] =
            (tfwi_element){item->a, item->type == TFWI_ITEM_STRING ? item->b : item->type};
    }
    list->b += count;
    return TFW_OK;
}

/* Items from first on leave the stack and become elements of a list. */
static int extend_list(tfwi_unpickler *u, tfwi_item *list, size_t first) {
    int status = TFW_OK;
    if (first < u->items.count) {
        bool scalars = is_scalar_item(&u->items.of[first]);
        status = scalars ? add_scalars(u, list, first) : join_lists(u, list, first);
    }
    u->items.count = first;
    return status;
}

/* APPEND, APPENDS: items from first on go into the list below them. */
static int append_items(tfwi_unpickler *u, size_t first) {
    if (first == 0 || first > u->items.count || u->items.of[first - 1].type != TFWI_ITEM_LIST) {
        return TFWI_UNKNOWN;
    }
    tfwi_item *list = &u->items.of[first - 1];
    if (list->memo != 0 && u->replays == 0) {
        u->memos.of[list->memo - 1].b = u->at;
    }
    return extend_list(u, list, first);
}

/* Items from first on become a tuple. */
static int make_tuple(tfwi_unpickler *u, size_t first, size_t at) {
    if (first > u->items.count) {
        return TFWI_UNKNOWN;
    }
    tfwi_item tuple = {.type = TFWI_ITEM_LIST, .at = at};
    int status = extend_list(u, &tuple, first);
    return status == TFW_OK ? push(u, tuple) : status;
}

static int make_short_tuple(tfwi_unpickler *u, size_t count) {
    size_t below = u->mark_count != 0 ? u->marks[u->mark_count - 1].items : 0;
    if (u->items.count < below + count) {
        return TFWI_UNKNOWN;
    }
    size_t first = u->items.count - count;
    return make_tuple(u, first, (size_t)u->items.of[first].at);
}

static int push_mark(tfwi_unpickler *u, size_t at) {
    if (u->mark_count == TFWI_MAX_MARKS) {
        return TFWI_UNKNOWN;
    }
    u->marks[u->mark_count++] = (tfwi_mark){u->items.count, at};
    return TFW_OK;
}

static bool pop_mark(tfwi_unpickler *u, tfwi_mark *out) {
    if (u->mark_count == 0) {
        return false;
    }
    *out = u->marks[--u->mark_count];
    return true;
}

/* ---- Markers: how the Python side writes values that pickle has no opcode for --------------- */

static bool is_named(const tfwi_unpickler *u, const tfwi_item *item, const char *name) {
    size_t len = strlen(name);
    return item->type == TFWI_ITEM_STRING && item->b == len &&
           memcmp(u->stream + item->a, name, len) == 0;
}

/* Pushes the marker for the global that stands for it. */
static int push_native(tfwi_unpickler *u) {
    if (u->items.count < 2) {
        return TFWI_UNKNOWN;
    }
    const tfwi_item *names = &u->items.of[u->items.count - 2];
    if (!is_named(u, &names[0], "tfwire._examples.encode_rows")
        || !is_named(u, &names[1], "native")) {
        return TFWI_UNKNOWN;
    }
    tfwi_item native = {.type = TFWI_ITEM_NATIVE, .at = names[0].at};
    u->items.count -= 2;
    return push(u, native);
}

/* native(scalar), native([strings]), native(kind, bytes of an array; of strings: an empty one); of
 * kind 0, a value that is missing. */
static int reduce(tfwi_unpickler *u) {
    if (u->items.count < 2) {
        return TFWI_UNKNOWN;
    }
    const tfwi_item *native = &u->items.of[u->items.count - 2];
    tfwi_item args = native[1];
    if (native->type != TFWI_ITEM_NATIVE || args.type != TFWI_ITEM_LIST) {
        return TFWI_UNKNOWN;
    }
    tfwi_item result = {.type = TFWI_ITEM_LIST, .at = native->at};
    tfwi_element e[2] = {{0, 0}};
    if (args.b == 1 || args.b == 2) {
        memcpy(e, u->tape.of + args.a, (size_t)args.b * sizeof *e);
    }
    if (args.rank == 2) {
        result.rank = 1;
        result.kinds = args.kinds;
        result.a = args.a;
        result.b = args.b;
    } else if (args.b == 1) {
        result.type = args.kinds == TFWI_BIT(TFWI_ITEM_STRING) ? TFWI_ITEM_STRING : (uint8_t)e[0].b;
        result.a = e[0].a;
        result.b = e[0].b;
    } else if (args.b == 2 &&
               args.kinds == (TFWI_BIT(TFWI_ITEM_INT) | TFWI_BIT(TFWI_ITEM_STRING)) &&
               e[1].a <= u->len && e[1].b <= u->len - e[1].a && e[0].a <= TFW_INT64 &&
               (e[0].a > TFW_BYTES || e[1].b == 0)) {
        result.type = e[0].a == TFW_NONE ? TFWI_ITEM_MISSING : TFWI_ITEM_RAW;
        result.kind = (uint8_t)e[0].a;
        result.a = e[1].a;
        result.b = e[1].b;
    } else {
        return TFWI_UNKNOWN;
    }
    u->items.count -= 2;
    return push(u, result);
}

/* ---- Memo ----------------------------------------------------------------------------------- */

/* MEMOIZE: remembers the item on top. */
static int memoize_top(tfwi_unpickler *u) {
    if (u->items.count == 0) {
        return TFWI_UNKNOWN;
    }
    if (u->replays != 0) {
        return TFW_OK;
    }
    tfwi_item *item = &u->items.of[u->items.count - 1];
    tfwi_memo memo = {.type = item->type, .kind = item->kind, .a = item->a, .b = item->b};
    if (item->type == TFWI_ITEM_LIST) {
        memo.a = item->at;
        memo.b = u->at;
    }
    int status = tfwi_memoize(u, memo);
    item->memo = (uint32_t)u->memos.count;
    return status;
}

/* Runs memoised opcodes again. */
static int replay(tfwi_unpickler *u, size_t from, size_t to) {
    if (u->replays >= MAX_REPLAYS) {
        return TFWI_UNKNOWN;
    }
    size_t back_at = u->at;
    size_t back_end = u->end;
    size_t items = u->items.count;
    int status = TFW_OK;
    u->replays++;
    u->at = from;
    u->end = to;
    while (status == TFW_OK && u->at < u->end) {
        status = tfwi_run(u);
    }
    u->replays--;
    u->at = back_at;
    u->end = back_end;
    return status == TFW_OK && u->items.count != items + 1 ? TFWI_UNKNOWN : status;
}

static bool is_memoised_as(const tfwi_item *item, size_t index) {
    return item->type == TFWI_ITEM_LIST && item->memo == index + 1;
}

/* Whether a list is still being built, so that it would contain itself: it stands below a mark or
 * on top, where APPENDS or APPEND will find it. */
static bool is_open(const tfwi_unpickler *u, size_t index) {
    for (size_t i = 0; i < u->mark_count; i++) {
        size_t items = u->marks[i].items;
        if (items != 0 && is_memoised_as(&u->items.of[items - 1], index)) {
            return true;
        }
    }
    return u->items.count != 0 && is_memoised_as(&u->items.of[u->items.count - 1], index);
}

static int recall_memo(tfwi_unpickler *u, size_t at, size_t size) {
    if (!tfwi_has(u, size)) {
        return TFWI_UNKNOWN;
    }
    uint64_t index = tfwi_load_sized(u, size);
    u->at += size;
    if (index >= u->memos.count) {
        return TFWI_UNKNOWN;
    }
    tfwi_memo memo = u->memos.of[index];
    switch (memo.type) {
    case TFWI_ITEM_STRING:
    case TFWI_ITEM_FLOAT:
    case TFWI_ITEM_INT:
    case TFWI_ITEM_RAW:
    case TFWI_ITEM_MISSING:
    case TFWI_ITEM_NATIVE:
        return push(u, (tfwi_item){.type = memo.type, .kind = memo.kind, .a = memo.a, .b = memo.b,
                                   .memo = (uint32_t)index + 1, .at = at});
    case TFWI_ITEM_LIST:
        return is_open(u, (size_t)index) ? TFWI_UNKNOWN
                                         : replay(u, (size_t)memo.a, (size_t)memo.b);
    default: return TFWI_UNKNOWN;
    }
}

/* ---- The machine ---------------------------------------------------------------------------- */

int tfwi_run(tfwi_unpickler *u) {
    if (!tfwi_has(u, 1)) {
        return TFWI_UNKNOWN;
    }
    tfwi_mark mark;
    size_t at = u->at++;
    uint8_t op = u->stream[at];
    switch (op) {
    case OP_MEMOIZE: return memoize_top(u);
    case OP_BINGET: return recall_memo(u, at, 1);
    case OP_LONG_BINGET: return recall_memo(u, at, 4);
    case OP_FRAME:
        u->at += TFWI_PICKLE_FRAME_SIZE - 1;
        return u->at <= u->end ? TFW_OK : TFWI_UNKNOWN;
    case OP_MARK: return push_mark(u, at);
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE: return push(u, (tfwi_item){.type = TFWI_ITEM_LIST, .at = at});
    case OP_APPEND: return u->items.count == 0 ? TFWI_UNKNOWN : append_items(u, u->items.count - 1);
    case OP_APPENDS: return pop_mark(u, &mark) ? append_items(u, mark.items) : TFWI_UNKNOWN;
    case OP_TUPLE: return pop_mark(u, &mark) ? make_tuple(u, mark.items, mark.at) : TFWI_UNKNOWN;
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3: return make_short_tuple(u, (size_t)op - OP_TUPLE1 + 1);
    case OP_STACK_GLOBAL: return push_native(u);
    case OP_REDUCE: return reduce(u);
    default: return run_scalar(u, op, at);
    }
}
