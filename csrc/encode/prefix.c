/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes of features: their text, their templates, and the general way to write them. */
#include "encode/prefix.h"

#define TEXT_SIZE(name_len) ((name_len) + TFWI_MAX_VARINT + 8)

static size_t words_of(size_t bytes) { return (bytes + 7) / 8; }

size_t tfwi_prefix_text_words(size_t name_len) { return words_of(TEXT_SIZE(name_len)); }

static size_t template_words(size_t size) {
    return (words_of(size) + TFWI_TEMPLATE_BLOCK - 1) / TFWI_TEMPLATE_BLOCK * TFWI_TEMPLATE_BLOCK;
}

size_t tfwi_prefix_template_words(size_t name_len) {
    return 2 * template_words(TEXT_SIZE(name_len) + TFWI_MAX_LENGTHS);
}

/* The lengths in front of values of len bytes; returns the size of the prefix. */
static size_t find_lengths(const tfwi_prefix *f, unsigned lengths, size_t len, size_t *out) {
    size_t total = len;
    for (unsigned i = lengths; i-- > 0;) {
        out[i] = total;
        total += tfwi_varint_size(total) + f->texts[i];
    }
    return total - len;
}

static uint8_t *put_with_lengths(const tfwi_prefix *f, unsigned lengths, const size_t *values,
                                 uint8_t *p) {
    const uint8_t *text = f->text;
    for (unsigned i = 0; i < lengths; i++) {
        memcpy(p, text, f->texts[i]);
        p = tfwi_put_length(p + f->texts[i], values[i]);
        text += f->texts[i];
    }
    return p;
}

uint8_t *tfwi_prefix_put(const tfwi_prefix *f, unsigned lengths, size_t len, uint8_t *p) {
    size_t values[TFWI_MAX_LENGTHS];
    find_lengths(f, lengths, len, values);
    return put_with_lengths(f, lengths, values, p);
}

uint8_t *tfwi_prefix_place(tfwi_prefix *f, unsigned lengths, uint8_t *start, const uint8_t *end) {
    const uint8_t *values = start + f->guess;
    size_t len = (size_t)(end - values);
    size_t in_front[TFWI_MAX_LENGTHS];
    size_t size = find_lengths(f, lengths, len, in_front);
    if (TFWI_UNLIKELY(size != f->guess)) {
        memmove(start + size, values, len);
        f->guess = size;
    }
    put_with_lengths(f, lengths, in_front, start);
    return start + size + len;
}

/* Completes a prefix whose outer part is text[0, len), without lengths. */
static void complete(tfwi_prefix *f, uint8_t *text, size_t len, int32_t kind) {
    text[len] = (uint8_t)TFWI_TAG(kind, TFWI_WIRE_LEN);
    text[len + 1] = TFWI_TAG(1, TFWI_WIRE_LEN);
    f->text = text;
    f->texts[f->outer] = 1;
    f->texts[f->outer + 1] = 1;
    f->max_size = len + 2 + TFWI_MAX_LENGTHS * TFWI_MAX_VARINT;
    f->guess = len + 2 + TFWI_PACKED_LENGTHS(f);
}

void tfwi_prefix_init(tfwi_prefix *f, const char *name, size_t name_len, int32_t kind,
                      uint64_t *memory) {
    uint8_t *text = (uint8_t *)memory;
    text[0] = TFWI_TAG(1, TFWI_WIRE_LEN);
    text[1] = TFWI_TAG(1, TFWI_WIRE_LEN);
    uint8_t *end = tfwi_put_length(text + 2, name_len);
    if (name_len != 0) {
        memcpy(end, name, name_len);
    }
    end += name_len;
    *end++ = TFWI_TAG(2, TFWI_WIRE_LEN);
    *f = (tfwi_prefix){.outer = 2, .texts = {1, (size_t)(end - text) - 1}};
    complete(f, text, (size_t)(end - text), kind);
}

void tfwi_prefix_init_step(tfwi_prefix *f, int32_t kind, uint64_t *memory) {
    uint8_t *text = (uint8_t *)memory;
    text[0] = TFWI_TAG(1, TFWI_WIRE_LEN);
    *f = (tfwi_prefix){.outer = 1, .texts = {1}};
    complete(f, text, 1, kind);
}

void tfwi_prefix_prepare(tfwi_prefix *f, uint64_t *memory) {
    size_t in_front[TFWI_MAX_LENGTHS] = {0};
    size_t size = find_lengths(f, TFWI_PACKED_LENGTHS(f), 0, in_front);
    if (in_front[0] >= 0x80) {
        return;
    }
    f->template = memory;
    f->to_add = memory + template_words(size);
    f->template_size = size;
    f->template_limit = 0x80 - in_front[0];
    memset(memory, 0, 2 * template_words(size) * sizeof *memory);
    put_with_lengths(f, TFWI_PACKED_LENGTHS(f), in_front, (uint8_t *)f->template);
    uint8_t *mark = (uint8_t *)f->to_add;
    for (unsigned i = 0; i < TFWI_PACKED_LENGTHS(f); i++) {
        mark += f->texts[i];
        *mark++ = 0xff;
    }
}
