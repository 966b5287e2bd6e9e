/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of arrays, each in its own memory, as all that are handed to callers. */
#include "arrow/export.h"

/* Keeps only some of the records. The fields move, not the struct: some consumers want it at offset
 * 0. */
static void slice(struct ArrowArray *array, int64_t first, int64_t count) {
    if (count == array->length) {
        return;
    }
    array->length = count;
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        child->offset += first;
        child->length = count;
        child->null_count = child->null_count == 0 ? 0 : -1;
    }
}

int tfw_arrow_array_share(const struct ArrowArray *array, size_t first, size_t count,
                          struct ArrowArray **out_array, tfw_error *error) {
    const uint64_t length = (uint64_t)array->length;
    *out_array = NULL;
    if (first > length || count > length - first) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "the array has fewer records");
    }
    struct ArrowArray *shared = tfwi_calloc(1, sizeof *shared);
    if (shared == NULL || !tfwi_array_share(array, shared)) {
        tfw_free(shared);
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    slice(shared, (int64_t)first, (int64_t)count);
    *out_array = shared;
    return TFW_OK;
}

void tfw_arrow_array_free(struct ArrowArray *array) {
    if (array != NULL) {
        tfwi_array_release(array);
        tfw_free(array);
    }
}
