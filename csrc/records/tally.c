/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of records: a fingerprint that does not depend on their order, and the CRC of the file
 * that they form. Both follow from the CRCs stored with the records. */
#include "base/hash.h"
#include "base/spans.h"
#include "records/frame.h"

/* From about this length on, combining is faster than reading the payload again. */
enum { LONG_PAYLOAD = 4096 };

/* A bijection of 64 bits in which every bit of the input changes half of the output: a step of
 * SplitMix64 (Steele, Lea, Flood, 2014). */
TFWI_INLINE uint64_t mixed(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* No two pairs of a CRC and a length below 4 GiB have the same hash. */
TFWI_INLINE void count_record(tfw_tally *tally, uint32_t crc, uint64_t length) {
    tally->records++;
    tally->payload_bytes += length;
    tally->hash += mixed(((length << 32) | (length >> 32)) ^ crc);
}

/* Continues the CRC of a file with a record, from that of its payload. */
static uint32_t crc_of_record(uint32_t file_crc, uint32_t crc, uint64_t length) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    uint8_t header[TFW_HEADER_SIZE], footer[TFW_FOOTER_SIZE];
    tfwi_store64(header, length);
    tfwi_store32(header + TFWI_LENGTH_SIZE, tfwi_length_crc(kernel, header));
    tfwi_store32(footer, tfwi_crc32c_mask(crc));
    file_crc = kernel->crc(file_crc, header, TFW_HEADER_SIZE);
    file_crc = tfw_crc32c_combine(file_crc, crc, length);
    return kernel->crc(file_crc, footer, TFW_FOOTER_SIZE);
}

void tfw_tally_record(tfw_tally *tally, uint32_t crc, uint64_t length) {
    count_record(tally, crc, length);
    tally->file_crc = crc_of_record(tally->file_crc, crc, length);
}

/* Adds the records of a block to a sum, which holds some of them after an error. */
static int add_block(tfw_tally *sum, const uint8_t *data, size_t len, unsigned flags,
                     tfw_error *error) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    const uint64_t longest = (flags & TFW_NO_DATA_CRC) == 0 ? LONG_PAYLOAD : UINT64_MAX;
    size_t at = 0, begin = 0; /* [begin, at): records checksummed at once */
    while (at < len) {
        const size_t left = len - at;
        if (TFWI_UNLIKELY(left < TFWI_FRAME_SIZE ||
                          tfwi_load64(data + at) > left - TFWI_FRAME_SIZE)) {
            return tfwi_fail(error, TFW_E_ARGUMENT, "the block does not end with a record");
        }
        const uint64_t length = tfwi_load64(data + at);
        size_t next = at + (size_t)length + TFWI_FRAME_SIZE;
        uint32_t crc = tfwi_crc32c_unmask(tfwi_load32(data + next - TFW_FOOTER_SIZE));
        count_record(sum, crc, length);
        if (length >= longest) {
            sum->file_crc = kernel->crc(sum->file_crc, data + begin, at - begin);
            sum->file_crc = crc_of_record(sum->file_crc, crc, length);
            begin = next;
        }
        at = next;
    }
    if (begin != at) {
        sum->file_crc = kernel->crc(sum->file_crc, data + begin, at - begin);
    }
    return TFW_OK;
}

int tfw_tally_block(tfw_tally *tally, const uint8_t *data, size_t len, unsigned flags,
                    tfw_error *error) {
    tfw_tally sum = *tally;
    int status = tfwi_check_flags(flags, TFW_NO_DATA_CRC, error);
    if (status == TFW_OK && (status = add_block(&sum, data, len, flags, error)) == TFW_OK) {
        *tally = sum;
    }
    return status;
}

/* Whether the record around a payload lies in the data. */
static bool is_framed(const tfw_span *span, size_t data_len) {
    return tfwi_span_fits(span, data_len, TFW_HEADER_SIZE, TFW_FOOTER_SIZE);
}

/* The record around spans[i], and those that follow it without a gap: i becomes the last. */
static uint64_t end_of_run(const tfw_span *spans, size_t count, size_t data_len, size_t *i) {
    uint64_t end = spans[*i].offset + spans[*i].length + TFW_FOOTER_SIZE;
    while (*i + 1 < count && spans[*i + 1].offset == end + TFW_HEADER_SIZE &&
           is_framed(&spans[*i + 1], data_len)) {
        end += spans[++*i].length + TFWI_FRAME_SIZE;
    }
    return end;
}

int tfw_tally_spans(tfw_tally *tally, const uint8_t *data, size_t data_len, const tfw_span *spans,
                    size_t count, unsigned flags, tfw_error *error) {
    tfw_tally sum = *tally;
    int status = tfwi_check_flags(flags, TFW_NO_DATA_CRC, error);
    for (size_t i = 0; i < count && status == TFW_OK; i++) {
        if (!is_framed(&spans[i], data_len)) {
            return tfwi_fail_span(error, i, "a record leaves the data");
        }
        const uint64_t begin = spans[i].offset - TFW_HEADER_SIZE;
        const uint64_t end = end_of_run(spans, count, data_len, &i);
        status = add_block(&sum, data + begin, (size_t)(end - begin), flags, error);
    }
    if (status == TFW_OK) {
        *tally = sum;
    }
    return status;
}

void tfw_span_lengths(const tfw_span *spans, size_t count, uint64_t *shortest,
                      uint64_t *longest) {
    uint64_t least = *shortest, most = *longest;
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = spans[i].length;
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    *shortest = least;
    *longest = most;
}

int tfw_hash_spans(uint64_t seed, const uint8_t *data, size_t data_len, const tfw_span *spans,
                   size_t count, uint64_t *out_hashes, tfw_error *error) {
    const tfwi_seed seeds = tfwi_seed_of(seed);
    for (size_t i = 0; i < count; i++) {
        if (!tfwi_span_fits(&spans[i], data_len, 0, 0)) {
            return tfwi_fail_span(error, i, "a span leaves the data");
        }
        out_hashes[i] = tfwi_hash(&seeds, data + spans[i].offset, (size_t)spans[i].length);
    }
    return TFW_OK;
}
