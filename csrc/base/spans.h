/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a buffer. */
#ifndef TFWIRE_SPANS_H
#define TFWIRE_SPANS_H

#include "base/common.h"

/* Whether a span lies in a buffer of len bytes, with so many or more of them before and after. */
TFWI_INLINE bool tfwi_span_fits(const tfw_span *span, size_t len, size_t before, size_t after) {
    return span->offset >= before && span->offset <= len && span->length <= len - span->offset &&
           len - span->offset - span->length >= after;
}

/* Reports what is wrong with span i; returns TFW_E_ARGUMENT. */
TFWI_INLINE int tfwi_fail_span(tfw_error *error, size_t i, const char *text) {
    tfwi_fail(error, TFW_E_ARGUMENT, text);
    TFWI_SET(error, record, tfwi_saturated(i));
    return TFW_E_ARGUMENT;
}

#endif /* TFWIRE_SPANS_H */
