/* SPDX-License-Identifier: Apache-2.0 */
/* The usual row, read straight through: MARK, key and value in turn, SETITEMS, where values are
 * scalars, arrays or lists of numbers. The machine of pickle_machine.c gives the same answer,
 * slower. */
#include "python/unpickler.h"

/* The size of a string's length, 1, 4 or 8 bytes; 0: not a string. */
TFWI_INLINE size_t length_size(uint8_t op) {
    switch (op) {
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINBYTES: return 1;
    case OP_BINUNICODE:
    case OP_BINBYTES: return 4;
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return 8;
    default: return 0;
    }
}

TFWI_INLINE bool is_text(uint8_t op) {
    return op == OP_SHORT_BINUNICODE || op == OP_BINUNICODE || op == OP_BINUNICODE8;
}

/* Reads the next opcode, skipping frames. */
TFWI_INLINE bool next_op(tfwi_unpickler *u, uint8_t *out_op) {
    while (tfwi_has(u, TFWI_PICKLE_FRAME_SIZE) && TFWI_UNLIKELY(u->stream[u->at] == OP_FRAME)) {
        u->at += TFWI_PICKLE_FRAME_SIZE;
    }
    if (TFWI_UNLIKELY(!tfwi_has(u, 1))) {
        return false;
    }
    *out_op = u->stream[u->at++];
    return true;
}

TFWI_INLINE bool accept(tfwi_unpickler *u, uint8_t op) {
    bool found = tfwi_has(u, 1) && u->stream[u->at] == op;
    u->at += found;
    return found;
}

/* ---- Scalars: false, with u->at anywhere, for anything else --------------------------------- */

/* The number whose opcode was op. */
TFWI_INLINE bool load_number(tfwi_unpickler *u, uint8_t op, tfwi_element *out) {
    size_t size;
    bool is_signed = false;
    *out = (tfwi_element){.b = TFWI_ITEM_INT};
    switch (op) {
    case OP_BINFLOAT:
        out->b = TFWI_ITEM_FLOAT;
        size = 8;
        break;
    case OP_BININT1: size = 1; break;
    case OP_BININT2: size = 2; break;
    case OP_BININT:
        size = 4;
        is_signed = true;
        break;
    case OP_LONG1:
        size = tfwi_has(u, 1) ? u->stream[u->at++] : 9;
        is_signed = true;
        break;
    case OP_NEWTRUE: out->a = 1; return true;
    case OP_NEWFALSE: return true;
    default: return false;
    }
    if (TFWI_UNLIKELY(size > 8 || !tfwi_has(u, size))) {
        return false;
    }
    uint64_t v = tfwi_load_sized(u, size);
    u->at += size;
    out->a = op == OP_BINFLOAT ? tfwi_swap64(v) : is_signed ? tfwi_extend_sign(v, size) : v;
    return true;
}

/* The string whose opcode was op, at its bytes. */
TFWI_INLINE bool read_string(tfwi_unpickler *u, uint8_t op, tfwi_item *out) {
    size_t size = length_size(op);
    if (size == 0 || !tfwi_has(u, size)) {
        return false;
    }
    uint64_t len = tfwi_load_sized(u, size);
    u->at += size;
    *out = (tfwi_item){.type = TFWI_ITEM_STRING, .a = u->at, .b = len};
    return tfwi_has(u, len);
}

TFWI_INLINE int skip_string(tfwi_unpickler *u, const tfwi_item *string, uint32_t key) {
    u->at += (size_t)string->b;
    if (!accept(u, OP_MEMOIZE)) {
        return TFW_OK;
    }
    return tfwi_memoize(u, (tfwi_memo){TFWI_ITEM_STRING, 0, key, string->a, string->b});
}

