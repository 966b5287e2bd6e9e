/* SPDX-License-Identifier: Apache-2.0 */
/* Why a message cannot be read.
 *
 * Readers of a message take the bytes [p, end), return where they stopped, and return NULL when the
 * bytes are not well-formed, with the place and the reason in the fault.
 */
#ifndef TFWIRE_FAULT_H
#define TFWIRE_FAULT_H

#include "base/common.h"

typedef struct tfwi_fault {
    int status;
    const uint8_t *at; /* TFW_E_WIRE: the byte at which the bad part begins */
    const char *text;
} tfwi_fault;

/* Notes a malformed message; returns NULL, for readers to return. Inline for the readers of fields,
 * which need no frame without a call. */
TFWI_INLINE const uint8_t *tfwi_note_malformed(tfwi_fault *fault, const uint8_t *at,
                                               const char *text) {
    *fault = (tfwi_fault){.status = TFW_E_WIRE, .at = at, .text = text};
    return NULL;
}

/* The same, not inline. */
const uint8_t *tfwi_malformed(tfwi_fault *fault, const uint8_t *at, const char *text);

/* Notes that memory is short; returns false. */
bool tfwi_out_of_memory(tfwi_fault *fault);

#endif /* TFWIRE_FAULT_H */
