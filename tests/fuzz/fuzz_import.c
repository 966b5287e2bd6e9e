/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_import_next: a column that the input describes, laid out as Arrow data in a way that the input
 * chooses, gives the messages of the same column laid out plainly; in pieces of any room, alone, in
 * a table or in a struct of one. Structs and buffers that lie are refused, or give other messages,
 * and are released once. */
#include "common/fuzz.h"

#include "arrow_columns.h"

enum { MOST_RECORDS = 12, MOST_VALUES = 64, MOST_DEPTH = 3, MOST_BYTES = 1024 };

/* ---- The column ----------------------------------------------------------------------------- */

/* The values of each record, as tfw_encode takes them, and how deep its lists are. */
typedef struct column {
    int32_t kind;
    size_t depth;
    int64_t records;
    int64_t count; /* of values */
    uint8_t presence[MOST_RECORDS];
    int64_t splits[MOST_DEPTH + 1][MOST_VALUES + 2]; /* of level i: into level i + 1 */
    int64_t cells[MOST_DEPTH + 1];                   /* how many entries of it */
    int64_t ints[MOST_VALUES];
    float floats[MOST_VALUES];
    int64_t offsets[MOST_VALUES + 1];
    uint8_t bytes[MOST_BYTES];
} column;

/* Lists of each level, all of the same size if fixed is not 0. */
static void make_level(column *c, size_t level, int64_t fixed, input *in) {
    int64_t at = 0;
    for (int64_t i = 0; i < c->cells[level]; i++) {
        int64_t size = fixed != 0 ? fixed - 1 : input_byte(in) % 4;
        c->splits[level][i] = at;
        at += at + size <= MOST_VALUES ? size : 0;
    }
    c->splits[level][c->cells[level]] = at;
    c->cells[level + 1] = at;
}

static void make_values(column *c, input *in) {
    int64_t at = 0;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t len = input_byte(in) % 20;
        c->ints[i] = (int8_t)input_byte(in);
        c->floats[i] = (float)(c->ints[i]) / 4;
        c->offsets[i] = at;
        len = at + len <= MOST_BYTES ? len : 0;
        memset(c->bytes + at, (int)c->ints[i], (size_t)len);
        at += len;
    }
    c->offsets[c->count] = at;
}

/* The column as the encoder takes it: splits of records, flattened. */
static tfw_input plain_input(const column *c, int64_t *splits) {
    tfw_input in = {.name = "x", .name_len = 1, .kind = c->kind, .splits = splits,
                    .value_count = (uint64_t)c->count, .presence = c->presence,
                    .cell_count = (uint64_t)c->records};
    for (int64_t i = 0; i <= c->records; i++) {
        int64_t at = i;
        for (size_t level = 0; level < c->depth; level++) {
            at = c->splits[level][at];
        }
        splits[i] = at;
    }
    in.values = c->kind == TFW_INT64 ? (const void *)c->ints
                : c->kind == TFW_FLOAT ? (const void *)c->floats : c->bytes;
    in.byte_count = c->kind == TFW_INT64   ? in.value_count * 8
                    : c->kind == TFW_FLOAT ? in.value_count * 4 : (uint64_t)c->offsets[c->count];
    in.offsets = c->kind == TFW_BYTES ? c->offsets : NULL;
    return in;
}

/* ---- Its layout ----------------------------------------------------------------------------- */

enum { NODES = MOST_DEPTH + 2 }; /* lists, values or indices, and a dictionary */

/* Blocks of memory of just their size. */
typedef struct layout {
    struct ArrowSchema types[NODES], *type_children[NODES][1];
    struct ArrowArray arrays[NODES], *array_children[NODES][1];
    const void *buffers[NODES][5];
    size_t sizes[NODES][5];
    char formats[NODES][8];
    size_t nodes;
    int64_t before; /* elements before the first, in every array */
} layout;

static void *new_buffer(layout *l, size_t node, size_t buffer, size_t size) {
    uint8_t *memory = fuzz_alloc(size);
    memset(memory, 0, size);
    l->buffers[node][buffer] = memory;
    l->sizes[node][buffer] = size;
    return memory;
}

