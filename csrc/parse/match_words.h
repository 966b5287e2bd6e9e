/* Template: single varints by words of eight bytes, where no instruction gathers bits. A kernel's
 * file includes it once, after it has defined
 *
 *     TARGET     the function attribute that allows its instructions
 */
#ifndef TFWIRE_MATCH_WORDS_H
#define TFWIRE_MATCH_WORDS_H

#include "parse/match.h"

/* Pairs of seven bits to fourteen, fourteen to twenty-eight, and those to fifty-six. */
TARGET TFWI_INLINE uint64_t join_bits(uint64_t word, uint64_t mask) {
    word &= mask;
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

#define SEVENS UINT64_C(0x7f7f7f7f7f7f7f7f)
#define EIGHTHS UINT64_C(0x8080808080808080)

TARGET static bool read_wide_varint(const uint8_t *p, size_t len, int64_t *out) {
    uint64_t word = tfwi_load64(p);
    bool nine = len == 9 && p[8] < 0x80, ten = len == 10 && p[8] >= 0x80 && p[9] < 0x80;
    uint64_t high = (p[8] & 0x7fu) | (uint64_t)(ten ? p[9] : 0) << 7;
    *out = (int64_t)(join_bits(word, SEVENS) | high << 56);
    return (word & EIGHTHS) == EIGHTHS && (nine || ten);
}

TARGET TFWI_INLINE bool read_varint(const uint8_t *p, size_t len, int64_t *out) {
    uint64_t word = tfwi_load64(p);
    unsigned unused = (unsigned)(64 - 8 * len) & 63;
    /* Of the block's bytes, only the last one ends a varint. */
    if (TFWI_UNLIKELY(len - 1 >= 8 || (~word & EIGHTHS) << unused != UINT64_C(1) << 63)) {
        return read_wide_varint(p, len, out);
    }
    *out = (int64_t)join_bits(word, SEVENS >> unused);
    return true;
}

#endif /* TFWIRE_MATCH_WORDS_H */
