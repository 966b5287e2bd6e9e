/* SPDX-License-Identifier: Apache-2.0 */
/* Serialized Examples to columns: the complete parser, by all rules of protobuf. */
#include "parse/parse.h"

#include "base/spans.h"
#include "wire/message.h"

/* ---- Values to cells ------------------------------------------------------------------------ */

static void cell_restart(void *self, int32_t kind) {
    const tfwi_parser *parser = self;
    tfwi_cell_restart(parser->column, kind);
}

static bool cell_bytes(void *self, const uint8_t *data, size_t len) {
    const tfwi_parser *parser = self;
    return tfwi_cell_append_bytes(parser->column, data, len);
}

/* Room for the cell's next values: as many as wanted, or as the cell still takes; NULL: out of
 * memory. REQUIRES: the cell has room. */
static void *cell_reserve(tfwi_column *column, size_t wanted, size_t *out_room) {
    uint64_t room = tfwi_cell_room(column);
    size_t count = room < wanted ? (size_t)room : wanted;
    size_t index = (size_t)(column->first + column->found), size;
    if (tfwi_mul_overflows(index + count, column->value_size, &size) ||
        !TFWI_RESERVE(column->values, size)) {
        return NULL;
    }
    *out_room = count;
    return column->values.of + index * column->value_size;
}

static bool cell_floats(void *self, const uint8_t *block, size_t count) {
    tfwi_column *column = ((const tfwi_parser *)self)->column;
    if (count != 0 && tfwi_cell_room(column) != 0) {
        size_t room;
        void *out = cell_reserve(column, count, &room);
        if (out == NULL) {
            return false;
        }
        tfwi_load_floats(out, block, room);
    }
    column->found += count;
    return true;
}

static bool cell_int64(void *self, int64_t value) {
    tfwi_column *column = ((const tfwi_parser *)self)->column;
    if (tfwi_cell_room(column) != 0) {
        size_t room;
        int64_t *out = cell_reserve(column, 1, &room);
        if (out == NULL) {
            return false;
        }
        *out = value;
    }
    column->found++;
    return true;
}

static bool cell_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    const tfwi_parser *parser = self;
    tfwi_column *column = parser->column;
    int64_t unwanted[64];
    while (p != end) {
        /* A block of n bytes holds at most n values. */
        size_t wanted = (size_t)(end - p), room = sizeof unwanted / sizeof unwanted[0], count;
        int64_t *out = unwanted;
        if (tfwi_cell_room(column) != 0) {
            wanted = wanted < TFWI_VARINTS_AT_ONCE ? wanted : TFWI_VARINTS_AT_ONCE;
            out = cell_reserve(column, wanted, &room);
            if (out == NULL) {
                return tfwi_out_of_memory(fault);
            }
        }
        p = tfwi_read_block(&parser->blocks, p, end, out, room, &count, fault);
        if (p == NULL) {
            return false;
        }
        column->found += count;
    }
    return true;
}

static const tfwi_sink cell_sink = {cell_restart, cell_bytes, cell_floats, cell_int64,
                                    cell_varints};

bool tfwi_parse_feature(tfwi_parser *parser, const uint8_t *p, const uint8_t *end, int32_t *kind) {
    return tfwi_walk_feature(&cell_sink, parser, p, end, kind, &parser->fault);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* Whether an entry without a kind voids an earlier entry of its key. TensorFlow has three parsers,
 * and each answers differently. */
static bool kindless_replaces(const tfwi_column *column, unsigned flags) {
    bool variable = column->feature->layout == TFW_VARIABLE;
    return (flags & TFWI_CONTEXT) != 0 || (variable && (flags & TFW_SINGLE) == 0);
}

static bool parse_entry(tfwi_parser *parser, const uint8_t *p, const uint8_t *end) {
    tfw_columns *columns = parser->columns;
    tfwi_entry entry;
    if (!tfwi_read_entry(p, end, &entry, &parser->fault)) {
        return false;
    }
    tfwi_column *column = tfwi_columns_find(columns, entry.key, entry.key_len);
    if (column == NULL) {
        tfwi_note_unknown(columns, entry.key, entry.key_len, false);
        return true;
    }
    parser->column = column;
    tfwi_cell_open(columns, column);
    int32_t kind = TFW_NONE;
    const uint8_t *begin, *stop;
    while (tfwi_next_piece(&entry, &begin, &stop)) {
        if (!tfwi_parse_feature(parser, begin, stop, &kind)) {
            return false;
        }
    }
    if (kind == TFW_NONE && kindless_replaces(column, parser->flags)) {
        tfwi_cell_restart(column, TFW_NONE);
    }
    parser->column = NULL;
    return true;
}

/* Stores entries of a Features message while they are of the usual shape; returns where it stopped.
 * REQUIRES: the columns have a kernel. */
static const uint8_t *match_some_entries(tfw_columns *columns, const uint8_t *p, const uint8_t *end,
                                         const uint8_t *limit) {
    const tfwi_matcher *kernel = columns->kernel;
    p = kernel->entries(columns, p, end, limit);
    if (p != end && limit - p < TFWI_MATCH_ROOM) {
        tfwi_tail tail = tfwi_tail_of(columns->tail, p, end);
        p += kernel->entries(columns, tail.begin, tail.end, tail.limit) - tail.begin;
    }
    return p;
}

bool tfwi_parse_features(tfwi_parser *parser, const uint8_t *p, const uint8_t *end) {
    while (p != end) {
        if (parser->columns->kernel != NULL) {
            p = match_some_entries(parser->columns, p, end, parser->blocks.limit);
        }
        tfwi_field field;
        if (!tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &parser->fault)) {
            return p == end;
        }
        if (!parse_entry(parser, field.data, field.data + field.len)) {
            return false;
        }
    }
    return true;
}

