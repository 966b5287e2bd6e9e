/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from a pickle: the opcodes around them, keys and values, rows that occurred before. */
#include "python/unpickler.h"

/* SETITEM, SETITEMS: the items on the stack become pairs of the row. */
static int set_items(tfwi_unpickler *u) {
    size_t count = u->items.count;
    if (count % 2 != 0) {
        return TFWI_UNKNOWN;
    }
    if (!TFWI_RESERVE_MORE(u->pairs, count / 2)) {
        return TFW_E_MEMORY;
    }
    for (size_t i = 0; i < count; i += 2) {
        const tfwi_item *name = &u->items.of[i];
        uint32_t key;
        if (name[0].type != TFWI_ITEM_STRING || name[1].type > TFWI_ITEM_MISSING) {
            return TFWI_UNKNOWN;
        }
        int status = tfwi_find_key(u, name, &key);
        if (status != TFW_OK) {
            return status;
        }
        u->pairs.of[u->pairs.count++] = (tfwi_pair){key, name[1]};
    }
    u->items.count = 0;
    return TFW_OK;
}

/* Whether no more items of the row follow. */
static bool row_ends(tfwi_unpickler *u) {
    while (tfwi_has(u, TFWI_PICKLE_FRAME_SIZE) && u->stream[u->at] == OP_FRAME) {
        u->at += TFWI_PICKLE_FRAME_SIZE;
    }
    if (!tfwi_has(u, 1)) {
        return true;
    }
    uint8_t op = u->stream[u->at];
    if (op != OP_BINGET && op != OP_LONG_BINGET) {
        return op == OP_EMPTY_DICT || op == OP_APPEND || op == OP_APPENDS || op == OP_STOP;
    }
    size_t size = op == OP_BINGET ? 1 : 4;
    if (!tfwi_has(u, 1 + size)) {
        return true;
    }
    u->at++;
    uint64_t index = tfwi_load_sized(u, size);
    u->at--;
    return index < u->memos.count && u->memos.of[index].type == TFWI_ITEM_ROW;
}

/* Reads a row from after its EMPTY_DICT and MEMOIZE. */
static int run_row(tfwi_unpickler *u) {
    u->same_keys = false;
    u->pairs.count = 0;
    u->items.count = 0;
    u->tape.count = 0;
    u->mark_count = 0;
    while (u->mark_count != 0 || u->items.count != 0 || !row_ends(u)) {
        uint8_t op = tfwi_has(u, 1) ? u->stream[u->at] : OP_STOP;
        bool one = op == OP_SETITEM && u->mark_count == 0 && u->items.count == 2;
        bool many = op == OP_SETITEMS && u->mark_count == 1 && u->marks[0].items == 0;
        int status;
        if (one || many) {
            u->at++;
            u->mark_count = 0;
            status = set_items(u);
        } else {
            status = tfwi_run(u);
        }
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
}

#ifdef TFW_TEST_FAULTS
bool tfwi_test_no_usual_rows = false; /* test builds may force the machine */
#else
#define tfwi_test_no_usual_rows false
#endif

/* Reads the row whose EMPTY_DICT stands before u->at. */
static int read_row(tfwi_unpickler *u) {
    size_t index = u->memos.count;
    size_t begin = u->at - 1;
    if (tfwi_has(u, 1) && u->stream[u->at] == OP_MEMOIZE) {
        u->at++;
        tfwi_memo row = {.type = TFWI_ITEM_ROW, .a = begin};
        if (u->replays == 0 && tfwi_memoize(u, row) != TFW_OK) {
            return TFW_E_MEMORY;
        }
    }
    size_t memos = u->memos.count;
    size_t at = u->at;
    bool skip_usual = u->replays != 0 || tfwi_test_no_usual_rows;
    int status = skip_usual ? TFWI_UNUSUAL : tfwi_read_usual_row(u);
    if (status == TFWI_UNUSUAL || (status == TFW_OK && !row_ends(u))) {
        u->memos.count = memos;
        u->at = at;
        status = run_row(u);
    }
    if (memos != index) {
        u->memos.of[index].b = u->at;
    }
    return status;
}

/* A row that occurred before. */
static int reread_row(tfwi_unpickler *u, size_t size) {
    if (!tfwi_has(u, size)) {
        return TFWI_UNKNOWN;
    }
    uint64_t index = tfwi_load_sized(u, size);
    u->at += size;
    if (index >= u->memos.count || u->memos.of[index].type != TFWI_ITEM_ROW) {
        return TFWI_UNKNOWN;
    }
    size_t back_at = u->at;
    size_t back_end = u->end;
    u->replays++;
    u->at = (size_t)u->memos.of[index].a + 1;
    u->end = (size_t)u->memos.of[index].b;
    int status = read_row(u);
    u->replays--;
    u->at = back_at;
    u->end = back_end;
    return status;
}

int tfwi_unpickle_row(tfwi_unpickler *u) {
    if (u->is_marshal) {
        return tfwi_unmarshal_row(u);
    }
    while (tfwi_has(u, 1)) {
        switch (u->stream[u->at++]) {
        case OP_EMPTY_DICT: return read_row(u);
        case OP_BINGET: return reread_row(u, 1);
        case OP_LONG_BINGET: return reread_row(u, 4);
        case OP_STOP: return TFW_END;
        case OP_EMPTY_LIST:
        case OP_MARK:
        case OP_APPEND:
        case OP_APPENDS: break;
        case OP_MEMOIZE:
            if (tfwi_memoize(u, (tfwi_memo){.type = 0}) != TFW_OK) {
                return TFW_E_MEMORY;
            }
            break;
        case OP_PROTO: u->at += 1; break;
        case OP_FRAME: u->at += TFWI_PICKLE_FRAME_SIZE - 1; break;
        default: return TFWI_UNKNOWN;
        }
        if (u->at > u->end) {
            return TFWI_UNKNOWN;
        }
    }
    return TFWI_UNKNOWN;
}

void tfwi_unpickle_begin(tfwi_unpickler *u, const uint8_t *stream, size_t len) {
    u->stream = stream;
    u->len = len;
    u->at = 0;
    u->end = len;
    u->replays = 0;
    u->memos.count = 0;
    u->is_marshal = len != 0 && *stream != OP_PROTO;
}

void tfwi_unpickle_clear(tfwi_unpickler *u) {
    tfw_free(u->items.of);
    tfw_free(u->tape.of);
    tfw_free(u->memos.of);
    tfw_free(u->pairs.of);
    tfwi_keys_clear(&u->keys);
    *u = (tfwi_unpickler){.keys = u->keys};
}
