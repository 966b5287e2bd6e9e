/* Rows of Python to messages, through pickle.
 *
 * pickle.dumps is the fastest way there is to hand many Python objects over: 200 ns for a row of
 * four values. For dicts of plain values it uses few opcodes, and this file runs them as pickle's
 * own stack machine would, except that a row ends as an Example. What it does not know ends the
 * run: the rows before are encoded, and Python takes over with the row at hand.
 *
 * The stream is trusted no more than a file: every length is checked against the bytes present,
 * every reference against what it refers to. */
#include "prefix.h"

#define UNKNOWN TFW_E_UNSUPPORTED /* a row for Python */
#define MAX_MARKS 8
#define MAX_REPLAYS 8
#define MAX_PROBES 64
#define TEMPLATE_USES 4 /* a key's use from which on its template pays */

/* The opcodes of pickle protocol 5 that plain values need. */
enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_DICT = '}',
    OP_REDUCE = 'R',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BINUNICODE = 'X',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96
};

/* What lies on the stack. The kinds of scalars are those of features. */
enum item_type {
    ITEM_STRING = TFW_BYTES,
    ITEM_FLOAT = TFW_FLOAT,
    ITEM_INT = TFW_INT64,
    ITEM_LIST,   /* a list or tuple */
    ITEM_RAW,    /* an array: the bytes of its numbers */
    ITEM_NATIVE, /* the marker that REDUCE applies, see reduce() */
    ITEM_ROW     /* a dict; only in the memo */
};

typedef struct item {
    uint8_t type;
    uint8_t kind;  /* raw: of its numbers */
    uint8_t kinds; /* list: the kinds of its elements, a bit for each */
    uint8_t rank;  /* list: 1, or 2 for a list of lists */
    uint64_t a;    /* number (bits); string, raw: offset in the stream; list: first element */
    uint64_t b;    /* string, raw: bytes; list: number of elements */
    uint64_t inner; /* list of lists: elements of each */
    size_t memo;   /* 1 + its index in the memo, 0: none */
    size_t at;     /* where its opcodes begin */
} item;

/* An element of a list. Numbers: bits and kind; strings: offset and bytes. */
typedef struct element {
    uint64_t a;
    uint64_t b;
} element;

/* What MEMOIZE keeps. Lists and rows are run again from their opcodes [a, b). */
typedef struct memo {
    uint8_t type; /* 0: nothing that can be used again */
    uint8_t kind;
    uint32_t key; /* string: 1 + index of the key that it was found to be */
    uint64_t a;
    uint64_t b;
} memo;

typedef struct key {
    const uint8_t *name; /* in the stream */
    size_t len;
    uint64_t hash;
    uint64_t last_row; /* 1 + number of the row that had it last */
    tfwi_prefix prefixes[3]; /* by kind, less one; text NULL: not made yet */
    uint32_t uses[3];
} key;

typedef struct entry {
    uint32_t key;
    item value;
} entry;

typedef struct mark {
    size_t items; /* on the stack below it */
    size_t at;    /* where its opcode stands */
} mark;

/* A growing array: of what is its owner's business. */
#define ARRAY(type)      \
    struct {             \
        type *of;        \
        size_t count;    \
        size_t capacity; \
    }

typedef struct rows {
    const uint8_t *stream;
    size_t len;
    size_t at;
    size_t end; /* of what is being run */
    unsigned replays; /* memoised opcodes that are being run again; they are not memoised again */
    bool sort_keys;
    size_t mark_count;
    mark marks[MAX_MARKS];
    ARRAY(item) items;
    ARRAY(element) tape;
    ARRAY(memo) memos;
    ARRAY(key) keys;
    ARRAY(uint32_t) table; /* hash table of 1 + index into keys */
    ARRAY(entry) entries;
    ARRAY(uint32_t) order;    /* of the entries, by key */
    ARRAY(uint32_t) sequence; /* the keys that order is for */
    ARRAY(void *) blocks;     /* memory of prefixes */
    uint64_t row;
    size_t guess;
} rows;

/* ---- Growing arrays ------------------------------------------------------------------------- */

/* Makes room for more entries. */
static int grow(void **of, size_t count, size_t *capacity, size_t more, size_t size) {
    if (*capacity - count >= more) {
        return TFW_OK;
    }
    size_t wanted = count + more > 2 * *capacity ? count + more + 16 : 2 * *capacity;
    size_t bytes;
    if (tfwi_mul_overflows(wanted, size, &bytes)) {
        return TFW_E_MEMORY;
    }
    void *grown = tfwi_realloc(*of, bytes);
    if (grown == NULL) {
        return TFW_E_MEMORY;
    }
    *of = grown;
    *capacity = wanted;
    return TFW_OK;
}

