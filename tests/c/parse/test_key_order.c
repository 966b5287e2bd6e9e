/* SPDX-License-Identifier: Apache-2.0 */
/* Wide messages with their keys in any order: every kernel gives what the complete parser gives,
 * and leaves nothing usual to it. */
#include "kernels.h"

enum { WIDEST = 300, LONG_ENTRY = 14 };

/* Keys that are told apart by their end, their middle or their length; keys of which all but one
 * are guessed wrong, since they have the same bytes wherever a window can be; and a key of a long
 * entry that is guessed right though the guess is made from other bytes. */
enum naming { NUMBERED, ENCLOSED, LENGTHS, COLLIDING, REPEATED, NAMINGS };

static char names[WIDEST][160];

static const char *name_of(enum naming naming, unsigned i) {
    char *name = names[i];
    switch (naming) {
    case NUMBERED: snprintf(name, sizeof names[i], "c_%02u", i); break;
    case ENCLOSED: snprintf(name, sizeof names[i], "a_prefix_of_keys_%03u_and_a_suffix", i); break;
    case LENGTHS: snprintf(name, sizeof names[i], "%0*u", (int)(1 + i % 140), i / 140); break;
    case COLLIDING:
        snprintf(name, sizeof names[i], "%c%c%052u", 'a' + i % 26, 'a' + i / 26, 0);
        break;
    default: snprintf(name, sizeof names[i], i == LONG_ENTRY ? "kkkkkkkkkk" : "c_%02u", i); break;
    }
    return name;
}

static tfw_feature numbers_and_others(const char *name, size_t i) {
    tfw_feature f = {.name = name, .name_len = strlen(name),
                     .kind = i % 3 == 0 ? TFW_FLOAT : TFW_INT64, .layout = TFW_DENSE, .count = 1};
    if (i % 8 == 3) {
        f.kind = TFW_BYTES;
    } else if (i % 8 == 5) {
        f.layout = TFW_VARIABLE;
        f.count = 0;
    } else if (i % 8 == 6) {
        f.count = i % 16 != LONG_ENTRY ? 2 : 50; /* floats whose lengths take two bytes */
        f.kind = TFW_FLOAT;
    }
    static const int64_t zeros[50];
    f.has_default = i % 4 == 1 && f.layout == TFW_DENSE;
    f.default_values = zeros;
    return f;
}

static tfw_feature numbers_alone(const char *name, size_t i) {
    return (tfw_feature){.name = name, .name_len = strlen(name), .layout = TFW_DENSE, .count = 1,
                         .kind = i % 3 == 0 ? TFW_FLOAT : TFW_INT64};
}

/* Makes features, and a schema of each stride-th. */
static tfw_schema *schema_of(tfw_feature *features, size_t count, size_t stride,
                             enum naming naming, tfw_feature (*feature)(const char *, size_t)) {
    tfw_schema *schema;
    tfw_feature asked[WIDEST];
    for (size_t i = 0; i < count; i++) {
        features[i] = feature(name_of(naming, (unsigned)i), i);
        asked[i / stride] = i % stride == 0 ? features[i] : asked[i / stride];
    }
    CHECK_EQ(TFW_OK,
             tfw_schema_create(asked, (count + stride - 1) / stride, SEED, &schema, NULL));
    return schema;
}

/* ---- The same columns ----------------------------------------------------------------------- */

static void compare_wide(const tfwi_matcher *kernel, size_t count, size_t stride,
                         enum naming naming) {
    tfw_feature features[WIDEST];
    tfw_schema *lists, *schema = schema_of(features, count, stride, naming, numbers_and_others);
    CHECK_EQ(TFW_OK, tfw_schema_create(NULL, 0, SEED, &lists, NULL));
    table complete = table_new(schema, lists, NULL), fast = table_new(schema, lists, kernel);
    for (size_t round = 0; round < (count < 50 ? BATCH : BATCH / 4); round++) {
        odd = one_in(2);
        blob map = some_map(features, count, false);
        map.len = one_in(8) ? below(map.len + 1) : map.len; /* ends in the midst of an entry */
        blob message = field(1, map);
        message = one_in(8) ? damage(message) : message;
        parse_both(&complete, &fast, message, false);
        blobs_free();
    }
    CHECK(complete.columns->records > 0 || count > (stride == 1 ? 100 : 50));
    compare_columns(complete.columns, fast.columns);
    table_free(&complete);
    table_free(&fast);
    tfw_schema_free(schema);
    tfw_schema_free(lists);
}

