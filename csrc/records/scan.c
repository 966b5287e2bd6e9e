/* SPDX-License-Identifier: Apache-2.0 */
/* Finding records in memory. Nothing here keeps state. */
#include "records/scan.h"

#include "records/describe.h"

/* ---- A scanner for each kernel of the checksum ---------------------------------------------- */

#define LENGTH_FIRST false

#ifdef TFWI_X86

#include "crc32c/crc32c_avx512.h"
#include "records/scan_template.h"

#include "crc32c/crc32c_avx2.h"
#include "records/scan_template.h"

#include "crc32c/crc32c_sse42.h"
#include "records/scan_template.h"

#endif

#ifdef TFWI_ARM64

#include "crc32c/crc32c_armv8.h"
#include "records/scan_template.h"

#endif

#undef LENGTH_FIRST
#define LENGTH_FIRST true

#include "crc32c/crc32c_portable.h"
#include "records/scan_template.h"

static const tfwi_scanner *const scanners[] = {
#ifdef TFWI_X86
    &scanner_avx512,
    &scanner_avx2,
    &scanner_sse42,
#endif
#ifdef TFWI_ARM64
    &scanner_armv8,
#endif
    &scanner_portable,
};

const tfwi_scanner *tfwi_scanner_current(void) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    size_t i = 0;
    while (scanners[i]->kernel != kernel) {
        i++; /* every kernel has one */
    }
    return scanners[i];
}

/* ---- Scanning ------------------------------------------------------------------------------- */

int tfwi_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
              tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
              tfw_error *error) {
    return tfwi_scanner_current()->scan(data, len, tfwi_length_limit(max_record_size), flags,
                                        out_spans, span_capacity, out_count, out_consumed, error);
}

int tfw_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
             tfw_span *out_spans, size_t span_capacity, size_t *out_count, size_t *out_consumed,
             tfw_error *error) {
    tfw_error found;
    *out_count = 0;
    *out_consumed = 0;
    int status = tfwi_check_flags(flags, TFW_NO_DATA_CRC, error);
    if (status != TFW_OK) {
        return status;
    }
    status = tfwi_scan(data, len, max_record_size, flags, out_spans, span_capacity, out_count,
                       out_consumed, &found);
    return status == TFW_OK ? TFW_OK
                            : tfwi_report_damage(error, found, data + *out_consumed, *out_count,
                                                 *out_consumed);
}
