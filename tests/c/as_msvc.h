/* SPDX-License-Identifier: Apache-2.0 */
/* Included before each file by `make check-msvc`: the headers of MinGW, which clang reads in the
 * place of cl, and then nothing of GNU: what MSVC does not have is an error. */
#include <_mingw.h>
#undef __attribute__ /* they define it away */
#undef __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_DEPRECATED

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <x86intrin.h>

#undef INFINITY /* by a GNU builtin; this is how the Windows SDK has it */
#define INFINITY ((float)(1e300 * 1e300))
#undef S_ISREG
#undef __GNUC__
#undef __SIZEOF_INT128__
#undef __clang__
#pragma GCC poison __attribute__ __extension__ __int128 __builtin_expect __builtin_prefetch
#pragma GCC poison __builtin_clzll __builtin_ctzll __builtin_popcountll __builtin_cpu_supports
#pragma GCC poison ssize_t off_t S_ISREG O_CLOEXEC
