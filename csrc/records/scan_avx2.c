/* The scanner with checksums by AVX2 and VPCLMULQDQ. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_avx2.h"

#define LENGTH_FIRST false
#include "records/scan_template.h"

const tfwi_scanner tfwi_scan_avx2 = {&tfwi_crc32c_avx2, scan_records, search_header};

#endif
