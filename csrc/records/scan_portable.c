/* The scanner with checksums by table, for any CPU. */
#include "crc32c/crc32c_portable.h"

#define LENGTH_FIRST true
#include "records/scan_template.h"

const tfwi_scanner tfwi_scan_portable = {&tfwi_crc32c_portable, scan_records, search_header};
