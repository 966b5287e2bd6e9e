/* Reading a file at an offset. */
#ifndef TFWIRE_READ_AT_H
#define TFWIRE_READ_AT_H

#include "base/common.h"

/* Reads len bytes, *out_got of them: fewer only where the file ends. TFW_E_IO. */
int tfwi_read_at(int fd, uint8_t *out, size_t len, uint64_t offset, size_t *out_got,
                 tfw_error *error);

/* Opens a file for reading, for tfwi_system_close. */
int tfwi_open_file(const char *path, int *out_fd, tfw_error *error);

#endif /* TFWIRE_READ_AT_H */