#define RESERVE(array, more)                                                              \
    ((array).capacity - (array).count >= (more)                                           \
         ? TFW_OK                                                                         \
         : grow((void **)&(array).of, (array).count, &(array).capacity, (more),           \
                sizeof *(array).of))

/* ---- Reading the stream --------------------------------------------------------------------- */

TFWI_INLINE bool has(const rows *r, uint64_t bytes) { return r->end - r->at >= bytes; }

static int push(rows *r, item it) {
    int status = RESERVE(r->items, 1);
    if (TFWI_UNLIKELY(status != TFW_OK)) {
        return status;
    }
    r->items.of[r->items.count++] = it;
    return TFW_OK;
}

/* A little-endian integer of size bytes, sign-extended where asked for; size 0..8, present. */
static uint64_t load(const rows *r, size_t size, bool is_signed) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)r->stream[r->at + i] << (8 * i);
    }
    if (is_signed && size != 0 && size < 8 && (r->stream[r->at + size - 1] & 0x80)) {
        v |= ~UINT64_C(0) << (8 * size);
    }
    return v;
}

static int read_int(rows *r, size_t at, size_t size, bool is_signed) {
    if (size > 8 || !has(r, size)) {
        return UNKNOWN; /* beyond int64, or cut off */
    }
    uint64_t v = load(r, size, is_signed);
    r->at += size;
    return push(r, (item){.type = ITEM_INT, .a = v, .at = at});
}

static int read_float(rows *r, size_t at) {
    if (!has(r, 8)) {
        return UNKNOWN;
    }
    uint64_t v = tfwi_swap64(load(r, 8, false));
    r->at += 8;
    return push(r, (item){.type = ITEM_FLOAT, .a = v, .at = at});
}

/* Lone surrogates, which UTF-8 does not have but pickle writes. */
static bool has_surrogates(const uint8_t *text, size_t len) {
    const uint8_t *end = text + len;
    while (text < end && (text = memchr(text, 0xed, (size_t)(end - text))) != NULL) {
        if (++text < end && *text >= 0xa0) {
            return true;
        }
    }
    return false;
}

