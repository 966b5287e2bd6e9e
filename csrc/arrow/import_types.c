/* SPDX-License-Identifier: Apache-2.0 */
/* The types of Arrow data, and whether arrays are of these types. */
#include "arrow/import_parts.h"

#include <limits.h>

/* The longest array that is accepted: sizes and positions of its contents stay within size_t. */
#define LONGEST ((int64_t)((SIZE_MAX < INT64_MAX ? SIZE_MAX : INT64_MAX) / 64))

/* ---- Types ---------------------------------------------------------------------------------- */

/* Types that no feature holds, by the beginning of their format; the longest first. */
static const struct {
    const char *format;
    const char *text;
} REFUSED[] = {
    {"ts", "a timestamp has no encoding; cast it to int64 or to a string"},
    {"td", "a date has no encoding; cast it to int32 or to a string"},
    {"tt", "a time has no encoding; cast it to int64 or to a string"},
    {"tD", "a duration has no encoding; cast it to int64"},
    {"ti", "an interval has no encoding; cast it to a string"},
    {"d:", "a decimal has no encoding; cast it to float64 or to a string"},
    {"+s", TFWI_A_STRUCT},
    {"+m", "a map cannot be a feature; make lists of its keys and of its values"},
    {"+u", "a union has no encoding; cast it to one of its types"},
    {"+r", "run-end encoded values have no encoding; cast the column to the type of its values"},
};

static int refuse(const char *format, tfw_error *error) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        if (strncmp(format, REFUSED[i].format, 2) == 0) {
            return tfwi_fail(error, TFW_E_UNSUPPORTED, REFUSED[i].text);
        }
    }
    return tfwi_fail(error, TFW_E_UNSUPPORTED, "an Arrow type that is not supported");
}

/* Reads a decimal number up to INT32_MAX; false: anything else. */
static bool read_size(const char *digits, int32_t *out) {
    int64_t size = 0;
    const char *p = digits;
    for (; *p >= '0' && *p <= '9' && size <= INT32_MAX; p++) {
        size = size * 10 + (*p - '0');
    }
    *out = (int32_t)size;
    return p != digits && *p == '\0' && size <= INT32_MAX;
}

static bool read_list_format(const char *format, tfwi_list_type *out) {
    static const char *const FORMATS[] = {"+l", "+L", "+w", "+vl", "+vL"};
    if (strncmp(format, "+w:", 3) == 0) {
        out->kind = TFWI_LIST_FIXED;
        return read_size(format + 3, &out->size);
    }
    for (int32_t i = 0; i < 5; i++) {
        if (strcmp(format, FORMATS[i]) == 0 && i != TFWI_LIST_FIXED) {
            out->kind = i;
            return true;
        }
    }
    return false;
}

/* The type of values in one or two letters, TFWI_VALUE_STRINGS_FIXED for "w:" and a size. */
static bool read_value_format(const char *format, int32_t *out, int32_t *out_width) {
    static const char LETTERS[] = "nbcCsSiIlLefg"; /* in the order of enum tfwi_value_type */
    if (strncmp(format, "w:", 2) == 0) {
        *out = TFWI_VALUE_STRINGS_FIXED;
        return read_size(format + 2, out_width);
    }
    if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0) {
        *out = TFWI_VALUE_STRING_VIEWS;
        return true;
    }
    if (format[0] == '\0' || format[1] != '\0') {
        return false;
    }
    const char *letter = strchr(LETTERS, format[0]);
    if (letter != NULL) {
        *out = (int32_t)(letter - LETTERS);
    } else if (format[0] == 'u' || format[0] == 'z') {
        *out = TFWI_VALUE_STRINGS_32;
    } else if (format[0] == 'U' || format[0] == 'Z') {
        *out = TFWI_VALUE_STRINGS_64;
    } else {
        return false;
    }
    return true;
}

