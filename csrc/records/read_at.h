/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read at an offset, by tfw_read_at. */
#ifndef TFWIRE_READ_AT_H
#define TFWIRE_READ_AT_H

#include "base/common.h"

enum { TFWI_LARGEST_READ = 1 << 30 }; /* some systems refuse to read more than INT_MAX bytes */

/* Opens a file for reading, for tfwi_system_close. */
int tfwi_open_file(const char *path, int *out_fd, tfw_error *error);

#endif /* TFWIRE_READ_AT_H */
