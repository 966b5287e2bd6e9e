/* SPDX-License-Identifier: Apache-2.0 */
/* Serialized SequenceExamples to columns: a context like an Example's, and lists of steps. */
#include "parse/parse.h"
#include "wire/message.h"

/* ---- Feature lists -------------------------------------------------------------------------- */

/* Begins the list again: an earlier entry of its key is dropped, with its misfit. */
static void list_begin(tfwi_column *column, const tfw_columns *lists, uint64_t first_cell) {
    tfwi_int64s *kindless = &column->kindless;
    while (kindless->count != 0 && kindless->of[kindless->count - 1] >= (int64_t)first_cell) {
        kindless->count--;
    }
    tfwi_cell_mark_open(column, lists->serial);
    column->steps_found = 0;
    column->status = TFW_OK;
}

/* Keeps the first misfit of a list. It is an error only if no later entry has the same key. */
static void judge_step(tfwi_column *column) {
    if (column->status == TFW_OK) {
        column->status = tfwi_cell_check(column, &column->expected, &column->found_instead);
        column->row = (int64_t)column->steps_found;
    }
}

static bool parse_step(tfwi_parser *parser, uint64_t first_cell, const uint8_t *p,
                       const uint8_t *end) {
    tfwi_column *column = parser->column;
    uint64_t cell = first_cell + column->steps_found;
    int32_t kind = TFW_NONE;
    tfwi_cell_begin(column, cell);
    if (!tfwi_parse_feature(parser, p, end, &kind)) {
        return false;
    }
    judge_step(column);
    /* After a misfit there is no cell to begin at, and no need for one. */
    if (column->status != TFW_OK) {
        return true;
    }
    if (column->variable) {
        if (!TFWI_RESERVE(column->splits, cell + 2)) {
            return tfwi_out_of_memory(&parser->fault);
        }
        column->splits.of[cell + 1] = (int64_t)(column->first + column->found);
    }
    if (column->found_kind == TFW_NONE && parser->columns->note_absent) {
        if (!TFWI_RESERVE_MORE(column->kindless, 1)) {
            return tfwi_out_of_memory(&parser->fault);
        }
        column->kindless.of[column->kindless.count++] = (int64_t)cell;
    }
    column->steps_found++;
    return true;
}

/* Stores steps of a feature list while they match; returns where it stopped. */
static const uint8_t *match_some_steps(tfw_columns *lists, tfwi_column *column, uint64_t first_cell,
                                       const uint8_t *p, const uint8_t *end, const uint8_t *limit) {
    const tfwi_matcher *kernel = lists->kernel;
    p = kernel->steps(column, first_cell + column->steps_found, p, end, limit);
    if (p != end && limit - p < TFWI_MATCH_ROOM) {
        tfwi_tail tail = tfwi_tail_of(lists->tail, p, end);
        p += kernel->steps(column, first_cell + column->steps_found, tail.begin, tail.end,
                           tail.limit) - tail.begin;
    }
    return p;
}

/* A FeatureList or a piece of one. */
static bool parse_steps(tfwi_parser *parser, uint64_t first_cell, const uint8_t *p,
                        const uint8_t *end) {
    tfwi_column *column = parser->column;
    while (p != end) {
        if (parser->columns->kernel != NULL && column->status == TFW_OK) {
            p = match_some_steps(parser->columns, column, first_cell, p, end, parser->blocks.limit);
        }
        tfwi_field field;
        if (!tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &parser->fault)) {
            return p == end;
        }
        if (!parse_step(parser, first_cell, field.data, field.data + field.len)) {
            return false;
        }
    }
    return true;
}

static bool parse_list_entry(tfwi_parser *parser, const uint8_t *p, const uint8_t *end) {
    tfw_columns *lists = parser->columns;
    tfwi_entry entry;
    if (!tfwi_read_entry(p, end, &entry, &parser->fault)) {
        return false;
    }
    tfwi_column *column = tfwi_columns_find(lists, entry.key, entry.key_len);
    if (column == NULL) {
        tfwi_note_unknown(lists, entry.key, entry.key_len, true);
        return true;
    }
    parser->column = column;
    uint64_t first_cell = (uint64_t)column->steps.of[lists->records];
    list_begin(column, lists, first_cell);
    const uint8_t *begin, *stop;
    while (tfwi_next_piece(&entry, &begin, &stop)) {
        if (!parse_steps(parser, first_cell, begin, stop)) {
            return false;
        }
    }
    parser->column = NULL;
    return true;
}

static bool parse_feature_lists(tfwi_parser *parser, const uint8_t *p, const uint8_t *end) {
    tfwi_field field;
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &parser->fault)) {
        if (!parse_list_entry(parser, field.data, field.data + field.len)) {
            return false;
        }
    }
    return p == end;
}