static int read_dictionary(const struct ArrowSchema *schema, tfwi_type *out, tfw_error *error) {
    const struct ArrowSchema *of = schema->dictionary;
    int32_t width;
    if (!read_value_format(schema->format, &out->index, &width) || out->index < TFWI_VALUE_INT8 ||
        out->index > TFWI_VALUE_UINT64 || of->format == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "a dictionary without indices or a type");
    }
    if (of->format[0] == '+' || of->dictionary != NULL) {
        return tfwi_fail(error, TFW_E_UNSUPPORTED,
                         "a dictionary of lists or dictionaries; cast it to its values");
    }
    return read_value_format(of->format, &out->value, &out->width) ? TFW_OK
                                                                   : refuse(of->format, error);
}

int tfwi_read_type(const struct ArrowSchema *schema, tfwi_type *out, tfw_error *error) {
    *out = (tfwi_type){.name = schema != NULL && schema->name != NULL ? schema->name : ""};
    while (schema != NULL && schema->format != NULL) {
        const char *format = schema->format;
        tfwi_list_type list = {0};
        if (schema->dictionary != NULL) {
            return read_dictionary(schema, out, error);
        }
        if (!read_list_format(format, &list)) {
            return read_value_format(format, &out->value, &out->width) ? TFW_OK
                                                                       : refuse(format, error);
        }
        if (out->depth == TFWI_MAX_LISTS) {
            return tfwi_fail(error, TFW_E_UNSUPPORTED, "lists of lists more than 16 deep");
        }
        if (schema->n_children != 1 || schema->children == NULL) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a list without a type of its elements");
        }
        out->lists[out->depth++] = list;
        schema = schema->children[0];
    }
    return tfwi_fail(error, TFW_E_ARGUMENT, "a column without a type");
}

int64_t tfwi_count_fields(const struct ArrowSchema *schema) {
    const bool is_struct = schema != NULL && schema->format != NULL &&
                           strcmp(schema->format, "+s") == 0 && schema->dictionary == NULL;
    const int64_t fields = is_struct && schema->children != NULL ? schema->n_children : 0;
    return fields > 0 ? fields : 0;
}

bool tfwi_is_nested(const tfwi_type *type) {
    bool nested = false;
    for (size_t i = 1; i < type->depth; i++) {
        nested = nested || type->lists[i].kind != TFWI_LIST_FIXED;
    }
    return nested;
}

/* ---- Arrays --------------------------------------------------------------------------------- */

/* How many buffers, and children, an array of some type has. */
typedef struct shape {
    int64_t buffers;
    int64_t needed; /* the first ones; all but the bitmap exist if there is an element */
    int64_t children;
    bool more_buffers; /* or some more */
    bool all_null;
    bool dictionary;
} shape;

/* The checks for arrays of every type. */
static int check_shape(const struct ArrowArray *a, shape expected, int64_t elements,
                       tfw_error *error) {
    if (a == NULL) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an array is missing");
    }
    if (a->length < 0 || a->offset < 0 || a->length > LONGEST || a->offset > LONGEST ||
        a->null_count < -1 || a->null_count > a->length) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an array whose length or offset cannot be");
    }
    if (a->length < elements) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an array that is too short");
    }
    if (a->n_buffers < expected.buffers || a->n_buffers > INT_MAX ||
        (a->n_buffers > expected.buffers && !expected.more_buffers) ||
        (a->n_buffers != 0 && a->buffers == NULL)) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "other buffers than its type has");
    }
    if (a->n_children != expected.children || (a->n_children != 0 && a->children == NULL) ||
        (a->dictionary != NULL) != expected.dictionary) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "other children than its type has");
    }
    if (a->n_buffers != 0 && a->buffers[0] == NULL && a->null_count > 0 && !expected.all_null) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "nulls without a bitmap");
    }
    for (int64_t i = 1; i < expected.needed && a->length != 0; i++) {
        if (a->buffers[i] == NULL) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "elements without a buffer");
        }
    }
    return TFW_OK;
}