static void layout_free(layout *l) {
    for (size_t i = 0; i < NODES; i++) {
        for (size_t k = 0; k < 5; k++) {
            free((void *)(uintptr_t)l->buffers[i][k]);
        }
    }
}

static size_t add_node(layout *l, const char *format, int64_t length, int64_t buffers) {
    size_t node = l->nodes++;
    strcpy(l->formats[node], format);
    l->types[node] = type_of(l->formats[node], NULL);
    l->arrays[node] = array_of(length, buffers, l->buffers[node], NULL);
    l->arrays[node].offset = l->before;
    return node;
}

/* Writes number i of a buffer, of a size. */
static void put(void *buffer, size_t size, int64_t i, int64_t number) {
    memcpy((uint8_t *)buffer + (size_t)i * size, &number, size); /* little-endian here */
}

static void lay_out_lists(layout *l, const column *c, size_t level, uint8_t choice) {
    static const char *const formats[] = {"+l", "+L", "+vl", "+vL"};
    const int64_t count = c->cells[level], before = l->before;
    const size_t width = (choice & 1) != 0 ? 8 : 4;
    const bool is_view = (choice & 2) != 0;
    size_t node = add_node(l, formats[choice & 3], count, is_view ? 3 : 2);
    int64_t all = before + count;
    void *offsets = new_buffer(l, node, 1, (size_t)(all + !is_view) * width);
    void *sizes = is_view ? new_buffer(l, node, 2, (size_t)all * width) : NULL;
    for (int64_t i = 0; i < count + !is_view; i++) {
        put(offsets, width, before + i, c->splits[level][i]);
    }
    for (int64_t i = 0; i < count && is_view; i++) {
        put(sizes, width, before + i, c->splits[level][i + 1] - c->splits[level][i]);
    }
}

static void lay_out_strings(layout *l, const column *c, uint8_t choice) {
    static const char *const formats[] = {"u", "Z", "vu"};
    const int64_t count = c->count, before = l->before, len = c->offsets[count];
    const int which = choice % 3;
    size_t node = add_node(l, formats[which], count, which == 2 ? 4 : 3);
    memcpy(new_buffer(l, node, 2, (size_t)len), c->bytes, (size_t)len);
    if (which != 2) {
        const size_t width = which == 1 ? 8 : 4;
        void *offsets = new_buffer(l, node, 1, (size_t)(before + count + 1) * width);
        for (int64_t i = 0; i <= count; i++) {
            put(offsets, width, before + i, c->offsets[i]);
        }
        return;
    }
    uint8_t *views = new_buffer(l, node, 1, (size_t)(before + count) * 16);
    put(new_buffer(l, node, 3, 8), 8, 0, len);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *view = views + (before + i) * 16;
        int64_t size = c->offsets[i + 1] - c->offsets[i];
        put(view, 4, 0, size);
        if (size <= 12) {
            memcpy(view + 4, c->bytes + c->offsets[i], (size_t)size);
        } else {
            put(view, 4, 3, c->offsets[i]);
        }
    }
}

static void lay_out_numbers(layout *l, const column *c, uint8_t choice) {
    static const char formats[] = "csilg"; /* all numbers of the column fit a byte */
    static const size_t widths[] = {1, 2, 4, 8, 8};
    const bool is_float = c->kind == TFW_FLOAT;
    const size_t which = is_float ? 4 : choice % 4;
    const bool is_narrow = is_float && (choice & 1) != 0;
    const size_t width = is_narrow ? 4 : widths[which];
    const char format[2] = {is_narrow ? 'f' : formats[which], 0};
    size_t node = add_node(l, format, c->count, 2);
    uint8_t *values = new_buffer(l, node, 1, (size_t)(l->before + c->count) * width);
    for (int64_t i = 0; i < c->count; i++) {
        const double wide = (double)c->floats[i];
        if (is_narrow) {
            memcpy(values + (size_t)(l->before + i) * width, &c->floats[i], width);
        } else if (is_float) {
            memcpy(values + (size_t)(l->before + i) * width, &wide, width);
        } else {
            put(values, width, l->before + i, c->ints[i]);
        }
    }
}

