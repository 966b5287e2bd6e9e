/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file at an offset. Nothing here keeps state, so any number of threads may read one
 * file. */
#include "records/read_at.h"

#include "base/system.h"

#include <errno.h>

int tfw_read_at(int32_t fd, uint8_t *out, size_t len, uint64_t offset, size_t *out_got,
                tfw_error *error) {
    size_t got = 0;
    while (got < len) {
        size_t rest = len - got < TFWI_LARGEST_READ ? len - got : TFWI_LARGEST_READ;
        ptrdiff_t piece = tfwi_system_read(fd, out + got, rest, offset + got);
        if (piece == 0) {
            break;
        }
        if (piece < 0) {
            int code = errno;
            *out_got = 0;
            tfwi_fail(error, TFW_E_IO, "reading failed");
            TFWI_SET(error, os_errno, code);
            TFWI_SET(error, offset, (int64_t)(offset + got));
            return TFW_E_IO;
        }
        got += (size_t)piece;
    }
    *out_got = got;
    return TFW_OK;
}

int tfwi_open_file(const char *path, int *out_fd, tfw_error *error) {
    *out_fd = tfwi_system_open(path);
    if (*out_fd < 0) {
        int code = errno;
        tfwi_fail(error, TFW_E_IO, "opening failed");
        TFWI_SET(error, os_errno, code);
        return TFW_E_IO;
    }
    return TFW_OK;
}