static int read_string(rows *r, size_t at, size_t size_of_length, bool is_text) {
    if (!has(r, size_of_length)) {
        return UNKNOWN;
    }
    uint64_t len = load(r, size_of_length, false);
    r->at += size_of_length;
    if (!has(r, len) || (is_text && has_surrogates(r->stream + r->at, (size_t)len))) {
        return UNKNOWN;
    }
    size_t begin = r->at;
    r->at += (size_t)len;
    return push(r, (item){.type = ITEM_STRING, .a = begin, .b = len, .at = at});
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static bool is_scalar(const item *it) { return it->type <= ITEM_INT; }

/* Lists of equal length become one list of rank 2; their elements already lie in a row. */
static int join_lists(rows *r, item *list, size_t first) {
    for (const item *it = r->items.of + first; it < r->items.of + r->items.count; it++) {
        bool is_first = list->rank == 0;
        if (it->type != ITEM_LIST || it->rank > 1 || (!is_first && list->inner != it->b) ||
            (!is_first && it->b != 0 && it->a != list->a + list->b)) {
            return UNKNOWN;
        }
        if (is_first) {
            list->rank = 2;
            list->inner = it->b;
            list->a = it->a;
        }
        list->b += it->b;
        list->kinds |= it->kinds;
    }
    return TFW_OK;
}

/* Scalars become elements at the end of the tape. */
static int add_scalars(rows *r, item *list, size_t first) {
    size_t count = r->items.count - first;
    if (list->rank == 0) {
        list->rank = 1;
        list->a = r->tape.count;
    }
    if (list->rank != 1 || list->a + list->b != r->tape.count) {
        return UNKNOWN;
    }
    int status = RESERVE(r->tape, count);
    if (status != TFW_OK) {
        return status;
    }
    for (const item *it = r->items.of + first; it < r->items.of + r->items.count; it++) {
        if (!is_scalar(it)) {
            return UNKNOWN;
        }
        list->kinds |= (uint8_t)(1u << it->type);
        r->tape.of[r->tape.count++] =
            (element){it->a, it->type == ITEM_STRING ? it->b : it->type};
    }
    list->b += count;
    return TFW_OK;
}

/* Items from first on leave the stack and become elements of a list. */
static int extend(rows *r, item *list, size_t first) {
    int status = TFW_OK;
    if (first < r->items.count) {
        bool scalars = is_scalar(&r->items.of[first]);
        status = scalars ? add_scalars(r, list, first) : join_lists(r, list, first);
    }
    r->items.count = first;
    return status;
}

/* APPEND, APPENDS: items from first on go into the list below them. */
static int append(rows *r, size_t first) {
    if (first == 0 || first > r->items.count || r->items.of[first - 1].type != ITEM_LIST) {
        return UNKNOWN;
    }
    item *list = &r->items.of[first - 1];
    if (list->memo != 0 && r->replays == 0) {
        r->memos.of[list->memo - 1].b = r->at;
    }
    return extend(r, list, first);
}

/* Items from first on become a tuple. */
static int make_tuple(rows *r, size_t first, size_t at) {
    if (first > r->items.count) {
        return UNKNOWN;
    }
    item tuple = {.type = ITEM_LIST, .at = at};
    int status = extend(r, &tuple, first);
    return status == TFW_OK ? push(r, tuple) : status;
}

static int make_short_tuple(rows *r, size_t count) {
    size_t below = r->mark_count != 0 ? r->marks[r->mark_count - 1].items : 0;
    if (r->items.count - below < count) {
        return UNKNOWN;
    }
    size_t first = r->items.count - count;
    return make_tuple(r, first, r->items.of[first].at);
}

/* Pops the mark; false when there is none. */
static bool pop_mark(rows *r, mark *out) {
    if (r->mark_count == 0) {
        return false;
    }
    *out = r->marks[--r->mark_count];
    return true;
}

/* ---- Markers: what Python's side of this file makes of values that pickle does not know ------- */

/* The global that stands for our marker. */
static int read_global(rows *r) {
    static const char module[] = "tfwire._rows", name[] = "native";
    if (r->items.count < 2) {
        return UNKNOWN;
    }
    const item names[] = {r->items.of[r->items.count - 2], r->items.of[r->items.count - 1]};
    if (names[0].type != ITEM_STRING || names[0].b != sizeof module - 1 ||
        memcmp(r->stream + names[0].a, module, sizeof module - 1) != 0 ||
        names[1].type != ITEM_STRING || names[1].b != sizeof name - 1 ||
        memcmp(r->stream + names[1].a, name, sizeof name - 1) != 0) {
        return UNKNOWN;
    }
    r->items.count -= 2;
    return push(r, (item){.type = ITEM_NATIVE, .at = names[0].at});
}

/* native(scalar), native([strings]), native(kind, bytes of an array). */
static int reduce(rows *r) {
    size_t count = r->items.count;
    if (count < 2 || r->items.of[count - 2].type != ITEM_NATIVE ||
        r->items.of[count - 1].type != ITEM_LIST) {
        return UNKNOWN;
    }
    item args = r->items.of[count - 1];
    item result = {.type = ITEM_LIST, .at = r->items.of[count - 2].at};
    element e[2] = {{0, 0}};
    if (args.b == 1 || args.b == 2) {
        memcpy(e, r->tape.of + args.a, (size_t)args.b * sizeof *e);
    }
    if (args.rank == 2) {
        result.rank = 1;
        result.kinds = args.kinds;
        result.a = args.a;
        result.b = args.b;
    } else if (args.b == 1) {
        result.type = args.kinds == 1u << ITEM_STRING ? ITEM_STRING : (uint8_t)e[0].b;
        result.a = e[0].a;
        result.b = e[0].b;
    } else if (args.b == 2 && args.kinds == (1u << ITEM_INT | 1u << ITEM_STRING) &&
               e[1].a <= r->len && e[1].b <= r->len - e[1].a) {
        result.type = ITEM_RAW;
        result.kind = e[0].a == TFW_INT64 ? TFW_INT64 : TFW_FLOAT;
        result.a = e[1].a;
        result.b = e[1].b;
    } else {
        return UNKNOWN;
    }
    r->items.count -= 2;
    return push(r, result);
}

/* ---- Memo ----------------------------------------------------------------------------------- */

static int memoize(rows *r, const memo *m) {
    int status = RESERVE(r->memos, 1);
    if (status == TFW_OK) {
        r->memos.of[r->memos.count++] = *m;
    }
    return status;
}

/* MEMOIZE: remembers the item on top. */
static int memoize_top(rows *r) {
    if (r->items.count == 0) {
        return UNKNOWN;
    }
    if (r->replays != 0) {
        return TFW_OK;
    }
    item *it = &r->items.of[r->items.count - 1];
    memo m = {.type = it->type, .kind = it->kind, .a = it->a, .b = it->b};
    if (it->type == ITEM_LIST) {
        m.a = it->at;
        m.b = r->at;
    }
    it->memo = r->memos.count + 1;
    return memoize(r, &m);
}

static int run(rows *r, uint8_t op, size_t at);

/* Runs memoised opcodes again. */
static int replay(rows *r, size_t from, size_t to) {
    if (r->replays >= MAX_REPLAYS) {
        return UNKNOWN;
    }
    size_t back_at = r->at;
    size_t back_end = r->end;
    size_t items = r->items.count;
    int status = TFW_OK;
    r->replays++;
    r->at = from;
    r->end = to;
    while (status == TFW_OK && r->at < r->end) {
        size_t at = r->at++;
        status = run(r, r->stream[at], at);
    }
    r->replays--;
    r->at = back_at;
    r->end = back_end;
    return status == TFW_OK && r->items.count != items + 1 ? UNKNOWN : status;
}

/* A list that holds itself is met on the stack while it is still being made. */
static bool is_open(const rows *r, size_t index) {
    for (size_t i = 0; i < r->items.count; i++) {
        if (r->items.of[i].type == ITEM_LIST && r->items.of[i].memo == index + 1) {
            return true;
        }
    }
    return false;
}

static int recall(rows *r, size_t at, size_t size) {
    if (!has(r, size)) {
        return UNKNOWN;
    }
    uint64_t index = load(r, size, false);
    r->at += size;
    if (index >= r->memos.count) {
        return UNKNOWN;
    }
    const memo *m = &r->memos.of[index];
    switch (m->type) {
    case ITEM_STRING:
    case ITEM_FLOAT:
    case ITEM_INT:
    case ITEM_RAW:
    case ITEM_NATIVE:
        return push(r, (item){.type = m->type, .kind = m->kind, .a = m->a, .b = m->b,
                              .memo = (size_t)index + 1, .at = at});
    case ITEM_LIST:
        return is_open(r, (size_t)index) ? UNKNOWN : replay(r, (size_t)m->a, (size_t)m->b);
    default: return UNKNOWN;
    }
}

/* ---- The machine ---------------------------------------------------------------------------- */

static int run_scalar(rows *r, uint8_t op, size_t at) {
    switch (op) {
    case OP_BININT1: return read_int(r, at, 1, false);
    case OP_BININT2: return read_int(r, at, 2, false);
    case OP_BININT: return read_int(r, at, 4, true);
    case OP_LONG1:
        if (!has(r, 1)) {
            return UNKNOWN;
        }
        return r->at++, read_int(r, at, r->stream[r->at - 1], true);
    case OP_NEWFALSE:
    case OP_NEWTRUE: return push(r, (item){.type = ITEM_INT, .a = op == OP_NEWTRUE, .at = at});
    case OP_BINFLOAT: return read_float(r, at);
    case OP_SHORT_BINUNICODE: return read_string(r, at, 1, true);
    case OP_BINUNICODE: return read_string(r, at, 4, true);
    case OP_BINUNICODE8: return read_string(r, at, 8, true);
    case OP_SHORT_BINBYTES: return read_string(r, at, 1, false);
    case OP_BINBYTES: return read_string(r, at, 4, false);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return read_string(r, at, 8, false);
    default: return UNKNOWN;
    }
}

/* Runs one opcode of a value; r->at stands behind it. */
static int run(rows *r, uint8_t op, size_t at) {
    mark m;
    switch (op) {
    case OP_MEMOIZE: return memoize_top(r);
    case OP_BINGET: return recall(r, at, 1);
    case OP_LONG_BINGET: return recall(r, at, 4);
    case OP_FRAME:
        if (!has(r, 8)) {
            return UNKNOWN;
        }
        r->at += 8;
        return TFW_OK;
    case OP_MARK:
        if (r->mark_count == MAX_MARKS) {
            return UNKNOWN;
        }
        r->marks[r->mark_count++] = (mark){r->items.count, at};
        return TFW_OK;
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE: return push(r, (item){.type = ITEM_LIST, .at = at});
    case OP_APPEND: return r->items.count == 0 ? UNKNOWN : append(r, r->items.count - 1);
    case OP_APPENDS: return pop_mark(r, &m) ? append(r, m.items) : UNKNOWN;
    case OP_TUPLE: return pop_mark(r, &m) ? make_tuple(r, m.items, m.at) : UNKNOWN;
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3: return make_short_tuple(r, (size_t)op - OP_TUPLE1 + 1);
    case OP_STACK_GLOBAL: return read_global(r);
    case OP_REDUCE: return reduce(r);
    default: return run_scalar(r, op, at);
    }
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *name, size_t len) {
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ len;
    for (; len >= 8; name += 8, len -= 8) {
        h = (h ^ tfwi_load64(name)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    for (; len > 0; name++, len--) {
        h = (h ^ *name) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

static int rehash(rows *r) {
    size_t capacity = r->table.capacity != 0 ? 2 * r->table.capacity : 64;
    uint32_t *table = tfwi_calloc(capacity, sizeof *table);
    if (table == NULL) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < r->keys.count; i++) {
        size_t slot = (size_t)r->keys.of[i].hash & (capacity - 1);
        while (table[slot] != 0) {
            slot = (slot + 1) & (capacity - 1);
        }
        table[slot] = (uint32_t)i + 1;
    }
    tfw_free(r->table.of);
    r->table.of = table;
    r->table.capacity = capacity;
    return TFW_OK;
}

static int add_key(rows *r, const uint8_t *name, size_t len, uint64_t hash, size_t slot) {
    int status = RESERVE(r->keys, 1);
    if (status != TFW_OK || r->keys.count >= INT32_MAX) {
        return status != TFW_OK ? status : UNKNOWN;
    }
    r->keys.of[r->keys.count++] = (key){.name = name, .len = len, .hash = hash};
    r->table.of[slot] = (uint32_t)r->keys.count;
    return TFW_OK;
}

/* The index of the key that a string is. */
static int find_key(rows *r, const item *it, uint32_t *out_key) {
    if (it->memo != 0 && r->memos.of[it->memo - 1].key != 0) {
        *out_key = r->memos.of[it->memo - 1].key - 1;
        return TFW_OK;
    }
    int status = 2 * r->keys.count >= r->table.capacity ? rehash(r) : TFW_OK;
    if (status != TFW_OK) {
        return status;
    }
    const uint8_t *name = r->stream + it->a;
    size_t len = (size_t)it->b;
    uint64_t hash = hash_of(name, len);
    size_t slot = (size_t)hash & (r->table.capacity - 1);
    for (unsigned probes = 0;; probes++, slot = (slot + 1) & (r->table.capacity - 1)) {
        uint32_t i = r->table.of[slot];
        if (i == 0) {
            status = add_key(r, name, len, hash, slot);
            break;
        }
        const key *k = &r->keys.of[i - 1];
        if (k->hash == hash && k->len == len && memcmp(k->name, name, len) == 0) {
            break;
        }
        if (probes == MAX_PROBES) {
            return UNKNOWN; /* keys made to collide must not cost more than Python does */
        }
    }
    if (status == TFW_OK) {
        *out_key = r->table.of[slot] - 1;
        if (it->memo != 0) {
            r->memos.of[it->memo - 1].key = *out_key + 1;
        }
    }
    return status;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* SETITEM, SETITEMS: pairs from first on become entries of the row. */
static int set_items(rows *r, size_t first) {
    size_t count = r->items.count - first;
    int status = count % 2 == 0 ? RESERVE(r->entries, count / 2) : UNKNOWN;
    for (size_t i = first; status == TFW_OK && i < first + count; i += 2) {
        const item *name = &r->items.of[i];
        const item *value = name + 1;
        uint32_t k = 0;
        if (name->type != ITEM_STRING || value->type > ITEM_RAW) {
            return UNKNOWN;
        }
        status = find_key(r, name, &k);
        if (status != TFW_OK) {
            return status;
        }
        if (r->keys.of[k].last_row == r->row + 1) {
            return UNKNOWN; /* the same key as str and as bytes */
        }
        r->keys.of[k].last_row = r->row + 1;
        r->entries.of[r->entries.count++] = (entry){k, *value};
    }
    r->items.count = first;
    return status;
}

/* Whether a row is complete: nothing is left on the stack, and what follows sets no more items. */
static bool row_ends(rows *r) {
    while (has(r, 9) && r->stream[r->at] == OP_FRAME) {
        r->at += 9;
    }
    if (!has(r, 1)) {
        return true;
    }
    switch (r->stream[r->at]) {
    case OP_EMPTY_DICT:
    case OP_APPEND:
    case OP_APPENDS:
    case OP_STOP: return true;
    case OP_BINGET:
    case OP_LONG_BINGET: {
        size_t size = r->stream[r->at] == OP_BINGET ? 1 : 4;
        if (!has(r, 1 + size)) {
            return true;
        }
        r->at++;
        uint64_t index = load(r, size, false);
        r->at--;
        return index < r->memos.count && r->memos.of[index].type == ITEM_ROW;
    }
    default: return false;
    }
}

/* Reads the row whose EMPTY_DICT stands at at. */
static int read_row(rows *r, size_t at) {
    r->items.count = 0;
    r->tape.count = 0;
    r->entries.count = 0;
    r->mark_count = 0;
    size_t index = r->memos.count;
    if (has(r, 1) && r->stream[r->at] == OP_MEMOIZE) {
        r->at++;
        if (r->replays == 0 && memoize(r, &(memo){.type = ITEM_ROW, .a = at}) != TFW_OK) {
            return TFW_E_MEMORY;
        }
    }
    bool is_new = r->memos.count != index;
    while (r->mark_count != 0 || r->items.count != 0 || !row_ends(r)) {
        if (!has(r, 1)) {
            return UNKNOWN;
        }
        size_t op_at = r->at++;
        uint8_t op = r->stream[op_at];
        int status;
        if (op == OP_SETITEM && r->mark_count == 0 && r->items.count == 2) {
            status = set_items(r, 0);
        } else if (op == OP_SETITEMS && r->mark_count == 1 && r->marks[0].items == 0) {
            r->mark_count = 0;
            status = set_items(r, 0);
        } else {
            status = run(r, op, op_at);
        }
        if (status != TFW_OK) {
            return status;
        }
    }
    if (is_new) {
        r->memos.of[index].b = r->at;
    }
    return TFW_OK;
}

/* A row that occurs again. */
static int reread_row(rows *r, size_t size) {
    if (!has(r, size)) {
        return UNKNOWN;
    }
    uint64_t index = load(r, size, false);
    r->at += size;
    if (index >= r->memos.count || r->memos.of[index].type != ITEM_ROW) {
        return UNKNOWN;
    }
    size_t back_at = r->at;
    size_t back_end = r->end;
    r->replays++;
    r->at = (size_t)r->memos.of[index].a + 1;
    r->end = (size_t)r->memos.of[index].b;
    int status = read_row(r, r->at - 1);
    r->replays--;
    r->at = back_at;
    r->end = back_end;
    return status;
}

/* Reads up to the next row. TFW_END: there are no more. */
static int next_row(rows *r) {
    while (has(r, 1)) {
        size_t at = r->at++;
        switch (r->stream[at]) {
        case OP_EMPTY_DICT: return read_row(r, at);
        case OP_BINGET: return reread_row(r, 1);
        case OP_LONG_BINGET: return reread_row(r, 4);
        case OP_STOP: return TFW_END;
        case OP_EMPTY_LIST:
        case OP_MARK:
        case OP_APPEND:
        case OP_APPENDS: break;
        case OP_MEMOIZE:
            if (memoize(r, &(memo){.type = 0}) != TFW_OK) {
                return TFW_E_MEMORY;
            }
            break;
        case OP_PROTO: r->at += 1; break;
        case OP_FRAME: r->at += 8; break;
        default: return UNKNOWN;
        }
        if (r->at > r->end) {
            break;
        }
    }
    return UNKNOWN;
}

/* ---- Order of the keys ---------------------------------------------------------------------- */

static bool comes_before(const rows *r, uint32_t i, uint32_t j) {
    const key *a = &r->keys.of[r->entries.of[i].key];
    const key *b = &r->keys.of[r->entries.of[j].key];
    int order = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);
    return order != 0 ? order < 0 : a->len < b->len;
}

/* Sorts order[begin, end) by merging halves; spare is as long. */
static void sort(const rows *r, uint32_t *order, uint32_t *spare, size_t count) {
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

/* Brings the order up to date; rows mostly have the keys of the row before. */
static int find_order(rows *r) {
    size_t count = r->entries.count;
    bool same = count == r->sequence.count;
    for (size_t i = 0; same && i < count; i++) {
        same = r->entries.of[i].key == r->sequence.of[i];
    }
    if (same) {
        return TFW_OK;
    }
    r->order.count = 0;
    r->sequence.count = 0;
    if (RESERVE(r->order, 2 * count) != TFW_OK || RESERVE(r->sequence, count) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        r->order.of[i] = (uint32_t)i;
        r->sequence.of[i] = r->entries.of[i].key;
    }
    r->sequence.count = count;
    if (r->sort_keys) {
        sort(r, r->order.of, r->order.of + count, count);
    }
    return TFW_OK;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static uint64_t *take_words(rows *r, size_t words) {
    if (RESERVE(r->blocks, 1) != TFW_OK) {
        return NULL;
    }
    void *block = tfwi_calloc(words, sizeof(uint64_t));
    if (block != NULL) {
        r->blocks.of[r->blocks.count++] = block;
    }
    return block;
}

/* The prefix for a key and a kind; NULL: no memory. */
static tfwi_prefix *prefix_of(rows *r, uint32_t index, int32_t kind) {
    key *k = &r->keys.of[index];
    tfwi_prefix *f = &k->prefixes[kind - 1];
    uint32_t use = k->uses[kind - 1]++;
    if (TFWI_LIKELY(use != 0 && use != TEMPLATE_USES)) {
        return f;
    }
    uint64_t *memory = take_words(r, use == 0 ? tfwi_prefix_text_words(k->len)
                                              : tfwi_prefix_template_words(k->len));
    if (memory == NULL) {
        return NULL;
    }
    if (use == 0) {
        tfwi_prefix_init(f, (const char *)k->name, k->len, kind, memory);
    } else {
        tfwi_prefix_prepare(f, memory);
    }
    return f;
}

static void put_float(tfwi_prefix *f, double value, tfwi_output *out) {
    float rounded = (float)value;
    tfwi_put_floats(f, &rounded, 1, out);
}

static double number_of(uint64_t bits, uint64_t kind) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return kind == TFW_INT64 ? (double)(int64_t)bits : value;
}

static void put_string(const rows *r, tfwi_prefix *f, uint64_t offset, uint64_t len,
                       tfwi_output *out) {
    uint8_t *p = tfwi_prefix_put_packed(f, (size_t)len, out->at);
    out->at = tfwi_put_text(r->stream + offset, (size_t)len, r->len - (size_t)offset, p);
}

static void put_elements(const rows *r, tfwi_prefix *f, int32_t kind, const element *e,
                         size_t count, tfwi_output *out) {
    if (kind == TFW_FLOAT) {
        uint8_t *p = tfwi_prefix_put_packed(f, 4 * count, out->at);
        for (size_t i = 0; i < count; i++, p += 4) {
            float value = (float)number_of(e[i].a, e[i].b);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            tfwi_store32(p, bits);
        }
        out->at = p;
        return;
    }
    uint8_t *p = out->at + f->guess;
    for (size_t i = 0; i < count; i++) {
        if (kind == TFW_INT64) {
            p = tfwi_put_varint(p, e[i].a, tfwi_varint_size(e[i].a));
        } else {
            *p++ = 0x0a;
            p = tfwi_put_length(p, e[i].b);
            p = tfwi_put_text(r->stream + e[i].a, (size_t)e[i].b, r->len - (size_t)e[i].a, p);
        }
    }
    out->at = tfwi_prefix_place(f, kind == TFW_INT64 ? TFWI_PACKED(f) : TFWI_LIST(f), out->at, p);
}

/* The kind of a value: of a list, the one its elements have in common; 0: they have none. */
static int32_t kind_of(const item *it) {
    if (it->type != ITEM_LIST) {
        return it->type == ITEM_RAW ? it->kind : it->type;
    }
    switch (it->kinds) {
    case 0:
    case 1u << ITEM_INT: return TFW_INT64;
    case 1u << ITEM_FLOAT:
    case 1u << ITEM_FLOAT | 1u << ITEM_INT: return TFW_FLOAT;
    case 1u << ITEM_STRING: return TFW_BYTES;
    default: return TFW_NONE;
    }
}

/* How many values there are; strings: their bytes in all. */
static size_t measure(const rows *r, const item *it, int32_t kind, size_t *out_text_len) {
    *out_text_len = it->type == ITEM_STRING ? (size_t)it->b : 0;
    if (it->type == ITEM_RAW) {
        return (size_t)(it->b / (kind == TFW_INT64 ? 8 : 4));
    }
    if (it->type != ITEM_LIST) {
        return 1;
    }
    for (uint64_t i = 0; kind == TFW_BYTES && i < it->b; i++) {
        *out_text_len += (size_t)r->tape.of[it->a + i].b;
    }
    return (size_t)it->b;
}

static int put_entry(rows *r, const entry *e, tfwi_output *out) {
    const item *it = &e->value;
    int32_t kind = kind_of(it);
    if (kind == TFW_NONE) {
        return UNKNOWN;
    }
    tfwi_prefix *f = prefix_of(r, e->key, kind);
    if (f == NULL) {
        return TFW_E_MEMORY;
    }
    size_t text_len;
    size_t count = measure(r, it, kind, &text_len);
    if (!tfwi_has_room(out, tfwi_feature_bound(f, kind, count, text_len))) {
        return TFW_NEED_SPACE;
    }
    const element *elements = it->type == ITEM_LIST && count != 0 ? &r->tape.of[it->a] : NULL;
    if (count == 0) {
        unsigned lengths = it->type == ITEM_RAW ? TFWI_LIST(f) : f->outer; /* [] has no kind */
        out->at = tfwi_prefix_put(f, lengths, 0, out->at);
    } else if (it->type == ITEM_INT) {
        tfwi_put_int64(f, (int64_t)it->a, out);
    } else if (it->type == ITEM_FLOAT) {
        put_float(f, number_of(it->a, TFW_FLOAT), out);
    } else if (it->type == ITEM_STRING) {
        put_string(r, f, it->a, it->b, out);
    } else if (it->type == ITEM_RAW && kind == TFW_INT64) {
        tfwi_put_int64s(f, r->stream + it->a, count, out);
    } else if (it->type == ITEM_RAW) {
        tfwi_put_floats(f, r->stream + it->a, count, out);
    } else if (kind == TFW_BYTES && count == 1) {
        put_string(r, f, elements[0].a, elements[0].b, out);
    } else {
        put_elements(r, f, kind, elements, count, out);
    }
    return TFW_OK;
}

static int put_row(rows *r, tfwi_output *out) {
    int status = find_order(r);
    if (status != TFW_OK) {
        return status;
    }
    if (!tfwi_has_room(out, TFWI_SECTION_BOUND)) {
        return TFW_NEED_SPACE;
    }
    uint8_t *start = out->at;
    tfwi_output inner = {start + 1 + r->guess, out->end - TFWI_MAX_VARINT};
    for (size_t i = 0; i < r->entries.count; i++) {
        status = put_entry(r, &r->entries.of[r->order.of[i]], &inner);
        if (status != TFW_OK) {
            return status;
        }
    }
    out->at = tfwi_close_section(start, 0x0a, &r->guess, inner.at);
    return out->at - start > INT32_MAX ? UNKNOWN : TFW_OK;
}

/* ---- The call ------------------------------------------------------------------------------- */

static void free_rows(rows *r) {
    for (size_t i = 0; i < r->blocks.count; i++) {
        tfw_free(r->blocks.of[i]);
    }
    tfw_free(r->blocks.of);
    tfw_free(r->items.of);
    tfw_free(r->tape.of);
    tfw_free(r->memos.of);
    tfw_free(r->keys.of);
    tfw_free(r->table.of);
    tfw_free(r->entries.of);
    tfw_free(r->order.of);
    tfw_free(r->sequence.of);
}

int tfw_encode_rows(const uint8_t *stream, size_t len, unsigned flags, size_t headroom,
                    size_t tailroom, uint8_t *out, size_t capacity, tfw_span *out_spans,
                    size_t span_capacity, size_t *out_done, size_t *out_len, tfw_error *error) {
    rows r = {.stream = stream, .len = len, .end = len, .guess = 1,
              .sort_keys = (flags & TFW_KEEP_ORDER) == 0};
    size_t frame;
    *out_done = 0;
    *out_len = 0;
    if (tfwi_add_overflows(headroom, tailroom, &frame)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "headroom and tailroom overflow");
    }
    int status = next_row(&r);
    for (; status == TFW_OK; status = next_row(&r)) {
        if (*out_done == span_capacity || capacity - *out_len < frame) {
            status = TFW_NEED_SPACE;
            break;
        }
        size_t begin = *out_len + headroom;
        tfwi_output output = {out + begin, out + capacity - tailroom};
        status = put_row(&r, &output);
        if (status != TFW_OK) {
            break;
        }
        size_t size = (size_t)(output.at - out) - begin;
        out_spans[(*out_done)++] = (tfw_span){begin, size};
        *out_len = begin + size + tailroom;
        r.row++;
    }
    free_rows(&r);
    if (status == TFW_E_MEMORY) {
        return tfwi_fail(error, status, "no memory for the values of a row");
    }
    if (status == UNKNOWN) {
        return tfwi_fail(error, status, "a row of other than plain values");
    }
    return status == TFW_END ? TFW_OK : status;
}
