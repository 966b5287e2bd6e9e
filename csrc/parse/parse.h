/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of Examples and of SequenceExamples share. */
#ifndef TFWIRE_PARSE_H
#define TFWIRE_PARSE_H

#include "parse/cells.h"

/* A walk over one message. */
typedef struct tfwi_parser {
    tfw_columns *columns;
    unsigned flags;
    tfwi_column *column; /* of the feature being parsed, or NULL */
    tfwi_blocks blocks;
    tfwi_fault fault;
} tfwi_parser;

/* A parser of a message in memory that ends at limit. */
TFWI_INLINE tfwi_parser tfwi_parser_of(tfw_columns *columns, unsigned flags,
                                       const uint8_t *limit) {
    const tfwi_matcher *kernel = columns != NULL ? columns->kernel : NULL;
    return (tfwi_parser){
        .columns = columns,
        .flags = flags,
        .blocks = {.varints = kernel != NULL ? kernel->varints : NULL, .limit = limit},
    };
}

/* Adds a Feature, or a piece of one, to the column's cell. *kind is what earlier pieces set. */
bool tfwi_parse_feature(tfwi_parser *parser, const uint8_t *p, const uint8_t *end, int32_t *kind);

/* Adds the entries of a Features message, or a piece of one, to the record begun. */
bool tfwi_parse_features(tfwi_parser *parser, const uint8_t *p, const uint8_t *end);

/* Reports why a walk was given up; message is where it began. */
int tfwi_parser_fail(const tfwi_parser *parser, const uint8_t *message, tfw_error *error);

/* Messages as a caller gives them. */
typedef struct tfwi_messages {
    const uint8_t *data; /* NULL: spans hold addresses */
    size_t len;
    const tfw_span *spans;
    size_t prefetched; /* how many are prefetched: all or none */
} tfwi_messages;

/* A message in memory that may be read up to limit. */
typedef struct tfwi_message {
    const uint8_t *begin;
    size_t len;
    const uint8_t *limit;
} tfwi_message;

/* Checks that count spans lie within the data. */
int tfwi_messages_init(tfwi_messages *m, const uint8_t *data, size_t data_len,
                       const tfw_span *spans, size_t count, unsigned flags, tfw_error *error);

/* Short messages that lie anywhere are prefetched this many records ahead: only within longer ones
 * does the CPU prefetch the next cache lines itself. */
enum { TFWI_PREFETCH_AHEAD = 8, TFWI_PREFETCH_BYTES = 192 };

TFWI_INLINE void tfwi_prefetch_message(const tfwi_messages *m, size_t i) {
    if (i < m->prefetched) {
        uintptr_t begin = (uintptr_t)m->spans[i].offset;
        for (uintptr_t at = 0; at < TFWI_PREFETCH_BYTES; at += 64) {
            TFWI_PREFETCH(begin + at);
        }
    }
}

TFWI_INLINE tfwi_message tfwi_message_at(const tfwi_messages *m, size_t i) {
    size_t len = (size_t)m->spans[i].length;
    if (m->data == NULL) {
        tfwi_prefetch_message(m, i + TFWI_PREFETCH_AHEAD);
        const uint8_t *begin = (const uint8_t *)(uintptr_t)m->spans[i].offset;
        return (tfwi_message){begin, len, begin + len};
    }
    return (tfwi_message){m->data + m->spans[i].offset, len, m->data + m->len};
}

#endif /* TFWIRE_PARSE_H */
