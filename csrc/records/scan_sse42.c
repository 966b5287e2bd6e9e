/* The scanner with checksums by SSE4.2. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_sse42.h"

#define LENGTH_FIRST false
#include "records/scan_template.h"

const tfwi_scanner tfwi_scan_sse42 = {&tfwi_crc32c_sse42, scan_records, search_header};

#endif