/* The memo's entry for the index of size bytes at this place; NULL: there is none. */
TFWI_INLINE const tfwi_memo *read_memo(tfwi_unpickler *u, size_t size, uint32_t *out_number) {
    if (!tfwi_has(u, size)) {
        return NULL;
    }
    uint64_t index = tfwi_load_sized(u, size);
    u->at += size;
    *out_number = (uint32_t)index + 1;
    return index < u->memos.count ? &u->memos.of[index] : NULL;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

/* A key that is written out. */
static int read_new_key(tfwi_unpickler *u, uint8_t op, uint32_t guess, uint32_t *out_key) {
    tfwi_item name;
    if (!read_string(u, op, &name)) {
        return TFWI_UNUSUAL;
    }
    int status = tfwi_guess_key(u, &name, is_text(op), guess, out_key);
    return status == TFW_OK ? skip_string(u, &name, *out_key + 1) : status;
}

TFWI_INLINE int read_key(tfwi_unpickler *u, uint8_t op, uint32_t guess, uint32_t *out_key) {
    if (op != OP_BINGET && op != OP_LONG_BINGET) {
        return read_new_key(u, op, guess, out_key);
    }
    uint32_t number;
    const tfwi_memo *memo = read_memo(u, op == OP_BINGET ? 1 : 4, &number);
    if (memo == NULL || memo->type != TFWI_ITEM_STRING) {
        return TFWI_UNUSUAL;
    }
    if (TFWI_LIKELY(memo->key != 0)) {
        *out_key = memo->key - 1;
        return TFW_OK;
    }
    return tfwi_find_key(u, &(tfwi_item){.memo = number, .a = memo->a, .b = memo->b}, out_key);
}

/* ---- Values --------------------------------------------------------------------------------- */

/* The numbers of a list up to APPENDS. */
static int read_numbers(tfwi_unpickler *u, tfwi_item *list) {
    uint8_t op;
    while (next_op(u, &op)) {
        if (op == OP_APPENDS) {
            list->b = u->tape.count - list->a;
            return TFW_OK;
        }
        tfwi_element number;
        if (!load_number(u, op, &number)) {
            return TFWI_UNUSUAL;
        }
        if (!TFWI_RESERVE_MORE(u->tape, 1)) {
            return TFW_E_MEMORY;
        }
        list->kinds |= TFWI_BIT(number.b);
        u->tape.of[u->tape.count++] = number;
    }
    return TFWI_UNUSUAL;
}

/* A list of two numbers or more; others are rare enough for the machine. */
static int read_list(tfwi_unpickler *u, tfwi_item *list) {
    size_t begin = u->at - 1;
    size_t index = u->memos.count;
    if (accept(u, OP_MEMOIZE) && tfwi_memoize(u, (tfwi_memo){.type = 0}) != TFW_OK) {
        return TFW_E_MEMORY;
    }
    *list = (tfwi_item){.type = TFWI_ITEM_LIST, .rank = 1, .a = u->tape.count};
    if (!accept(u, OP_MARK)) {
        return TFWI_UNUSUAL;
    }
    do { /* a thousand at a time */
        int status = read_numbers(u, list);
        if (status != TFW_OK) {
            return status;
        }
    } while (accept(u, OP_MARK));
    if (u->memos.count != index) {
        u->memos.of[index] = (tfwi_memo){.type = TFWI_ITEM_LIST, .a = begin, .b = u->at};
    }
    return TFW_OK;
}

/* What the machine makes of native(...), whose marker stands at begin and was read. */
static int read_native(tfwi_unpickler *u, size_t begin, tfwi_item *out) {
    u->mark_count = 0;
    u->items.count = 0;
    if (!TFWI_RESERVE_MORE(u->items, 1)) {
        return TFW_E_MEMORY;
    }
    u->items.of[u->items.count++] = (tfwi_item){.type = TFWI_ITEM_NATIVE, .at = begin};
    int status = TFW_OK;
    while (status == TFW_OK && (u->items.count != 1 || u->items.of[0].type == TFWI_ITEM_NATIVE)) {
        status = tfwi_run(u);
    }
    if (status == TFW_OK && tfwi_has(u, 1) && u->stream[u->at] == OP_MEMOIZE) {
        status = tfwi_run(u);
    }
    if (status == TFW_OK) {
        *out = u->items.of[0];
    }
    return status;
}

/* A value that occurred before, or native(...). */
static int read_known_value(tfwi_unpickler *u, size_t size, tfwi_item *out) {
    size_t begin = u->at - 1;
    uint32_t number;
    const tfwi_memo *memo = read_memo(u, size, &number);
    if (memo == NULL || memo->type == 0 || memo->type == TFWI_ITEM_LIST ||
        memo->type == TFWI_ITEM_ROW) {
        return TFWI_UNUSUAL;
    }
    if (memo->type == TFWI_ITEM_NATIVE) {
        return read_native(u, begin, out);
    }
    *out = (tfwi_item){.type = memo->type, .kind = memo->kind, .a = memo->a, .b = memo->b};
    return TFW_OK;
}

TFWI_INLINE int read_value(tfwi_unpickler *u, uint8_t op, tfwi_item *out) {
    tfwi_element number;
    if (load_number(u, op, &number)) {
        out->type = (uint8_t)number.b; /* it needs no other field */
        out->a = number.a;
        return TFW_OK;
    }
    switch (op) {
    case OP_BINGET: return read_known_value(u, 1, out);
    case OP_LONG_BINGET: return read_known_value(u, 4, out);
    case OP_EMPTY_LIST: return read_list(u, out);
    case OP_NONE: *out = (tfwi_item){.type = TFWI_ITEM_MISSING}; return TFW_OK;
    default:
        if (!read_string(u, op, out) ||
            (is_text(op) && tfwi_has_surrogates(u->stream + out->a, (size_t)out->b))) {
            return TFWI_UNUSUAL;
        }
        return skip_string(u, out, 0);
    }
}

int tfwi_read_usual_row(tfwi_unpickler *u) {
    size_t guesses = u->pairs.count;
    size_t count = 0;
    bool same = true;
    u->tape.count = 0;
    u->pairs.count = 0;
    uint8_t op;
    if (!accept(u, OP_MARK)) {
        return TFWI_UNUSUAL;
    }
    while (next_op(u, &op)) {
        if (op == OP_SETITEMS) {
            u->same_keys = same && count == guesses;
            u->pairs.count = count;
            return TFW_OK;
        }
        if (u->pairs.capacity == count) {
            u->pairs.count = count;
            if (!TFWI_RESERVE_MORE(u->pairs, 1)) {
                return TFW_E_MEMORY;
            }
        }
        tfwi_pair *pair = &u->pairs.of[count];
        uint32_t guess = count < guesses ? pair->key : UINT32_MAX;
        int status = read_key(u, op, guess, &pair->key);
        same = same && pair->key == guess;
        if (status == TFW_OK) {
            status = next_op(u, &op) ? read_value(u, op, &pair->value) : TFWI_UNUSUAL;
        }
        if (status != TFW_OK) {
            return status;
        }
        count++;
    }
    return TFWI_UNUSUAL;
}
