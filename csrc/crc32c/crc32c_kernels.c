/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, each by its header. */
#include "base/common.h"

#ifdef TFWI_X86

#include "crc32c/crc32c_avx512.h"
#include "crc32c/crc32c_kernel_template.h"

#include "crc32c/crc32c_avx2.h"
#include "crc32c/crc32c_kernel_template.h"

#include "crc32c/crc32c_sse42.h"
#include "crc32c/crc32c_kernel_template.h"

#endif

#ifdef TFWI_ARM64

#include "crc32c/crc32c_armv8.h"
#include "crc32c/crc32c_kernel_template.h"

#endif

#include "crc32c/crc32c_portable.h"
#include "crc32c/crc32c_kernel_template.h"
