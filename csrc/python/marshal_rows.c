/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from marshal.dumps(list, 4): numbers, text, and lists of them.
 *
 * An object is a type code and its content. A code with the flag gives the object the next number,
 * by which a later 'r' refers to it. */
#include "python/unpickler.h"

enum {
    FLAG_REF = 0x80,
    TYPE_REF = 'r',
    TYPE_NULL = '0', /* ends a dict */
    TYPE_NONE = 'N',
    TYPE_DICT = '{',
    TYPE_LIST = '[',
    TYPE_TUPLE = '(',
    TYPE_SMALL_TUPLE = ')',
    TYPE_FALSE = 'F',
    TYPE_TRUE = 'T',
    TYPE_INT = 'i',
    TYPE_LONG = 'l', /* digits of 15 bits, each in two bytes; their number has the sign */
    TYPE_BINARY_FLOAT = 'g',
    TYPE_UNICODE = 'u',
    TYPE_INTERNED = 't',
    TYPE_ASCII = 'a',
    TYPE_ASCII_INTERNED = 'A',
    TYPE_SHORT_ASCII = 'z',
    TYPE_SHORT_ASCII_INTERNED = 'Z'
};

/* Takes the little-endian number of size bytes here. */
TFWI_INLINE bool take_number(tfwi_unpickler *u, size_t size, uint64_t *out) {
    if (TFWI_UNLIKELY(!tfwi_has(u, size))) {
        return false;
    }
    *out = tfwi_load_sized(u, size);
    u->at += size;
    return true;
}

/* Remembers an object whose code has the flag, unless it is being read again. */
TFWI_INLINE int remember(tfwi_unpickler *u, uint8_t code, tfwi_memo memo) {
    return (code & FLAG_REF) == 0 || u->replays != 0 ? TFW_OK : tfwi_memoize(u, memo);
}

/* ---- Scalars -------------------------------------------------------------------------------- */

/* The integer of a TYPE_LONG; false: it is beyond int64. */
TFWI_INLINE bool take_long(tfwi_unpickler *u, uint64_t *out) {
    uint64_t signed_count, low, high = 0;
    if (!take_number(u, 4, &signed_count)) {
        return false;
    }
    bool negative = (signed_count >> 31) != 0;
    size_t count = negative ? (uint32_t)(0 - signed_count) : (uint32_t)signed_count;
    if (count > 5 || !take_number(u, 2 * (count < 4 ? count : 4), &low) ||
        (count == 5 && !take_number(u, 2, &high)) || high > 0xf) {
        return false;
    }
    const uint64_t digit = 0x7fff;
    uint64_t v = (low & digit) | (low >> 1 & digit << 15) | (low >> 2 & digit << 30) |
                 (low >> 3 & digit << 45) | high << 60;
    *out = negative ? 0 - v : v;
    return v <= (uint64_t)INT64_MAX + negative;
}

/* Reads the number with this code; false: not a number, or beyond int64. */
TFWI_INLINE bool load_number(tfwi_unpickler *u, uint8_t code, tfwi_element *out) {
    switch (code & ~FLAG_REF) {
    case TYPE_BINARY_FLOAT: out->b = TFWI_ITEM_FLOAT; return take_number(u, 8, &out->a);
    case TYPE_LONG: out->b = TFWI_ITEM_INT; return take_long(u, &out->a);
    case TYPE_INT:
        out->b = TFWI_ITEM_INT;
        if (!take_number(u, 4, &out->a)) {
            return false;
        }
        out->a = tfwi_extend_sign(out->a, 4);
        return true;
    case TYPE_FALSE:
    case TYPE_TRUE:
        *out = (tfwi_element){(code & ~FLAG_REF) == TYPE_TRUE, TFWI_ITEM_INT};
        return true;
    default: return false;
    }
}

