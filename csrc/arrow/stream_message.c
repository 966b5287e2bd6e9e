/* SPDX-License-Identifier: Apache-2.0 */
/* What get_last_error of a stream says: the words of the Python package's errors. */
#include "arrow/stream.h"
#include "base/system.h"
#include "base/utf8.h"
#include "parse/schema.h"

#include <errno.h>
#include <stdio.h>

/* Text that grows within bounds; what does not fit is left out. */
typedef struct writer {
    char *out;
    size_t end;
} writer;

static void put(writer *w, const char *text) {
    for (; *text != '\0' && w->end < TFWI_MESSAGE_SIZE - 1; text++) {
        w->out[w->end++] = *text;
    }
    w->out[w->end] = '\0';
}

/* Drops the last character if its bytes did not all fit: some consumers end the process at text
 * that is not UTF-8. */
static void end_whole(writer *w) {
    size_t first = w->end;
    while (first != 0 && tfwi_utf8_continues((uint8_t)w->out[first - 1])) {
        first--;
    }
    if (first != 0 && w->end - (first - 1) < tfwi_utf8_size((uint8_t)w->out[first - 1])) {
        w->out[first - 1] = '\0';
    }
}

static void put_number(writer *w, const char *before, int64_t number) {
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)number);
    put(w, before);
    put(w, digits);
}

/* Whether a terminal shows a character as it is: not a control character, not a mark that changes
 * the direction of text, not an invisible one. */
static bool is_shown(const char *text, size_t size) {
    const uint8_t *p = (const uint8_t *)text;
    switch (size) {
    case 1: return p[0] >= 0x20 && p[0] < 0x7f;
    case 2: return p[0] != 0xc2 || p[1] >= 0xa0;
    case 3:
        return p[0] != 0xe2 || !((p[1] == 0x80 && p[2] >= 0x8b && p[2] <= 0xae &&
                                  (p[2] <= 0x8f || p[2] >= 0xa8)) ||
                                 (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf));
    default: return true;
    }
}

enum { SHOWN_CHARACTERS = 60, SHOWN_FIRST = 29, SHOWN_LAST = 28 }; /* with "..." between */

/* A key as the Python package shows it, but with '?' for what that escapes. A long one loses its
 * middle. */
static void put_key(writer *w, const char *key, size_t len) {
    size_t count = 0, number = 0;
    const bool utf8 = tfwi_is_utf8((const uint8_t *)key, len);
    for (size_t i = 0; i < len; i += utf8 ? tfwi_utf8_size((uint8_t)key[i]) : 1) {
        count++;
    }
    for (size_t i = 0, size; i < len; i += size, number++) {
        char text[5] = "?";
        size = utf8 ? tfwi_utf8_size((uint8_t)key[i]) : 1;
        if (is_shown(key + i, size)) {
            memcpy(text, key + i, size);
        }
        if (count <= SHOWN_CHARACTERS || number < SHOWN_FIRST || number >= count - SHOWN_LAST) {
            put(w, text);
        } else if (number == SHOWN_FIRST) {
            put(w, "...");
        }
    }
}

static const char *kind_name(int64_t kind) {
    static const char *const names[] = {"none", "string", "float32", "int64"};
    return kind >= TFW_NONE && kind <= TFW_INT64 ? names[kind] : "unknown";
}

/* ---- Records that do not fit ---------------------------------------------------------------- */

static const tfw_feature *feature_of(const tfw_arrow_layout *layout, const tfw_error *error) {
    const tfw_schema *schema = error->list == 1 ? layout->lists : layout->context;
    bool known = schema != NULL && error->feature >= 0 && (size_t)error->feature < schema->count;
    return known ? &schema->features[error->feature] : NULL;
}

static void put_feature_name(writer *w, const tfw_feature *feature, const tfw_error *error) {
    put(w, error->list == 1 ? "Feature list: " : "Key: ");
    put_key(w, feature->name, (size_t)feature->name_len);
    if (error->list == 1) {
        put_number(w, ", step ", error->row);
    }
    put(w, ".  ");
}

static void put_shape(writer *w, const tfw_arrow_layout *layout, const tfw_error *error) {
    const tfwi_table_field *field = NULL;
    for (size_t i = 0; i < layout->count; i++) {
        const tfwi_table_field *each = &layout->fields[i];
        bool same = each->column == (size_t)error->feature && each->is_list == (error->list == 1);
        field = same ? each : field;
    }
    for (size_t i = 0; field != NULL && i < field->rank; i++) {
        put_number(w, i == 0 ? "" : ", ", (int64_t)field->shape[i]);
    }
    put(w, "]");
}

static void put_missing(writer *w, const tfw_feature *feature, const tfw_error *error) {
    if (error->list == 1) {
        put(w, "Feature list '");
        put_key(w, feature->name, (size_t)feature->name_len);
        put(w, "' is required but could not be found.");
        return;
    }
    put(w, "Feature: ");
    put_key(w, feature->name, (size_t)feature->name_len);
    put(w, " (data type: ");
    put(w, kind_name(feature->kind));
    put(w, ") is required but could not be found.");
}

