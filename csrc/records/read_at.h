/* Files that are read at an offset, by tfw_read_at. */
#ifndef TFWIRE_READ_AT_H
#define TFWIRE_READ_AT_H

#include "base/common.h"

/* Opens a file for reading, for tfwi_system_close. */
int tfwi_open_file(const char *path, int *out_fd, tfw_error *error);

#endif /* TFWIRE_READ_AT_H */
