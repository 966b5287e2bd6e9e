/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, or the records of a file, encoded into a block. */
#include "pipeline/encoder.h"

enum {
    ENCODED_PIECE = 1 << 18, /* bytes that are encoded, framed and checksummed in turn */
    PIECE_RECORDS = 1 << 13
};

static bool reserve(tfwi_block *block, size_t more, size_t records) {
    tfwi_bytes data = {.of = block->data, .count = block->end, .capacity = block->capacity,
                       .hint = TFWI_ENCODE_RANGE + ENCODED_PIECE};
    const bool done = TFWI_RESERVE_MORE(data, more) && TFWI_RESERVE_MORE(block->spans, records);
    block->data = data.of;
    block->capacity = data.capacity;
    return done;
}

/* Makes records of a file of messages that were written with room around them. */
static int frame_piece(uint8_t *data, size_t len, const tfw_span *spans, size_t count,
                       tfw_tally *tally, tfw_error *error) {
    const int status = tfw_frame(data, len, spans, count, error);
    return status == TFW_OK ? tfw_tally_block(tally, data, len, 0, error) : status;
}

/* Encodes count records into room bytes; TFW_NEED_SPACE as tfw_encode. */
static int encode_piece(tfwi_encoding *e, tfwi_block *block, const tfwi_messages *where,
                        size_t room, unsigned flags, size_t *out_done, tfw_error *error) {
    tfwi_messages m = *where;
    size_t len;
    *out_done = 0;
    if (!reserve(block, room, m.count)) {
        return tfwi_fail(error, TFW_E_MEMORY, "no memory for a block of messages");
    }
    m.out = block->data + block->end;
    m.capacity = room;
    m.spans = block->spans.of + block->spans.count;
    if ((flags & TFW_ENCODE_FRAMED) != 0) {
        m.headroom = TFW_HEADER_SIZE;
        m.tailroom = TFW_FOOTER_SIZE;
    }
    int status = tfwi_encode(e, &m, out_done, &len, error);
    if (*out_done != 0 && (flags & TFW_ENCODE_FRAMED) != 0) {
        tfw_error unexpected;
        const int framed = frame_piece(m.out, len, m.spans, *out_done,
                                       &block->runs.of[0].tally, &unexpected);
        status = framed == TFW_OK ? status : framed;
    }
    for (size_t i = 0; i < *out_done && block->end != 0; i++) {
        m.spans[i].offset += block->end;
    }
    block->spans.count += *out_done;
    block->end += len;
    return status;
}

static int encode_pieces(tfwi_encoding *e, tfwi_block *block, const tfwi_rows *rows, size_t most,
                         unsigned flags, size_t *out_done, tfw_error *error) {
    size_t need = 0; /* of the next record, where it did not fit */
    while (*out_done < rows->count && block->end < most) {
        const size_t left = rows->count - *out_done, fits = most - block->end;
        const size_t room = need != 0 ? need : fits < ENCODED_PIECE ? fits : ENCODED_PIECE;
        const tfwi_messages m = {.first = rows->first + *out_done * rows->stride,
                                 .stride = rows->stride,
                                 .count = left < PIECE_RECORDS ? left : PIECE_RECORDS};
        size_t done;
        const int status = encode_piece(e, block, &m, room, flags, &done, error);
        *out_done += done;
        if (status != TFW_OK && status != TFW_NEED_SPACE) {
            return status;
        }
        need = done == 0 ? tfwi_as_size((uint64_t)error->expected) : 0;
    }
    return TFW_OK;
}

int tfwi_block_encode(tfwi_block *block, const tfwi_rows *rows, size_t most, unsigned flags,
                      size_t *out_done, tfw_error *error) {
    tfwi_encoding e;
    *out_done = 0;
    if (block->runs.count == 0) {
        if (!TFWI_RESERVE(block->runs, 1)) {
            return tfwi_fail(error, TFW_E_MEMORY, "no memory for a block of messages");
        }
        block->runs.of[0] = (tfwi_run){.begin.record = rows->first};
        block->runs.count = 1;
    }
    int status = tfwi_encoding_begin(&e, rows->inputs, rows->input_count, rows->records,
                                     rows->count, error);
    if (status == TFW_OK) {
        status = encode_pieces(&e, block, rows, most, flags, out_done, error);
    }
    tfwi_encoding_end(&e);
    block->rows += *out_done;
    block->runs.of[0].end.record = block->runs.of[0].begin.record + block->rows;
    return status;
}

tfw_chunk *tfwi_chunk_of(tfwi_block *block) {
    tfw_chunk *chunk = tfwi_calloc(1, sizeof *chunk);
    if (chunk == NULL || !TFWI_RESERVE(chunk->pieces, 1)) {
        tfw_free(chunk);
        return NULL;
    }
    chunk->pieces.count = 1;
    chunk->pieces.of[0] = (tfwi_piece){block, 0, block->rows};
    if (block->runs.count != 0) {
        chunk->begin = block->runs.of[0].begin;
        chunk->end = block->runs.of[0].end;
    }
    return chunk;
}

int tfw_encode_more(tfw_chunk *chunk, const tfw_input *inputs, size_t input_count, uint64_t records,
                    uint64_t first, uint64_t stride, uint64_t count, uint64_t most, uint32_t flags,
                    tfw_error *error) {
    tfw_error unused;
    size_t done;
    int status = tfwi_check_flags(flags, TFW_ENCODE_FRAMED, error);
    if (status != TFW_OK) {
        return status;
    }
    if (records > SIZE_MAX / 2 || stride == 0 ||
        (count != 0 && (first >= records || count - 1 > (records - 1 - first) / stride))) {
        return tfwi_fail(error, TFW_E_ARGUMENT, "more records than there are");
    }
    tfwi_piece *piece = &chunk->pieces.of[0];
    const tfwi_rows rows = {inputs, input_count, (size_t)records, (size_t)first, (size_t)stride,
                            (size_t)count};
    status = tfwi_block_encode(piece->block, &rows, tfwi_as_size(most), flags, &done,
                               error != NULL ? error : &unused);
    piece->end = piece->block->rows;
    chunk->begin = piece->block->runs.count != 0 ? piece->block->runs.of[0].begin : chunk->begin;
    return status;
}