/* Reads the text with this code; *out_ascii: whether the code says that it is ASCII. */
static bool read_text(tfwi_unpickler *u, uint8_t code, tfwi_element *out, bool *out_ascii) {
    size_t size = 4;
    *out_ascii = true;
    switch (code & ~FLAG_REF) {
    case TYPE_SHORT_ASCII:
    case TYPE_SHORT_ASCII_INTERNED: size = 1; break;
    case TYPE_ASCII:
    case TYPE_ASCII_INTERNED: break;
    case TYPE_UNICODE:
    case TYPE_INTERNED: *out_ascii = false; break;
    default: return false;
    }
    if (!take_number(u, size, &out->b) || !tfwi_has(u, out->b)) {
        return false;
    }
    out->a = u->at;
    u->at += (size_t)out->b;
    return true;
}

/* What an 'r' refers to. */
TFWI_INLINE tfwi_memo *recall(tfwi_unpickler *u) {
    uint64_t index;
    return take_number(u, 4, &index) && index < u->memos.count ? &u->memos.of[index] : NULL;
}

/* Reads a number or text; TFWI_UNUSUAL, with *out_memo: it is a list that occurred before. */
TFWI_INLINE int read_scalar(tfwi_unpickler *u, uint8_t code, tfwi_element *out, uint8_t *out_type,
                            const tfwi_memo **out_memo) {
    bool ascii;
    if (TFWI_LIKELY(load_number(u, code, out))) {
        *out_type = (uint8_t)out->b;
    } else if (code == TYPE_REF) {
        const tfwi_memo *memo = recall(u);
        if (memo == NULL || memo->type == 0 || memo->type > TFWI_ITEM_LIST) {
            return TFWI_UNKNOWN;
        }
        *out_memo = memo;
        *out_type = memo->type;
        *out = (tfwi_element){memo->a, memo->type == TFWI_ITEM_STRING ? memo->b : memo->type};
        return memo->type == TFWI_ITEM_LIST ? TFWI_UNUSUAL : TFW_OK;
    } else if (read_text(u, code, out, &ascii)) {
        *out_type = TFWI_ITEM_STRING;
        if (!ascii && tfwi_has_surrogates(u->stream + out->a, (size_t)out->b)) {
            return TFWI_UNKNOWN;
        }
    } else {
        return TFWI_UNKNOWN;
    }
    return remember(u, code, (tfwi_memo){.type = *out_type, .a = out->a, .b = out->b});
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* Reads the list or tuple whose code was just read. */
static int read_list(tfwi_unpickler *u, uint8_t code, tfwi_item *out) {
    const uint8_t type = code & (uint8_t)~FLAG_REF;
    const tfwi_memo memo = {.type = TFWI_ITEM_LIST, .a = u->at - 1};
    uint64_t count;
    if (type != TYPE_LIST && type != TYPE_TUPLE && type != TYPE_SMALL_TUPLE) {
        return TFWI_UNKNOWN;
    }
    if (!take_number(u, type == TYPE_SMALL_TUPLE ? 1 : 4, &count) || !tfwi_has(u, count)) {
        return TFWI_UNKNOWN;
    }
    if (remember(u, code, memo) != TFW_OK || !TFWI_RESERVE_MORE(u->tape, (size_t)count)) {
        return TFW_E_MEMORY;
    }
    *out = (tfwi_item){.type = TFWI_ITEM_LIST, .rank = 1, .a = u->tape.count, .b = count};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t item;
        uint8_t item_type;
        const tfwi_memo *list = NULL;
        tfwi_element element;
        int status = take_number(u, 1, &item)
                         ? read_scalar(u, (uint8_t)item, &element, &item_type, &list)
                         : TFWI_UNKNOWN;
        if (status != TFW_OK) {
            return status == TFWI_UNUSUAL ? TFWI_UNKNOWN : status; /* a list of lists */
        }
        out->kinds |= TFWI_BIT(item_type);
        u->tape.of[u->tape.count++] = element;
    }
    return TFW_OK;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

TFWI_INLINE int read_key(tfwi_unpickler *u, uint8_t code, uint32_t guess, uint32_t *out_key) {
    if (TFWI_LIKELY(code == TYPE_REF)) {
        tfwi_memo *memo = recall(u);
        if (memo == NULL || memo->type != TFWI_ITEM_STRING) {
            return TFWI_UNKNOWN;
        }
        if (TFWI_LIKELY(memo->key != 0)) {
            *out_key = memo->key - 1;
            return TFW_OK;
        }
        uint32_t number = (uint32_t)(memo - u->memos.of) + 1;
        return tfwi_find_key(u, &(tfwi_item){.memo = number, .a = memo->a, .b = memo->b}, out_key);
    }
    tfwi_element text;
    bool ascii;
    if (!read_text(u, code, &text, &ascii)) {
        return TFWI_UNKNOWN;
    }
    tfwi_item name = {.type = TFWI_ITEM_STRING, .a = text.a, .b = text.b};
    int status = tfwi_guess_key(u, &name, !ascii, guess, out_key);
    return status != TFW_OK
               ? status
               : remember(u, code, (tfwi_memo){TFWI_ITEM_STRING, 0, *out_key + 1, text.a, text.b});
}

/* A list that occurred before is read again. */
static int reread_list(tfwi_unpickler *u, size_t at, tfwi_item *out) {
    size_t back = u->at;
    u->replays++;
    u->at = at + 1;
    int status = read_list(u, u->stream[at], out);
    u->replays--;
    u->at = back;
    return status;
}

TFWI_INLINE int read_value(tfwi_unpickler *u, uint8_t code, tfwi_item *out) {
    const size_t at = u->at;
    const tfwi_memo *list = NULL;
    tfwi_element scalar;
    int status = read_scalar(u, code, &scalar, &out->type, &list);
    if (TFWI_LIKELY(status == TFW_OK)) {
        out->a = scalar.a; /* numbers need no other field */
        out->b = scalar.b;
        return TFW_OK;
    }
    if (status == TFWI_UNUSUAL) {
        return reread_list(u, (size_t)list->a, out);
    }
    u->at = at;
    if (code == TYPE_NONE) {
        out->type = TFWI_ITEM_MISSING;
        return TFW_OK;
    }
    return status == TFWI_UNKNOWN ? read_list(u, code, out) : status;
}

/* Reads a row from after its code. */
static int read_row(tfwi_unpickler *u) {
    const size_t guesses = u->pairs.count;
    bool same = true;
    uint64_t code;
    u->tape.count = 0;
    u->pairs.count = 0;
    for (size_t count = 0; take_number(u, 1, &code); count++) {
        if (code == TYPE_NULL) {
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
        int status = read_key(u, (uint8_t)code, guess, &pair->key);
        same = same && pair->key == guess;
        if (status == TFW_OK) {
            status = take_number(u, 1, &code) ? read_value(u, (uint8_t)code, &pair->value)
                                              : TFWI_UNKNOWN;
        }
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFWI_UNKNOWN;
}

/* A row that occurred before. */
static int reread_row(tfwi_unpickler *u) {
    const tfwi_memo *row = recall(u);
    if (row == NULL || row->type != TFWI_ITEM_ROW) {
        return TFWI_UNKNOWN;
    }
    size_t back = u->at;
    u->replays++;
    u->at = (size_t)row->a;
    int status = read_row(u);
    u->replays--;
    u->at = back;
    return status;
}

/* Reads the head of the list of rows. */
static int begin_list(tfwi_unpickler *u) {
    uint64_t code;
    if (!take_number(u, 1, &code) || (code & ~(uint64_t)FLAG_REF) != TYPE_LIST ||
        !take_number(u, 4, &u->rows_left)) {
        return TFWI_UNKNOWN;
    }
    return remember(u, (uint8_t)code, (tfwi_memo){0});
}

int tfwi_unmarshal_row(tfwi_unpickler *u) {
    uint64_t code;
    int status = u->at == 0 ? begin_list(u) : TFW_OK;
    if (status != TFW_OK) {
        return status;
    }
    if (u->rows_left == 0) {
        return u->at == u->len ? TFW_END : TFWI_UNKNOWN;
    }
    u->rows_left--;
    if (!take_number(u, 1, &code)) {
        return TFWI_UNKNOWN;
    }
    if (code == TYPE_REF) {
        return reread_row(u);
    }
    if ((code & ~(uint64_t)FLAG_REF) != TYPE_DICT) {
        return TFWI_UNKNOWN;
    }
    status = remember(u, (uint8_t)code, (tfwi_memo){.type = TFWI_ITEM_ROW, .a = u->at});
    return status == TFW_OK ? read_row(u) : status;
}
