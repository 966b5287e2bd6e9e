/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of what a pipeline has parsed. */
#ifndef TFWIRE_EXPORT_CHUNK_H
#define TFWIRE_EXPORT_CHUNK_H

#include "arrow/export.h"
#include "pipeline/pool.h"

/* Where records come from. All zeros: of none. The owner frees the arrays. */
typedef struct tfwi_places {
    TFWI_ARRAY(int32_t) files; /* counted from the first one */
    tfwi_int64s numbers;
    tfwi_int64s offsets;
    size_t count;
    uint64_t first_file;
} tfwi_places;

/* Adds count records of a chunk, from number first of it on; false: out of memory. */
bool tfwi_places_add(tfwi_places *places, const tfw_chunk *chunk, uint64_t first, uint64_t count);
void tfwi_places_free(tfwi_places *places);

/* The same as positions; names: of the pipeline's files from number first_name on. */
tfwi_positions tfwi_places_of(const tfwi_places *places, const char *const *names,
                                   uint64_t first_name);

/* Records [first, first + count) of a chunk of the layout's schemas as an array, which keeps their
 * columns but not the chunk. Fails as tfw_arrow_chunk_create. */
int tfwi_export_chunk(const tfw_arrow_layout *layout, const tfw_chunk *chunk, uint64_t first,
                      uint64_t count, const tfwi_positions *positions,
                      struct ArrowArray *out, tfw_error *error);

#endif /* TFWIRE_EXPORT_CHUNK_H */
