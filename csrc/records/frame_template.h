/* SPDX-License-Identifier: Apache-2.0 */
/* Template: reading a frame, with the checksums inlined. The header of a CRC-32C kernel is included
 * before it, which defines
 *
 *     KERNEL, TARGET              its name; the function attribute that allows its instructions
 *     crc_word(state, word)       the register after 8 more bytes
 *     crc_bytes(state, p, len)    the register after len more bytes
 */
#define check_record OF_KERNEL(check_record)

/* Checks the record at data, which may be incomplete. TFW_OK: *out_length is its payload's. */
TARGET TFWI_INLINE int check_record(const uint8_t *data, size_t len, uint64_t limit,
                                    unsigned flags, uint64_t *out_length, tfw_error *error) {
    if (TFWI_UNLIKELY(len < TFW_HEADER_SIZE)) {
        return tfwi_stop(error, TFW_NEED_INPUT, TFW_HEADER_SIZE, len);
    }
    const uint64_t length = tfwi_load64(data);
    uint32_t stored = tfwi_load32(data + TFWI_LENGTH_SIZE);
    uint32_t computed = tfwi_crc32c_mask(~crc_word(UINT32_MAX, length));
    if (TFWI_UNLIKELY(stored != computed)) {
        return tfwi_stop(error, TFW_E_LENGTH_CRC, stored, computed);
    }
    if (TFWI_UNLIKELY(length > limit)) {
        return tfwi_stop(error, TFW_E_TOO_LARGE, limit, length);
    }
    if (TFWI_UNLIKELY(length + TFWI_FRAME_SIZE > len)) {
        return tfwi_stop(error, TFW_NEED_INPUT, length + TFWI_FRAME_SIZE, len);
    }
    if ((flags & TFW_NO_DATA_CRC) == 0) {
        const uint8_t *payload = data + TFW_HEADER_SIZE;
        stored = tfwi_load32(payload + length);
        computed = tfwi_crc32c_mask(~crc_bytes(UINT32_MAX, payload, (size_t)length));
        if (TFWI_UNLIKELY(stored != computed)) {
            return tfwi_stop(error, TFW_E_DATA_CRC, stored, computed);
        }
    }
    *out_length = length;
    return TFW_OK;
}