static int finish_list(tfw_columns *lists, size_t i, tfw_error *error) {
    tfwi_column *column = &lists->columns[i];
    int64_t *steps = column->steps.of + lists->records;
    if (tfwi_cell_is_absent(column, lists->serial)) {
        if (!column->variable && !column->feature->has_default) {
            return tfwi_columns_fail(TFW_E_MISSING, i, (int64_t)column->count, -1, error);
        }
        steps[1] = steps[0];
        return tfwi_reserve_absent(lists, column)
                   ? TFW_OK
                   : tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    if (column->status != TFW_OK) {
        tfwi_columns_fail(column->status, i, column->expected, column->found_instead, error);
        TFWI_SET(error, row, column->row);
        return column->status;
    }
    steps[1] = steps[0] + (int64_t)column->steps_found;
    return TFW_OK;
}

static int finish_lists(tfw_columns *lists, tfw_error *error) {
    for (size_t i = 0; i < lists->schema->count; i++) {
        int status = finish_list(lists, i, error);
        if (status != TFW_OK) {
            return status;
        }
    }
    return TFW_OK;
}

/* ---- Records -------------------------------------------------------------------------------- */

/* The arguments of one call; context or lists may be NULL. */
typedef struct sequence {
    tfw_columns *context;
    tfw_columns *lists;
    unsigned flags;
} sequence;

/* Features are field 1 of the message and FeatureLists field 2; each may be in pieces. */
static int walk_record(const sequence *s, tfwi_message message, bool *out_list, tfw_error *error) {
    tfwi_parser context = tfwi_parser_of(s->context, s->flags | TFWI_CONTEXT, message.limit);
    tfwi_parser lists = tfwi_parser_of(s->lists, s->flags, message.limit);
    const uint8_t *p = message.begin, *end = p + message.len;
    while (p != end) {
        tfwi_field field;
        p = tfwi_read_field(p, end, &field, &context.fault);
        bool good = p != NULL;
        if (good && field.tag == TFWI_TAG(1, TFWI_WIRE_LEN) && s->context != NULL) {
            good = tfwi_parse_features(&context, field.data, field.data + field.len);
        } else if (good && field.tag == TFWI_TAG(2, TFWI_WIRE_LEN) && s->lists != NULL) {
            good = parse_feature_lists(&lists, field.data, field.data + field.len);
            *out_list = !good;
        }
        if (!good) {
            return tfwi_parser_fail(*out_list ? &lists : &context, message.begin, error);
        }
    }
    return TFW_OK;
}

static int parse_sequence_record(const sequence *s, tfwi_message message, tfw_error *error) {
    bool list = false; /* the failure is one of the feature lists */
    if (s->context != NULL) {
        tfwi_record_begin(s->context);
    }
    if (s->lists != NULL) {
        tfwi_record_begin(s->lists);
    }
    int status = walk_record(s, message, &list, error);
    if (status == TFW_OK && s->context != NULL) {
        status = tfwi_record_finish(s->context, s->flags | TFWI_CONTEXT, error);
    }
    if (status == TFW_OK && s->lists != NULL) {
        status = finish_lists(s->lists, error);
        list = true;
    }
    if (status != TFW_OK) {
        TFWI_SET(error, list, list);
        return status;
    }
    if (s->context != NULL) {
        tfwi_record_end(s->context);
    }
    if (s->lists != NULL) {
        tfwi_record_end(s->lists);
    }
    return TFW_OK;
}

int tfw_parse_sequence(tfw_columns *context, tfw_columns *lists, const uint8_t *data,
                       size_t data_len, const tfw_span *spans, size_t count, unsigned flags,
                       size_t *out_done, tfw_error *error) {
    tfwi_messages messages;
    const sequence s = {.context = context, .lists = lists, .flags = flags};
    size_t done = 0;
    if (out_done != NULL) {
        *out_done = 0;
    }
    if ((context != NULL && context->lists) || (lists != NULL && !lists->lists)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "context and feature lists exchanged");
    }
    int status = tfwi_check_flags(flags, TFWI_PARSE_FLAGS, error);
    if (status == TFW_OK) {
        status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    }
    if (status == TFW_OK && context != NULL) {
        status = tfwi_columns_prepare(context, count, error);
    }
    if (status == TFW_OK && lists != NULL) {
        status = tfwi_columns_prepare(lists, count, error);
    }
    for (; status == TFW_OK && done < count; done += status == TFW_OK) {
        status = parse_sequence_record(&s, tfwi_message_at(&messages, done), error);
        if (status != TFW_OK && error != NULL) {
            error->record = (int64_t)done;
        }
    }
    if (out_done != NULL) {
        *out_done = done;
    }
    return status;
}
