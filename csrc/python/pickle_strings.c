/* SPDX-License-Identifier: Apache-2.0 */
/* Opcodes of strings, and the memo by which a key is written only once. */
#include "python/pickle_strings.h"
#include "base/hash.h"
#include "base/utf8.h"

#define MAX_OPCODE 9 /* bytes of an opcode with its argument, without the payload */

/* The most probes for the slot of a key. A key that finds no slot is written out each time, so no
 * choice of keys makes the search long. */
#define MEMO_PROBES 8
static const tfwi_seed unseeded = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9)};
#define MEMO_SLOTS 64 /* at first */

/* ---- Strings -------------------------------------------------------------------------------- */

/* Bytes of an opcode with its argument, a length. */
static size_t opcode_size(uint64_t len) {
    return len <= UINT8_MAX ? 2 : len <= UINT32_MAX ? 5 : MAX_OPCODE;
}

/* Writes an opcode with a length of one, four or eight bytes; returns how many bytes it takes. */
static size_t write_opcode(uint8_t *out, const uint8_t opcodes[3], uint64_t len) {
    if (len <= UINT8_MAX) {
        out[0] = opcodes[0];
        out[1] = (uint8_t)len;
        return 2;
    }
    if (len <= UINT32_MAX) {
        out[0] = opcodes[1];
        tfwi_store32(out + 1, (uint32_t)len);
        return 5;
    }
    out[0] = opcodes[2];
    tfwi_store64(out + 1, len);
    return 9;
}

bool tfwi_pickle_bytes(tfwi_pickle *pickle, const uint8_t *data, size_t len) {
    static const uint8_t opcodes[3] = {OP_SHORT_BINBYTES, OP_BINBYTES, OP_BINBYTES8};
    size_t size;
    uint8_t *out = tfwi_add_overflows(len, MAX_OPCODE, &size)
                       ? NULL
                       : tfwi_bytes_room(&pickle->stream, size);
    if (out == NULL) {
        return false;
    }
    size_t opcode = write_opcode(out, opcodes, len);
    if (len != 0) {
        memcpy(out + opcode, data, len);
    }
    pickle->stream.count += opcode + len;
    return true;
}

/* How many bytes of a key are not part of a character. */
static size_t count_stray_bytes(const uint8_t *p, const uint8_t *end) {
    size_t stray = 0;
    while (p != end) {
        size_t len = tfwi_utf8_check(p, (size_t)(end - p));
        stray += len == 0;
        p += len != 0 ? len : 1;
    }
    return stray;
}

/* Makes each stray byte b of a key the surrogate U+DC00 + b, as surrogateescape does. The key lies
 * at the end of the room for the result: nothing is overwritten before it is read. */
static void escape(uint8_t *out, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        size_t len = tfwi_utf8_check(p, (size_t)(end - p));
        if (len == 0) {
            const uint8_t stray = *p++;
            *out++ = 0xed;
            *out++ = (uint8_t)(0xb0 | stray >> 6);
            *out++ = (uint8_t)(0x80 | (stray & 0x3f));
        }
        for (; len > 0; len--) {
            *out++ = *p++;
        }
    }
}

/* Room for a str of len bytes with its opcode, or NULL. */
static uint8_t *str_room(tfwi_pickle *pickle, size_t len) {
    size_t size;
    return tfwi_add_overflows(len, MAX_OPCODE, &size) ? NULL
                                                      : tfwi_bytes_room(&pickle->stream, size);
}

/* Escapes a key of len bytes that was copied after the opcode it would have without stray bytes;
 * returns where its opcode goes now, or NULL: out of memory. */
static TFWI_NOINLINE uint8_t *escape_copied(tfwi_pickle *pickle, size_t len, size_t stray) {
    size_t more, size;
    if (tfwi_mul_overflows(2, stray, &more) || tfwi_add_overflows(len, more, &size)) {
        return NULL;
    }
    uint8_t *out = str_room(pickle, size);
    if (out != NULL) {
        uint8_t *escaped = out + opcode_size(size), *copy = escaped + more;
        memmove(copy, out + opcode_size(len), len);
        escape(escaped, copy, copy + len);
    }
    return out;
}

/* Writes a key as str; *out_offset is where its bytes lie in the pickle. The key is read once, by
 * copying it. */