/* Notes the keys of feature lists, which an Example has not. Malformed ones are of no interest. */
static void note_lists(tfw_columns *columns, const uint8_t *p, const uint8_t *end) {
    tfwi_fault ignored;
    tfwi_field lists, field;
    while (tfwi_find_field(&p, end, TFWI_TAG(2, TFWI_WIRE_LEN), &lists, &ignored)) {
        const uint8_t *q = lists.data, *stop = lists.data + lists.len;
        tfwi_entry entry;
        while (tfwi_find_field(&q, stop, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &ignored) &&
               tfwi_read_entry(field.data, field.data + field.len, &entry, &ignored)) {
            tfwi_note_unknown(columns, entry.key, entry.key_len, true);
        }
    }
}

static bool parse_example(tfwi_parser *parser, const uint8_t *p, const uint8_t *end) {
    const uint8_t *begin = p;
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &parser->fault)) {
        if (!tfwi_parse_features(parser, field.data, field.data + field.len)) {
            return false;
        }
    }
    if (p == end && parser->columns->unknown != NULL) {
        note_lists(parser->columns, begin, end);
    }
    return p == end;
}

/* ---- Records -------------------------------------------------------------------------------- */

int tfwi_parser_fail(const tfwi_parser *parser, const uint8_t *message, tfw_error *error) {
    const tfwi_fault *fault = &parser->fault;
    tfwi_fail(error, fault->status, fault->text);
    if (fault->status == TFW_E_WIRE) {
        TFWI_SET(error, offset, fault->at - message);
    }
    if (parser->column != NULL) {
        TFWI_SET(error, feature, (int32_t)(parser->column - parser->columns->columns));
    }
    return fault->status;
}

static int check_spans(const tfw_span *spans, size_t count, size_t len, tfw_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (!tfwi_span_fits(&spans[i], len, 0, 0)) {
            return tfwi_fail_span(error, i, "a span leaves the data");
        }
    }
    return TFW_OK;
}

/* Messages are prefetched if the first is not longer than this. */
enum { SHORT = 512 };

int tfwi_messages_init(tfwi_messages *m, const uint8_t *data, size_t data_len,
                       const tfw_span *spans, size_t count, unsigned flags, tfw_error *error) {
    static const uint8_t nothing[1];
    if ((flags & TFW_ADDRESSES) != 0) {
        bool are_short = count != 0 && spans[0].length <= SHORT;
        *m = (tfwi_messages){.spans = spans, .prefetched = are_short ? count : 0};
        return TFW_OK;
    }
    if (data == NULL) { /* also compares pointers into empty data */
        data = nothing;
        data_len = 0;
    }
    *m = (tfwi_messages){.data = data, .len = data_len, .spans = spans};
    return check_spans(spans, count, data_len, error);
}

/* Whether a message is one Features message and nothing else; then *p becomes where that begins. */
static bool is_features_alone(const uint8_t **p, const uint8_t *end) {
    tfwi_field field;
    tfwi_fault fault;
    if (*p == end || tfwi_read_field(*p, end, &field, &fault) != end ||
        field.tag != TFWI_TAG(1, TFWI_WIRE_LEN)) {
        return false;
    }
    *p = field.data;
    return true;
}

static int parse_record(tfw_columns *columns, tfwi_message message, unsigned flags,
                        tfw_error *error) {
    tfwi_record_begin(columns);
    const uint8_t *p = message.begin, *end = p + message.len;
    bool alone = columns->kernel != NULL && is_features_alone(&p, end);
    if (alone) {
        p = match_some_entries(columns, p, end, message.limit);
        if (TFWI_LIKELY(p == end && tfwi_record_is_filled(columns))) {
            tfwi_record_end(columns);
            return TFW_OK;
        }
    }
    tfwi_parser parser = tfwi_parser_of(columns, flags, message.limit);
    if (!(alone ? tfwi_parse_features(&parser, p, end) : parse_example(&parser, p, end))) {
        return tfwi_parser_fail(&parser, message.begin, error);
    }
    int status = tfwi_record_finish(columns, flags, error);
    if (status == TFW_OK) {
        tfwi_record_end(columns);
    }
    return status;
}

int tfw_parse(tfw_columns *columns, const uint8_t *data, size_t data_len, const tfw_span *spans,
              size_t count, unsigned flags, size_t *out_done, tfw_error *error) {
    tfwi_messages messages;
    size_t done = 0;
    if (out_done != NULL) {
        *out_done = 0;
    }
    if (columns->lists) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "columns of feature lists");
    }
    int status = tfwi_check_flags(flags, TFWI_PARSE_FLAGS, error);
    if (status == TFW_OK) {
        status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    }
    if (status == TFW_OK) {
        status = tfwi_columns_prepare(columns, count, error);
    }
    for (; status == TFW_OK && done < count; done += status == TFW_OK) {
        status = parse_record(columns, tfwi_message_at(&messages, done), flags, error);
        if (status != TFW_OK && error != NULL) {
            error->record = (int64_t)done;
        }
    }
    if (out_done != NULL) {
        *out_done = done;
    }
    return status;
}