static shape shape_of_list(const tfwi_list_type *list) {
    const int64_t buffers = list->kind == TFWI_LIST_FIXED ? 1
                            : list->kind < TFWI_LIST_VIEW_32 ? 2 : 3;
    return (shape){.buffers = buffers, .needed = buffers, .children = 1};
}

static shape shape_of_values(const tfwi_type *type) {
    switch (type->value) {
    case TFWI_VALUE_NULLS: /* older: a bitmap */
        return (shape){.more_buffers = true, .all_null = true};
    case TFWI_VALUE_STRINGS_32:
    case TFWI_VALUE_STRINGS_64: return (shape){.buffers = 3, .needed = 2};
    case TFWI_VALUE_STRING_VIEWS: return (shape){.buffers = 3, .needed = 2, .more_buffers = true};
    case TFWI_VALUE_STRINGS_FIXED: return (shape){.buffers = 2, .needed = type->width != 0 ? 2 : 1};
    default: return (shape){.buffers = 2, .needed = 2};
    }
}

static int check_list(const struct ArrowArray *a, const tfwi_list_type *list, int64_t elements,
                      int64_t *out_elements, tfw_error *error) {
    int status = check_shape(a, shape_of_list(list), elements, error);
    *out_elements = 0;
    if (status == TFW_OK && list->kind == TFWI_LIST_FIXED && list->size != 0) {
        *out_elements = a->offset + a->length;
        if (*out_elements > LONGEST / list->size) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "an array that is too short");
        }
        *out_elements *= list->size;
    }
    return status;
}

static int check_values(const struct ArrowArray *a, const tfwi_type *type, int64_t elements,
                        tfw_error *error) {
    int status = check_shape(a, shape_of_values(type), elements, error);
    if (status == TFW_OK && type->value == TFWI_VALUE_STRINGS_FIXED && type->width != 0 &&
        a->offset + a->length > LONGEST / type->width) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "an array whose length or offset cannot be");
    }
    return status;
}

int tfwi_check_array(const struct ArrowArray *array, const tfwi_type *type, int64_t elements,
                     tfw_error *error) {
    const struct ArrowArray *a = array;
    if (type->fields != 0) {
        const shape expected = {.buffers = 1, .children = (int64_t)type->fields};
        int status = check_shape(a, expected, elements, error);
        if (status != TFW_OK) {
            return status;
        }
        elements = a->offset + a->length;
        a = a->children[type->member];
    }
    for (size_t i = 0; i < type->depth; i++) {
        int status = check_list(a, &type->lists[i], elements, &elements, error);
        if (status != TFW_OK) {
            return status;
        }
        a = a->children[0];
    }
    if (type->index != TFWI_VALUE_NULLS) {
        const shape indices = {.buffers = 2, .needed = 2, .dictionary = true};
        int status = check_shape(a, indices, elements, error);
        if (status != TFW_OK) {
            return status;
        }
        a = a->dictionary;
        elements = 0;
    }
    return check_values(a, type, elements, error);
}

int tfwi_check_table(const struct ArrowArray *array, const tfwi_type *columns, size_t count,
                     tfw_error *error) {
    const size_t places = count != 0 ? columns[count - 1].place + 1 : 0;
    const shape expected = {.buffers = 1, .children = (int64_t)places};
    int status = check_shape(array, expected, 0, error);
    if (status != TFW_OK) {
        return status;
    }
    if (tfwi_has_nulls(array)) {
        const uint8_t *bits = array->buffers[0];
        for (int64_t i = 0; i < array->length; i++) {
            if (!tfwi_bit(bits, (uint64_t)(array->offset + i))) {
                return tfwi_fail(error, TFW_E_UNSUPPORTED, "a row that is null; leave it out");
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t elements = array->offset + array->length;
        status = tfwi_check_array(array->children[columns[i].place], &columns[i], elements, error);
        if (status != TFW_OK) {
            TFWI_SET(error, feature, (int32_t)i);
            return status;
        }
    }
    return TFW_OK;
}