static void put_kind(writer *w, const tfw_feature *feature, const tfw_error *error) {
    const bool expected_first = feature->layout == TFW_VARIABLE || error->list == 1;
    put_feature_name(w, feature, error);
    put(w, "Data types don't match. ");
    put(w, expected_first ? "Expected type: " : "Data type: ");
    put(w, kind_name(expected_first ? error->expected : error->found));
    put(w, expected_first ? ", Actual type: " : " but expected type: ");
    put(w, kind_name(expected_first ? error->found : error->expected));
}

static void put_count(writer *w, const tfw_feature *feature, const tfw_arrow_layout *layout,
                      const tfw_error *error) {
    put_feature_name(w, feature, error);
    put(w, "Number of ");
    put(w, kind_name(feature->kind));
    if (feature->layout == TFW_REPEATED) {
        put_number(w, " values is not a multiple of stride length. Saw ", error->found);
        put(w, " values but output shape is: [?,");
    } else {
        put_number(w, " values != expected.  Values size: ", error->found);
        put(w, " but output shape: [");
    }
    put_shape(w, layout, error);
}

static void put_malformed(writer *w, const tfw_feature *feature, const tfw_error *error) {
    put(w, "Could not parse example input: ");
    put(w, error->text);
    if (feature != NULL) {
        put(w, " in feature ");
        put_key(w, feature->name, (size_t)feature->name_len);
    }
    put_number(w, " at byte ", error->offset);
}

/* What can be done about a record that does not fit what was inferred from others. */
static void put_advice(writer *w, const tfw_arrow_layout *layout) {
    if ((layout->flags & TFW_ARROW_SAMPLED) != 0) {
        put(w, TFWI_ADVICE);
    }
}

/* ---- All errors ----------------------------------------------------------------------------- */

static int put_io(writer *w, const tfw_error *error) {
    char text[128];
    tfwi_system_error_text(error->os_errno, text, sizeof text);
    put(w, ": ");
    put(w, text[0] != '\0' ? text : error->text);
    return error->os_errno > 0 ? error->os_errno : EIO;
}

static int put_damage(writer *w, const tfw_error *error) {
    put_number(w, ": record ", error->record);
    put_number(w, " at byte ", error->offset);
    put(w, ": ");
    put(w, error->text);
    return EIO;
}

static int put_misfit(writer *w, const tfw_error *error, const tfw_arrow_layout *layout) {
    const tfw_feature *feature = feature_of(layout, error);
    put_number(w, ": record ", error->record);
    put(w, ": ");
    if (error->status == TFW_E_WIRE || feature == NULL) {
        put_malformed(w, feature, error);
    } else if (error->status == TFW_E_MISSING) {
        put_missing(w, feature, error);
    } else if (error->status == TFW_E_KIND) {
        put_kind(w, feature, error);
    } else {
        put_count(w, feature, layout, error);
    }
    if (error->status != TFW_E_WIRE) {
        put_advice(w, layout);
    }
    return EINVAL;
}

static int put_unexportable(writer *w, const tfw_error *error, const tfw_arrow_layout *layout) {
    const char *name = layout->fields[error->feature].name;
    put_number(w, ": record ", error->record);
    put(w, ": Key: ");
    put_key(w, name, strlen(name));
    put(w, ".  ");
    put(w, error->text);
    if (error->status == TFW_E_COUNT) {
        put_advice(w, layout);
    }
    return EINVAL;
}

static int put_error(writer *w, const tfw_error *error, const tfw_arrow_layout *layout,
                     bool by_field) {
    if (by_field) {
        return put_unexportable(w, error, layout);
    }
    switch (error->status) {
    case TFW_E_IO: return put_io(w, error);
    case TFW_E_TRUNCATED:
    case TFW_E_LENGTH_CRC:
    case TFW_E_DATA_CRC:
    case TFW_E_TOO_LARGE: return put_damage(w, error);
    case TFW_E_ARGUMENT:
    case TFW_E_UNSUPPORTED:
        put(w, ": ");
        put(w, error->text);
        return EINVAL;
    default: return put_misfit(w, error, layout);
    }
}

int tfwi_stream_message(char out[TFWI_MESSAGE_SIZE], const tfw_error *error, const char *name,
                        const tfw_arrow_layout *layout, bool by_field) {
    writer w = {.out = out};
    if (error->status == TFW_E_MEMORY) {
        put(&w, "out of memory");
        return ENOMEM;
    }
    put(&w, name);
    const int number = put_error(&w, error, layout, by_field);
    end_whole(&w);
    return number;
}

void tfwi_stream_message_copy(char out[TFWI_MESSAGE_SIZE], const char *text) {
    writer w = {.out = out};
    put(&w, text);
    end_whole(&w);
}
