/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of Arrow arrays and types, and the buffers that arrays share. */
#include "arrow/export.h"

/* ---- Buffers -------------------------------------------------------------------------------- */

#ifdef TFW_TEST_FAULTS
/* Test builds count the buffers that live. */
__attribute__((visibility("default"))) atomic_long tfwi_test_buffers = 0;
#define COUNT_BUFFERS(more) ((void)atomic_fetch_add(&tfwi_test_buffers, (more)))
#else
#define COUNT_BUFFERS(more) ((void)0)
#endif

tfwi_buffer *tfwi_buffer_lent(void *memory, void (*give_back)(void *owner), void *owner) {
    tfwi_buffer *buffer = tfwi_realloc(NULL, sizeof *buffer);
    if (buffer != NULL) {
        atomic_init(&buffer->count, 1);
        buffer->memory = memory;
        buffer->give_back = give_back;
        buffer->owner = owner;
        COUNT_BUFFERS(1);
    }
    return buffer;
}

tfwi_buffer *tfwi_buffer_new(size_t size) {
    void *memory = tfwi_realloc(NULL, size);
    tfwi_buffer *buffer = memory != NULL ? tfwi_buffer_lent(memory, tfw_free, memory) : NULL;
    if (buffer == NULL) {
        tfw_free(memory);
    }
    return buffer;
}

tfwi_buffer *tfwi_buffer_share(tfwi_buffer *buffer) {
    if (buffer != NULL) {
        (void)atomic_fetch_add_explicit(&buffer->count, 1, memory_order_relaxed);
    }
    return buffer;
}

void tfwi_buffer_drop(tfwi_buffer *buffer) {
    if (buffer != NULL &&
        atomic_fetch_sub_explicit(&buffer->count, 1, memory_order_acq_rel) == 1) {
        buffer->give_back(buffer->owner);
        tfw_free(buffer);
        COUNT_BUFFERS(-1);
    }
}

/* ---- Arrays --------------------------------------------------------------------------------- */

enum { MOST_BUFFERS = 3 };

/* What the pointers of an array lead to. */
typedef struct array_node {
    tfwi_buffer *held[MOST_BUFFERS];
    const void *buffers[MOST_BUFFERS];
    size_t child_count;
    struct ArrowArray dictionary;
    struct ArrowArray **pointers; /* both arrays are in this block */
    struct ArrowArray children[];
} array_node;

static void release_array(struct ArrowArray *array) {
    array_node *node = array->private_data;
    for (size_t i = 0; i < node->child_count; i++) {
        tfwi_array_release(&node->children[i]);
    }
    tfwi_array_release(&node->dictionary);
    for (size_t i = 0; i < MOST_BUFFERS; i++) {
        tfwi_buffer_drop(node->held[i]);
    }
    tfw_free(node);
    array->release = NULL;
}

bool tfwi_array_init(struct ArrowArray *out, int64_t length, tfwi_buffer *const *buffers,
                     size_t buffer_count, size_t child_count, bool has_dictionary) {
    *out = (struct ArrowArray){0};
    array_node *node = tfwi_calloc(
        1, sizeof *node + child_count * (sizeof node->children[0] + sizeof node->pointers[0]));
    if (node == NULL) {
        return false;
    }
    node->child_count = child_count;
    node->pointers = (struct ArrowArray **)(void *)(node->children + child_count);
    for (size_t i = 0; i < child_count; i++) {
        node->pointers[i] = &node->children[i];
    }
    for (size_t i = 0; i < buffer_count; i++) {
        node->held[i] = tfwi_buffer_share(buffers[i]);
        node->buffers[i] = buffers[i] != NULL ? buffers[i]->memory : NULL;
    }
    *out = (struct ArrowArray){
        .length = length,
        .n_buffers = (int64_t)buffer_count,
        .n_children = (int64_t)child_count,
        .buffers = node->buffers,
        .children = child_count != 0 ? node->pointers : NULL,
        .dictionary = has_dictionary ? &node->dictionary : NULL,
        .release = release_array,
        .private_data = node,
    };
    return true;
}

bool tfwi_array_wrap(struct ArrowArray *array, int64_t length, tfwi_buffer *offsets) {
    struct ArrowArray child = *array;
    tfwi_buffer *const buffers[2] = {NULL, offsets};
    if (!tfwi_array_init(array, length, buffers, offsets != NULL ? 2 : 1, 1, false)) {
        tfwi_array_release(&child);
        return false;
    }
    *array->children[0] = child;
    return true;
}