static bool put_str(tfwi_pickle *pickle, const uint8_t *key, size_t len, size_t *out_stray,
                    size_t *out_offset) {
    static const uint8_t opcodes[3] = {OP_SHORT_BINUNICODE, OP_BINUNICODE, OP_BINUNICODE8};
    uint8_t *out = str_room(pickle, len);
    if (out == NULL) {
        return false;
    }
    uint8_t *copy = out + opcode_size(len);
    if (len != 0) {
        memcpy(copy, key, len);
    }
    size_t stray = count_stray_bytes(copy, copy + len);
    if (stray != 0 && (out = escape_copied(pickle, len, stray)) == NULL) {
        return false;
    }
    size_t opcode = write_opcode(out, opcodes, len + 2 * stray);
    *out_stray = stray;
    *out_offset = pickle->stream.count + opcode;
    pickle->stream.count += opcode + len + 2 * stray;
    return true;
}

/* ---- Memo ----------------------------------------------------------------------------------- */

static bool is_key(const tfwi_pickle *pickle, const tfwi_memo_key *slot, const uint8_t *key,
                   size_t len) {
    return slot->number != 0 && slot->len == len &&
           memcmp(pickle->stream.of + slot->offset, key, len) == 0;
}

/* The slot of a key, or the free slot for it; NULL: neither is near. */
static tfwi_memo_key *memo_find(const tfwi_pickle *pickle, const uint8_t *key, size_t len,
                                uint64_t hash) {
    for (size_t i = 0; i < MEMO_PROBES; i++) {
        tfwi_memo_key *slot = &pickle->memo[(hash + i) & pickle->memo_mask];
        if (slot->number == 0 || (slot->hash == hash && is_key(pickle, slot, key, len))) {
            return slot;
        }
    }
    return NULL;
}

/* Doubles the memo; keys that find no slot are forgotten, and would be written again. */
static bool memo_grow(tfwi_pickle *pickle) {
    tfwi_memo_key *old = pickle->memo;
    size_t old_slots = old == NULL ? 0 : pickle->memo_mask + 1;
    size_t slots = old == NULL ? MEMO_SLOTS : 2 * old_slots;
    tfwi_memo_key *memo = tfwi_calloc(slots, sizeof *memo);
    if (memo == NULL) {
        return false;
    }
    pickle->memo = memo;
    pickle->memo_mask = slots - 1;
    for (size_t i = 0; i < old_slots; i++) {
        const uint8_t *key = pickle->stream.of + old[i].offset;
        tfwi_memo_key *slot =
            old[i].number == 0 ? NULL : memo_find(pickle, key, old[i].len, old[i].hash);
        if (slot != NULL) {
            *slot = old[i];
        }
    }
    tfw_free(old);
    return true;
}

static bool put_reference(tfwi_pickle *pickle, size_t number) {
    if (number <= UINT8_MAX) {
        return TFWI_PICKLE(pickle, OP_BINGET, (uint8_t)number);
    }
    uint8_t opcode[5] = {OP_LONG_BINGET};
    tfwi_store32(opcode + 1, (uint32_t)number);
    return tfwi_pickle_opcodes(pickle, opcode, sizeof opcode);
}

/* A key that was not the expected one. */
static TFWI_NOINLINE bool put_other_key(tfwi_pickle *pickle, const uint8_t *key, size_t len) {
    uint64_t hash = tfwi_hash(&unseeded, key, len);
    tfwi_memo_key *slot = memo_find(pickle, key, len, hash);
    size_t stray = 0, offset = 0;
    bool found = slot != NULL && slot->number != 0;
    if (found ? !put_reference(pickle, slot->number - 1)
              : !put_str(pickle, key, len, &stray, &offset)) {
        return false;
    }
    if (slot == NULL || stray != 0 || pickle->memo_count == UINT32_MAX) {
        return true;
    }
    if (!found) {
        *slot = (tfwi_memo_key){hash, offset, len, ++pickle->memo_count, 0};
    }
    size_t this = (size_t)(slot - pickle->memo);
    pickle->memo[pickle->last].next = this;
    pickle->last = this;
    return found || TFWI_PICKLE(pickle, OP_MEMOIZE);
}

bool tfwi_pickle_key(tfwi_pickle *pickle, const uint8_t *key, size_t len) {
    if (TFWI_UNLIKELY(pickle->memo == NULL || pickle->memo_count > pickle->memo_mask / 2) &&
        !memo_grow(pickle)) {
        return false;
    }
    size_t next = pickle->memo[pickle->last].next;
    if (!is_key(pickle, &pickle->memo[next], key, len)) {
        return put_other_key(pickle, key, len);
    }
    pickle->last = next;
    return put_reference(pickle, pickle->memo[next].number - 1);
}