static void compare_widths(size_t stride) {
    static const size_t widths[] = {1, 2, 3, 5, 31, 32, 33, 40, 64, 130, WIDEST};
    state = 11;
    for (size_t i = 0; tfwi_matcher_at(i) != NULL; i++) {
        for (size_t k = 0; k < COUNT(widths) && tfwi_cpu_has(tfwi_matcher_at(i)->features); k++) {
            for (enum naming naming = 0; naming < NAMINGS; naming++) {
                compare_wide(tfwi_matcher_at(i), widths[k], stride, naming);
            }
        }
    }
}

static void test_any_order_gives_what_the_complete_parser_gives(void) { compare_widths(1); }

static void test_few_features_of_many_are_what_the_complete_parser_gives(void) {
    compare_widths(20);
}

/* ---- Nothing left to the complete parser ---------------------------------------------------- */

/* Usual entries in any order, with as many between them that are not asked for, and their keys
 * changed a little. */
static blob shuffled(const tfw_feature *features, size_t count, bool others) {
    size_t order[WIDEST], n = 0;
    blob parts[2 * WIDEST];
    do {
        some_order(order, count);
    } while (count > 2 && order[1] == (order[0] + 1) % count);
    for (size_t i = 0; i < count; i++) {
        const tfw_feature *f = &features[order[i]];
        parts[n++] = entry(f->name, usual_feature(f->kind, 1));
        if (others) {
            char *name = (char *)blob_alloc((size_t)f->name_len + 1);
            memcpy(name, f->name, (size_t)f->name_len + 1);
            name[below((size_t)f->name_len)] = '#';
            parts[n++] = entry(name, usual_feature(TFW_INT64 - (int32_t)below(3), below(3)));
        }
    }
    return field(1, join(parts, n));
}

static void expect_all_filled(const tfwi_matcher *kernel, size_t count, enum naming naming) {
    tfw_feature features[WIDEST];
    static int64_t values[WIDEST];
    tfw_schema *schema = schema_of(features, count, 1, naming, numbers_alone);
    tfw_columns *columns;
    CHECK_EQ(TFW_OK, tfw_columns_create(schema, 0, &columns, NULL));
    columns->kernel = kernel;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(TFW_OK, tfw_columns_bind(columns, i, &values[i], 1, NULL));
    }
    for (int round = 0; round < 10; round++) {
        blob message = shuffled(features, count, round % 2 != 0);
        tfw_span span = {0, message.len};
        columns->filled = SIZE_MAX;
        tfw_columns_clear(columns);
        CHECK_EQ(TFW_OK, tfw_parse(columns, message.data, message.len, &span, 1, 0, NULL, NULL));
        CHECK_EQ(count, columns->filled);
        blobs_free();
    }
    tfw_columns_free(columns);
    tfw_schema_free(schema);
}

static void test_usual_messages_in_any_order_take_the_fast_path(void) {
    state = 5;
    odd = false;
    for (size_t i = 0; tfwi_matcher_at(i) != NULL; i++) {
        const tfwi_matcher *kernel = tfwi_matcher_at(i);
        for (size_t count = 1; count <= WIDEST && tfwi_cpu_has(kernel->features); count += 13) {
            expect_all_filled(kernel, count, NUMBERED);
            expect_all_filled(kernel, count, ENCLOSED);
            expect_all_filled(kernel, count, COLLIDING);
        }
    }
}

int main(void) {
    RUN(test_any_order_gives_what_the_complete_parser_gives);
    RUN(test_few_features_of_many_are_what_the_complete_parser_gives);
    RUN(test_usual_messages_in_any_order_take_the_fast_path);
    return check_report("key_order");
}
