/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between systems: POSIX, and Windows by MinGW or MSVC (without POSIX names). */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE /* flock */

#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#ifdef _WIN32

#include <io.h>
#include <windows.h>

#define OPEN_FLAGS (_O_RDONLY | _O_BINARY | _O_NOINHERIT)
#define OFFSET int64_t
#define FILE_INFO struct _stat64
#define IS_REGULAR(mode) (((mode) & _S_IFMT) == _S_IFREG)

static int errno_of(DWORD code) {
    switch (code) {
    case ERROR_INVALID_HANDLE:
        return EBADF;
    case ERROR_ACCESS_DENIED:
        return EACCES;
    case ERROR_NOT_ENOUGH_MEMORY:
        return ENOMEM;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING:
        return EAGAIN;
    case ERROR_INVALID_FUNCTION:
    case ERROR_NOT_SUPPORTED:
        return ENOSYS;
    default:
        return EIO;
    }
}

/* pread, which Windows does not have. ReadFile moves the file's position, which is put back. */
ptrdiff_t tfwi_windows_pread(int fd, void *out, size_t len, int64_t offset);

ptrdiff_t tfwi_windows_pread(int fd, void *out, size_t len, int64_t offset) {
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)((uint64_t)offset >> 32)};
    LARGE_INTEGER before;
    if (file == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return -1;
    }
    if (GetFileType(file) == FILE_TYPE_PIPE) { /* which would be read, wherever it is */
        errno = ESPIPE;
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
    return (ptrdiff_t)got;
}

#define LOCK_SH 0
#define LOCK_EX LOCKFILE_EXCLUSIVE_LOCK
#define LOCK_NB LOCKFILE_FAIL_IMMEDIATELY
#define LOCK_UN UINT32_MAX

/* flock. What locks a byte here keeps others from reading it: one that no file has is locked. */
static int lock_byte(int fd, DWORD operation) {
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED at = {.Offset = UINT32_MAX, .OffsetHigh = 0x7ff};
    if (file == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return -1;
    }
    BOOL done = operation == LOCK_UN ? UnlockFileEx(file, 0, 1, 0, &at)
                                     : LockFileEx(file, operation, 0, 1, 0, &at);
    errno = done ? 0 : errno_of(GetLastError());
    return done ? 0 : -1;
}

#define flock lock_byte
#define open _open
#define close _close
#define fstat _fstat64
#define pread tfwi_windows_pread
#define strerror_r(code, out, size) strerror_s(out, size, code)

#else

#include <unistd.h>

#ifdef __wasi__
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };
#define flock(fd, operation) ((void)(fd), (void)(operation), errno = ENOSYS, -1)
#else
#include <sys/file.h>
#endif

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC)
#define OFFSET off_t
#define FILE_INFO struct stat
#define IS_REGULAR(mode) S_ISREG(mode)

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
    ptrdiff_t got;
    do {
        got = pread(fd, out, len, (OFFSET)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

bool tfwi_system_size(int fd, uint64_t *out_size) {
    FILE_INFO info;
    if (fd < 0 || fstat(fd, &info) != 0 || !IS_REGULAR(info.st_mode)) {
        return false;
    }
    *out_size = (uint64_t)info.st_size;
    return true;
}

bool tfwi_system_lock(int fd, bool shared) {
    return flock(fd, LOCK_NB | (shared ? LOCK_SH : LOCK_EX)) == 0;
}

bool tfwi_system_unlock(int fd) {
    return flock(fd, LOCK_UN) == 0;
}

void tfwi_system_error_text(int code, char *out, size_t size) {
    if (strerror_r(code, out, size) != 0) {
        out[0] = '\0';
    }
}
