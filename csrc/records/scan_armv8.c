/* The scanner with checksums by ARMv8's CRC32. */
#include "base/common.h"

#ifdef TFWI_ARM64

#include "crc32c/crc32c_armv8.h"

#define LENGTH_FIRST false
#include "records/scan_template.h"

const tfwi_scanner tfwi_scan_armv8 = {&tfwi_crc32c_armv8, scan_records, search_header};

#endif
