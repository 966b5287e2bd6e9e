/* What differs between systems: POSIX, and Windows by MinGW. */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L

#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _WIN32

#include <io.h>
#include <windows.h>

#define OPEN_FLAGS (O_RDONLY | O_BINARY | O_NOINHERIT)

static int errno_of(DWORD code) {
    switch (code) {
    case ERROR_INVALID_HANDLE:
        return EBADF;
    case ERROR_ACCESS_DENIED:
        return EACCES;
    case ERROR_NOT_ENOUGH_MEMORY:
        return ENOMEM;
    default:
        return EIO;
    }
}

/* pread, which Windows does not have. ReadFile moves the file's position, which is put back. */
ssize_t tfwi_windows_pread(int fd, void *out, size_t len, off_t offset);

ssize_t tfwi_windows_pread(int fd, void *out, size_t len, off_t offset) {
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)((uint64_t)offset >> 32)};
    LARGE_INTEGER before;
    if (file == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return -1;
    }
    DWORD got = 0, failure = 0;
    BOOL positioned = SetFilePointerEx(file, (LARGE_INTEGER){0}, &before, FILE_CURRENT);
    if (!ReadFile(file, out, len < INT32_MAX ? (DWORD)len : INT32_MAX, &got, &at)) {
        failure = GetLastError();
    }
    if (positioned) {
        (void)SetFilePointerEx(file, before, NULL, FILE_BEGIN);
    }
    if (failure != 0 && failure != ERROR_HANDLE_EOF) {
        errno = errno_of(failure);
        return -1;
    }
    return (ssize_t)got;
}

#define pread tfwi_windows_pread
#define strerror_r(code, out, size) strerror_s(out, size, code)

#else

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC)

#endif

#ifdef TFW_TEST_FAULTS
/* Test builds may replace pread by a source that misbehaves. */
ssize_t (*tfwi_test_pread)(int fd, void *out, size_t len, off_t offset) = pread;
#undef pread
#define pread tfwi_test_pread
#endif

int tfwi_system_open(const char *path) {
    int fd;
    do {
        fd = open(path, OPEN_FLAGS);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

void tfwi_system_close(int fd) {
    if (fd >= 0) {
        (void)close(fd);
    }
}

ptrdiff_t tfwi_system_read(int fd, void *out, size_t len, uint64_t offset) {
    ssize_t got;
    do {
        got = pread(fd, out, len, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

bool tfwi_system_size(int fd, uint64_t *out_size) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    *out_size = (uint64_t)info.st_size;
    return true;
}

void tfwi_system_error_text(int code, char *out, size_t size) {
    if (strerror_r(code, out, size) != 0) {
        out[0] = '\0';
    }
}
