/* SPDX-License-Identifier: Apache-2.0 */
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

/* Single numbers, by the length of a varint, and a float. */
static const struct {
    uint64_t sevens[TFWI_NUMBER_ROWS];   /* the bits of its first eight bytes to join */
    uint64_t asked[TFWI_NUMBER_ROWS];    /* and those that say whether another byte follows, */
    uint64_t followed[TFWI_NUMBER_ROWS]; /* which are as here */
    uint32_t asked_last[TFWI_NUMBER_ROWS]; /* the same of the two bytes after them */
    uint32_t followed_last[TFWI_NUMBER_ROWS];
    uint32_t last[TFWI_NUMBER_ROWS];
    uint32_t plain[TFWI_NUMBER_ROWS]; /* the bits that need no joining: those of a float */
} numbers = {
    .sevens = {0, SEVENS >> 56, SEVENS >> 48, SEVENS >> 40, SEVENS >> 32, SEVENS >> 24,
               SEVENS >> 16, SEVENS >> 8, SEVENS, SEVENS, SEVENS, 0},
    .asked = {0, EIGHTHS >> 56, EIGHTHS >> 48, EIGHTHS >> 40, EIGHTHS >> 32, EIGHTHS >> 24,
              EIGHTHS >> 16, EIGHTHS >> 8, EIGHTHS, EIGHTHS, EIGHTHS, 0},
    .followed = {0, 0, EIGHTHS >> 56, EIGHTHS >> 48, EIGHTHS >> 40, EIGHTHS >> 32, EIGHTHS >> 24,
                 EIGHTHS >> 16, EIGHTHS >> 8, EIGHTHS, EIGHTHS, 0},
    .asked_last = {1 << 16, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x8080, 0},
    .followed_last = {1 << 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0}, /* row 0: never so */
    .last = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0x17f, 0},
    .plain = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UINT32_MAX},
};

TARGET TFWI_INLINE bool read_number(const uint8_t *p, size_t row, uint64_t *out) {
    uint64_t word = tfwi_load64(p);
    uint32_t rest = (uint32_t)p[8] | (uint32_t)p[9] << 8, last = rest & numbers.last[row];
    *out = join_bits(word, numbers.sevens[row]) | (word & numbers.plain[row]) |
           (uint64_t)((last & 0x7f) | last >> 8 << 7) << 56;
    uint64_t differences = (word ^ numbers.followed[row]) & numbers.asked[row];
    return (differences | ((rest ^ numbers.followed_last[row]) & numbers.asked_last[row])) == 0;
}

#endif /* TFWIRE_MATCH_WORDS_H */
