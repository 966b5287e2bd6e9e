/* SPDX-License-Identifier: Apache-2.0 */
/* The life of columns: messages parsed, columns cleared, lent, taken and given their memory back,
 * bound anew, in any order and with allocations that fail. What they hold is always what new
 * columns hold that have parsed the messages still in them. */
#include "common/messages.h"
#include "common/table.h"

enum { MAX_RECORDS = 24 };

/* What the columns should hold: the messages, by number. */
typedef struct life {
    table table;
    const messages *messages;
    uint8_t held[MAX_RECORDS];
    size_t count;
    bool taken; /* columns were handed over: cleared before anything else */
} life;

static int parse(tfw_columns *columns, bool lists, const messages *m, size_t i, size_t *out_done,
                 tfw_error *error) {
    if (lists) {
        return tfw_parse_sequence(NULL, columns, m->data, m->len, &m->spans[i], 1, 0, out_done,
                                  error);
    }
    return tfw_parse(columns, m->data, m->len, &m->spans[i], 1, 0, out_done, error);
}

static void append(life *l, size_t i) {
    size_t done = 0;
    tfw_error error = {.status = TFW_OK};
    if (l->count == MAX_RECORDS) {
        return;
    }
    int status = parse(l->table.columns, l->table.lists, l->messages, i, &done, &error);
    CHECK_EQ(status == TFW_OK, done);
    if (l->taken) {
        CHECK_EQ(TFW_E_ARGUMENT, status);
    } else if (status == TFW_OK) {
        l->held[l->count++] = (uint8_t)i;
    }
}

static void clear(life *l) {
    tfw_columns_clear(l->table.columns);
    l->count = 0;
    l->taken = false;
}

static void column_free(tfw_column *c) {
    tfw_free(c->values);
    tfw_free(c->offsets);
    tfw_free(c->splits);
    tfw_free(c->steps);
    *c = (tfw_column){0};
}

/* Borrowed columns against those of a table that parsed the same messages at once. */
static void check_held(life *l) {
    table fresh;
    if (l->taken) {
        return;
    }
    CHECK_EQ(l->count, tfw_columns_records(l->table.columns));
    table_init(&fresh, l->table.specs, l->table.lists, MAX_RECORDS);
    for (size_t i = 0; i < l->count; i++) {
        CHECK_EQ(TFW_OK, parse(fresh.columns, fresh.lists, l->messages, l->held[i], NULL, NULL));
    }
    table_take(&fresh);
    l->table.records = l->count;
    for (size_t i = 0; i < l->table.specs->count && l->count != 0; i++) {
        if (!is_bound(&l->table, i)) {
            CHECK_EQ(TFW_OK,
                     tfw_columns_peek(l->table.columns, i, &l->table.taken[i], NULL));
            check_column(&l->table, i);
        }
    }
    if (l->count != 0) {
        check_tables(&fresh, &l->table);
    }
    memset(l->table.taken, 0, sizeof l->table.taken); /* lent, not owned */
    table_free(&fresh);
}

/* Begins anew, with the memory of a column that was taken. */
static void begin_with(life *l, size_t feature, tfw_column *c) {
    void *memory[MAX_FEATURES];
    size_t sizes[MAX_FEATURES] = {0};
    memcpy(memory, l->table.bound, sizeof memory);
    memory[feature] = c->values;
    sizes[feature] = (size_t)c->capacity;
    CHECK_EQ(TFW_OK, tfw_columns_begin(l->table.columns, memory, sizes, MAX_RECORDS, NULL));
    c->values = memory[feature];
    clear(l);
}

/* Takes every other column or all, or one, whose memory it gives back. */
static void take(life *l, uint8_t choice) {
    for (size_t i = choice & 1; i < l->table.specs->count; i += 1 + (choice >> 1 & 1)) {
        tfw_column c = {0};
        int status = tfw_columns_take(l->table.columns, i, &c, NULL);
        CHECK(status == TFW_OK || status == TFW_E_ARGUMENT || status == TFW_E_MEMORY);
        CHECK(!is_bound(&l->table, i) || status == TFW_E_ARGUMENT);
        if (status != TFW_OK) {
            continue;
        }
        l->taken = true;
        CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_take(l->table.columns, i, &(tfw_column){0}, NULL));
        if ((choice & 4) != 0) {
            begin_with(l, i, &c);
            column_free(&c);
            return;
        }
        column_free(&c);
    }
}

/* Other memory for a bound column, with what it held; or what no column may be bound to. */
static void bind(life *l, uint8_t choice) {
    size_t i = choice % (l->table.specs->count + 1);
    if (i == l->table.specs->count || !is_bound(&l->table, i)) {
        CHECK_EQ(TFW_E_ARGUMENT, tfw_columns_bind(l->table.columns, i, "", 0, NULL));
        return;
    }
    const tfw_feature *f = &l->table.specs->features[i];
    size_t size = (size_t)f->count * size_of_kind(f->kind) * MAX_RECORDS;
    void *moved = fuzz_copy(l->table.bound[i], size);
    CHECK_EQ(TFW_OK, tfw_columns_bind(l->table.columns, i, moved, MAX_RECORDS, NULL));
    free(l->table.bound[i]);
    l->table.bound[i] = moved;
}

static void step(life *l, uint8_t op, uint8_t choice) {
    tfwi_test_fail_allocation = (op >> 3) % 8 - 1;
    switch (op & 7) {
    case 5: clear(l); break;
    case 6: take(l, choice); break;
    case 7: bind(l, choice); break;
    default: append(l, choice % l->messages->count); break;
    }
    tfwi_test_fail_allocation = -1;
    if (op >= 192) {
        check_held(l);
    }
}

/* lists or not, schema, how many steps; steps; messages. */
static void run(input *in) {
    specs s;
    bool lists = (input_byte(in) & 1) != 0;
    specs_init(&s, in, lists);
    size_t steps = input_byte(in) % 40, len;
    const uint8_t *script = input_bytes(in, 2 * steps, &len);
    messages m = messages_of(in);
    life l = {.messages = &m};
    table_init(&l.table, &s, lists, MAX_RECORDS);
    for (size_t i = 0; i < s.count; i++) { /* copied before it is written */
        if (is_bound(&l.table, i)) {
            memset(l.table.bound[i], 0, (size_t)s.features[i].count *
                                            size_of_kind(s.features[i].kind) * MAX_RECORDS);
        }
    }
    for (size_t i = 0; i + 1 < len && check_failures == 0; i += 2) {
        step(&l, script[i], script[i + 1]);
    }
    check_held(&l);
    table_free(&l.table);
    tfw_schema_free(s.schema);
    free(m.data);
}

FUZZ_TARGET(run)