static void lay_out_values(layout *l, const column *c, uint8_t choice) {
    if (c->kind == TFW_BYTES) {
        lay_out_strings(l, c, choice);
    } else {
        lay_out_numbers(l, c, choice);
    }
}

/* The nulls of the outermost array, where records are absent. */
static void lay_out_nulls(layout *l, const column *c) {
    uint8_t *bits = new_buffer(l, 0, 0, (size_t)(l->before + c->records + 7) / 8);
    for (int64_t i = 0; i < c->records; i++) {
        int64_t at = l->before + i;
        bits[at / 8] |= (uint8_t)((c->presence[i] == TFW_PRESENT) << (at % 8));
    }
    l->arrays[0].null_count = -1;
}

static void lay_out(layout *l, const column *c, input *in) {
    l->before = input_byte(in) % 10;
    for (size_t level = 0; level < c->depth; level++) {
        lay_out_lists(l, c, level, input_byte(in));
    }
    const uint8_t choice = input_byte(in);
    if ((choice & 0x80) != 0) { /* indices, backwards from the end */
        size_t node = add_node(l, "s", c->count, 2);
        void *indices = new_buffer(l, node, 1, (size_t)(l->before + c->count) * 2);
        for (int64_t i = 0; i < c->count; i++) {
            put(indices, 2, l->before + i, i);
        }
        lay_out_values(l, c, choice);
        l->types[node].dictionary = &l->types[node + 1];
        l->arrays[node].dictionary = &l->arrays[node + 1];
    } else {
        lay_out_values(l, c, choice);
    }
    for (size_t i = 0; i < c->depth; i++) {
        l->type_children[i][0] = &l->types[i + 1];
        l->array_children[i][0] = &l->arrays[i + 1];
        l->types[i].n_children = l->arrays[i].n_children = 1;
        l->types[i].children = l->type_children[i];
        l->arrays[i].children = l->array_children[i];
    }
    lay_out_nulls(l, c);
}

/* Changes a number of a struct, or in a buffer of offsets, sizes, views or indices. Lengths grow by
 * nothing that could not be known to be wrong. */
static void lie(layout *l, input *in) {
    const size_t node = input_byte(in) % l->nodes;
    const uint8_t which = input_byte(in) % 12;
    const int64_t number = (int64_t)input_number(in, 1 + input_byte(in) % 8);
    struct ArrowArray *a = &l->arrays[node];
    const size_t size = l->sizes[node][1];
    const bool is_string = node == l->nodes - 1 && l->formats[node][0] != 'v';
    switch (which) {
    case 0: a->length = number < 0 ? number : -number; break;
    case 1: a->offset = number < 0 ? number : -number; break;
    case 2: a->null_count = number; break;
    case 3: a->n_buffers = number % 5; break;
    case 4: a->n_children = number; break;
    case 5: a->buffers = NULL; break;
    case 6: a->children = NULL; break;
    case 7: a->dictionary = a->dictionary != NULL ? NULL : a; break;
    case 8: a->length -= a->length != 0; break;
    default:
        if (!is_string && size >= 8) { /* nobody can know where a string's bytes end */
            memcpy((uint8_t *)(uintptr_t)l->buffers[node][1] + (size_t)which % (size / 8) * 8,
                   &number, 8);
        }
    }
}

/* ---- Messages ------------------------------------------------------------------------------- */

typedef struct messages {
    uint8_t out[1 << 15];
    size_t len;
    int64_t records;
    bool may_be_long; /* lists over each other have more values than the column */
} messages;

static void encode(messages *m, const tfw_input *input, uint64_t records) {
    tfw_span spans[MOST_RECORDS];
    size_t done, len;
    CHECK(records <= MOST_RECORDS);
    if (records > MOST_RECORDS) {
        return;
    }
    tfw_input named = *input;
    named.name = "x";
    named.name_len = 1;
    int status = tfw_encode(&named, 1, 0, (size_t)records, 0, 0, m->out + m->len,
                            sizeof m->out - m->len, spans, &done, &len, NULL);
    CHECK(status == TFW_OK || (status == TFW_NEED_SPACE && m->may_be_long));
    m->len += len;
    m->records += (int64_t)records;
}