void tfwi_array_set_validity(struct ArrowArray *array, tfwi_buffer *bitmap, int64_t null_count) {
    array_node *node = array->private_data;
    node->held[0] = tfwi_buffer_share(bitmap);
    node->buffers[0] = bitmap->memory;
    array->null_count = null_count;
}

bool tfwi_array_share(const struct ArrowArray *array, struct ArrowArray *out) {
    const array_node *node = array->private_data;
    if (!tfwi_array_init(out, array->length, node->held, (size_t)array->n_buffers,
                         node->child_count, array->dictionary != NULL)) {
        return false;
    }
    out->null_count = array->null_count;
    out->offset = array->offset;
    bool good = array->dictionary == NULL || tfwi_array_share(array->dictionary, out->dictionary);
    for (size_t i = 0; good && i < node->child_count; i++) {
        good = tfwi_array_share(&node->children[i], out->children[i]);
    }
    if (!good) {
        tfwi_array_release(out);
    }
    return good;
}

void tfwi_array_release(struct ArrowArray *array) {
    if (array->release != NULL) {
        array->release(array);
    }
}

/* ---- Types ---------------------------------------------------------------------------------- */

enum { MOST_FORMAT = 32 };

/* What the pointers of a type lead to. */
typedef struct schema_node {
    char format[MOST_FORMAT];
    char *name;
    char *metadata;
    size_t child_count;
    struct ArrowSchema dictionary;
    struct ArrowSchema **pointers; /* both arrays are in this block */
    struct ArrowSchema children[];
} schema_node;

static void release_schema(struct ArrowSchema *schema) {
    schema_node *node = schema->private_data;
    for (size_t i = 0; i < node->child_count; i++) {
        tfwi_schema_release(&node->children[i]);
    }
    tfwi_schema_release(&node->dictionary);
    tfw_free(node->name);
    tfw_free(node->metadata);
    tfw_free(node);
    schema->release = NULL;
}

bool tfwi_schema_init(struct ArrowSchema *out, const char *format, size_t child_count) {
    *out = (struct ArrowSchema){0};
    schema_node *node = tfwi_calloc(
        1, sizeof *node + child_count * (sizeof node->children[0] + sizeof node->pointers[0]));
    if (node == NULL) {
        return false;
    }
    node->child_count = child_count;
    node->pointers = (struct ArrowSchema **)(void *)(node->children + child_count);
    for (size_t i = 0; i < child_count; i++) {
        node->pointers[i] = &node->children[i];
    }
    memcpy(node->format, format, strlen(format));
    *out = (struct ArrowSchema){
        .format = node->format,
        .name = "",
        .flags = ARROW_FLAG_NULLABLE,
        .n_children = (int64_t)child_count,
        .children = child_count != 0 ? node->pointers : NULL,
        .release = release_schema,
        .private_data = node,
    };
    return true;
}

bool tfwi_schema_wrap(struct ArrowSchema *schema, const char *format) {
    struct ArrowSchema child = *schema;
    if (!tfwi_schema_init(schema, format, 1)) {
        tfwi_schema_release(&child);
        return false;
    }
    *schema->children[0] = child;
    schema->children[0]->name = "item";
    return true;
}

void tfwi_schema_set_dictionary(struct ArrowSchema *indices, struct ArrowSchema *values) {
    schema_node *node = indices->private_data;
    node->dictionary = *values;
    indices->dictionary = &node->dictionary;
    values->release = NULL;
}

static char *copy_of(const void *data, size_t len) {
    char *copy = tfwi_realloc(NULL, len + 1);
    if (copy != NULL) {
        if (len != 0) {
            memcpy(copy, data, len);
        }
        copy[len] = '\0';
    }
    return copy;
}

bool tfwi_schema_name(struct ArrowSchema *schema, const char *name, const uint8_t *metadata,
                      size_t metadata_len) {
    schema_node *node = schema->private_data;
    node->name = copy_of(name, strlen(name));
    node->metadata = metadata != NULL ? copy_of(metadata, metadata_len) : NULL;
    if (node->name == NULL || (metadata != NULL && node->metadata == NULL)) {
        return false;
    }
    schema->name = node->name;
    schema->metadata = node->metadata;
    return true;
}

void tfwi_schema_release(struct ArrowSchema *schema) {
    if (schema->release != NULL) {
        schema->release(schema);
    }
}
