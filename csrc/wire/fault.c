/* SPDX-License-Identifier: Apache-2.0 */
/* Why a message cannot be read. */
#include "wire/fault.h"

const uint8_t *tfwi_malformed(tfwi_fault *fault, const uint8_t *at, const char *text) {
    return tfwi_note_malformed(fault, at, text);
}

bool tfwi_out_of_memory(tfwi_fault *fault) {
    *fault = (tfwi_fault){.status = TFW_E_MEMORY, .text = "out of memory"};
    return false;
}
