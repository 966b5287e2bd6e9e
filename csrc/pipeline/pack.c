/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the columns of a chunk, copied into a block of the caller's. */
#include "pipeline/pool.h"

int tfw_chunk_pack(const tfw_chunk *chunk, uint64_t first, uint64_t count,
                   const tfw_packed *columns, size_t column_count, uint8_t *out, size_t size,
                   tfw_error *error) {
    const tfwi_piece *piece = &chunk->pieces.of[0];
    const uint64_t rows = piece->end - piece->first;
    if (first > rows || count > rows - first) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "no such rows");
    }
    for (size_t i = 0; i < column_count; i++) {
        tfw_column c;
        const int status = tfw_chunk_column(chunk, false, columns[i].feature, &c, error);
        if (status != TFW_OK) {
            return status;
        }
        if (c.offsets != NULL || c.splits != NULL) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "a column is not of dense numbers");
        }
        const uint64_t row_size = rows != 0 ? c.byte_count / rows : 0;
        const uint64_t at = columns[i].at, length = count * row_size;
        if (at > size || length > size - at) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "the columns do not fit into the block");
        }
        if (length != 0) {
            memcpy(out + at, (const uint8_t *)c.values + first * row_size, (size_t)length);
        }
    }
    return TFW_OK;
}
