/* The scanner with checksums by AVX-512. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_avx512.h"

#define LENGTH_FIRST false
#include "records/scan_template.h"

const tfwi_scanner tfwi_scan_avx512 = {&tfwi_crc32c_avx512, scan_records, search_header};

#endif
