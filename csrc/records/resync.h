/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the next record after damage. */
#ifndef TFWIRE_RESYNC_H
#define TFWIRE_RESYNC_H

#include "base/memory.h"
#include "records/frame.h"

/* Checksums of the searched bytes from base on, a stride apart: with them the payload of any
 * candidate is verified at a cost that does not depend on its length. All zeros at first. */
typedef struct tfwi_resync {
    TFWI_ARRAY(uint32_t) crcs; /* number i: CRC of the i strides from base on */
    size_t base; /* index in the window */
} tfwi_resync;

/* Finds the first record, whole and verified, that begins at data[*at] or later.
 *
 * data[0, end) is the window, available the bytes from data[0] to the end of the input as far as
 * known (UINT64_MAX: not known). *at advances past everything that cannot begin a record.
 * TFW_OK: a record begins at *at. TFW_NEED_INPUT: more bytes are needed to decide about *at.
 * TFW_E_MEMORY: nothing is lost, call again. */
int tfwi_resync_find(tfwi_resync *resync, const uint8_t *data, size_t end, uint64_t available,
                     uint64_t max_record_size, size_t *at);

/* Whether the payload data[begin, end) agrees with the footer after it; TFW_OK or TFW_E_MEMORY.
 * REQUIRES: begin does not lie before that of an earlier call. */
int tfwi_resync_verify(tfwi_resync *resync, const uint8_t *data, size_t begin, size_t end,
                       bool *out_verifies);

/* The bytes of the window have moved or changed. */
void tfwi_resync_moved(tfwi_resync *resync);
void tfwi_resync_free(tfwi_resync *resync);

#endif /* TFWIRE_RESYNC_H */