/* The lengths of all lists that lie under records, as far as these were imported before. */
static void check_levels(tfw_import *import, const column *c, uint64_t before, uint64_t records) {
    const tfw_level *levels;
    size_t depth;
    tfw_import_levels(import, 0, &levels, &depth);
    CHECK_EQ(c->depth, depth);
    CHECK(depth == 0 || levels[0].count == records);
    for (uint64_t i = 0; i < records && depth != 0 && check_failures == 0; i++) {
        int64_t begin = (int64_t)i, end = begin + 1; /* imported */
        int64_t from = (int64_t)before + begin, to = from + 1;
        for (size_t level = 0; level < depth; level++) {
            const bool is_there = c->presence[before + i] == TFW_PRESENT;
            begin = levels[level].splits[begin];
            end = levels[level].splits[end];
            from = c->splits[level][from];
            to = c->splits[level][to];
            CHECK_EQ(is_there ? to - from : 0, end - begin);
        }
    }
}

/* The status of the end. */
static int import_all(messages *m, layout *l, const column *c, int64_t records, size_t room,
                      long fail) {
    imported t;
    tfwi_test_fail_allocation = fail;
    int status = import_one(&t, &l->types[0], &l->arrays[0], records, room);
    while (status == TFW_OK) {
        long left = tfwi_test_fail_allocation;
        tfwi_test_fail_allocation = -1;
        if (c != NULL) {
            check_levels(t.import, c, (uint64_t)m->records, t.records);
        }
        encode(m, t.inputs, t.records);
        tfwi_test_fail_allocation = left;
        status = tfw_import_next(t.import, room, &t.inputs, &t.records, &t.error);
    }
    tfw_import_free(t.import);
    tfwi_test_fail_allocation = -1;
    return status;
}

static void run(input *in) {
    static column c;
    static messages plain, found;
    int64_t splits[MOST_RECORDS + 1];
    layout l = {.nodes = 0};
    const uint8_t choice = input_byte(in), room = input_byte(in), lies = input_byte(in);
    c.kind = 1 + (choice & 3) % 3;
    c.depth = choice >> 2 & MOST_DEPTH;
    import_as_column = (choice & 0x10) != 0;
    import_field = (choice & 0x50) == 0x40;
    import_levels = c.depth > 1 || import_field || (choice & 0x20) != 0;
    c.records = c.cells[0] = input_byte(in) % (MOST_RECORDS + 1);
    for (int64_t i = 0; i < c.records; i++) {
        c.presence[i] = input_byte(in) % 4 != 0 ? TFW_PRESENT : TFW_ABSENT;
    }
    for (size_t level = 0; level < c.depth; level++) {
        make_level(&c, level, input_byte(in) % 4, in);
    }
    c.count = c.cells[c.depth];
    make_values(&c, in);
    lay_out(&l, &c, in);
    plain.len = found.len = 0;
    plain.records = found.records = 0;
    found.may_be_long = lies % 2 != 0;
    if (lies % 2 != 0) {
        lie(&l, in);
        int status = import_all(&found, &l, NULL, c.records, (size_t)room * 8,
                                lies % 8 == 7 ? 3 : -1);
        CHECK(status != TFW_NEED_SPACE && status != TFW_E_IO);
    } else {
        tfw_input input = plain_input(&c, splits);
        encode(&plain, &input, (uint64_t)c.records);
        int status = import_all(&found, &l, import_levels ? &c : NULL, c.records,
                                (size_t)room * 8, lies % 8 == 6 ? room : -1);
        CHECK(status == TFW_END || (status == TFW_E_MEMORY && lies % 8 == 6));
        CHECK(status != TFW_END || found.records == c.records);
        CHECK(status != TFW_END || found.len == plain.len);
        CHECK(found.len <= plain.len && memcmp(found.out, plain.out, found.len) == 0);
    }
    layout_free(&l);
}

FUZZ_TARGET(run)
