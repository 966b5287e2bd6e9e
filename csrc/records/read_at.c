/* Reading a file at an offset. Nothing here keeps state, so any number of threads may read one
 * file. */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L

#include "records/read_at.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { LARGEST_READ = 1 << 30 }; /* some systems refuse to read more than INT_MAX bytes */

#ifdef TFW_TEST_FAULTS
extern ssize_t (*tfwi_test_pread)(int fd, void *out, size_t len, off_t offset);
#define pread tfwi_test_pread
#endif

int tfwi_read_at(int fd, uint8_t *out, size_t len, uint64_t offset, size_t *out_got,
                 tfw_error *error) {
    size_t got = 0;
    while (got < len) {
        size_t rest = len - got < LARGEST_READ ? len - got : LARGEST_READ;
        ssize_t piece = pread(fd, out + got, rest, (off_t)(offset + got));
        if (piece == 0) {
            break;
        }
        if (piece < 0 && errno != EINTR) {
            int code = errno;
            tfwi_fail(error, TFW_E_IO, "reading failed");
            TFWI_SET(error, os_errno, code);
            TFWI_SET(error, offset, (int64_t)(offset + got));
            return TFW_E_IO;
        }
        got += piece > 0 ? (size_t)piece : 0;
    }
    *out_got = got;
    return TFW_OK;
}

int tfwi_open_file(const char *path, int *out_fd, tfw_error *error) {
    do {
        *out_fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (*out_fd < 0 && errno == EINTR);
    if (*out_fd < 0) {
        int code = errno;
        tfwi_fail(error, TFW_E_IO, "opening failed");
        TFWI_SET(error, os_errno, code);
        return TFW_E_IO;
    }
    return TFW_OK;
}

void tfwi_close_file(int fd) {
    if (fd >= 0) {
        (void)close(fd);
    }
}
