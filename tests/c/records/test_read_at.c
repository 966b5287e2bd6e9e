/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file at an offset. */
#include "records.h"

#include <errno.h>
#ifdef _WIN32
#include <fcntl.h>
#define pipe(ends) _pipe(ends, 4096, _O_BINARY)
#endif

enum { FILE_SIZE = 1000 };

static int numbered_file(void) {
    uint8_t data[FILE_SIZE];
    int fd = unnamed_file();
    for (size_t i = 0; i < FILE_SIZE; i++) {
        data[i] = (uint8_t)(i % 251);
    }
    CHECK_EQ(FILE_SIZE, write(fd, data, FILE_SIZE));
    return fd;
}

static void every_range_is_read_up_to_the_end(void) {
    int fd = numbered_file();
    for (size_t begin = 0; begin < FILE_SIZE + 20; begin += 7) {
        for (size_t len = 0; len < FILE_SIZE + 20; len += 13) {
            size_t rest = begin < FILE_SIZE ? FILE_SIZE - begin : 0;
            size_t expected = len < rest ? len : rest;
            uint8_t *out = malloc(len ? len : 1); /* ASan sees a byte too many */
            size_t got = 9;
            CHECK_EQ(TFW_OK, tfw_read_at(fd, out, len, begin, &got, NULL));
            CHECK_EQ(expected, got);
            for (size_t i = 0; i < got; i++) {
                CHECK_EQ((begin + i) % 251, out[i]);
            }
            free(out);
        }
    }
    close(fd);
}

static void the_position_stays(void) {
    int fd = numbered_file();
    uint8_t out[10];
    size_t got;
    CHECK_EQ(123, lseek(fd, 123, SEEK_SET));
    CHECK_EQ(TFW_OK, tfw_read_at(fd, out, sizeof out, 500, &got, NULL));
    CHECK_EQ(123, lseek(fd, 0, SEEK_CUR));
    CHECK_EQ(TFW_OK, tfw_read_at(fd, out, sizeof out, FILE_SIZE + 5, &got, NULL));
    CHECK_EQ(123, lseek(fd, 0, SEEK_CUR));
    CHECK_EQ(1, write(fd, "x", 1));
    CHECK_EQ(TFW_OK, tfw_read_at(fd, out, 1, 123, &got, NULL));
    CHECK(got == 1 && out[0] == 'x');
    close(fd);
}

static void a_failure_is_reported(void) {
    uint8_t out[1];
    size_t got = 9;
    tfw_error error;
    CHECK_EQ(TFW_E_IO, tfw_read_at(-1, out, 1, 7, &got, &error));
    CHECK(got == 0 && error.offset == 7);
#ifdef __wasi__
    CHECK(error.os_errno == EBADF || error.os_errno == EINVAL); /* by the version of Node.js */
#else
    CHECK_EQ(EBADF, error.os_errno);
#endif
    int fd = numbered_file();
    CHECK_EQ(TFW_E_IO, tfw_read_at(fd, out, 1, UINT64_MAX, &got, NULL));
    CHECK_EQ(0, got);
    close(fd);
}

static void what_cannot_be_read_at_an_offset_is_refused(void) {
#ifndef __wasi__ /* which has no pipes */
    uint8_t out[4];
    size_t got = 9;
    tfw_error error;
    int ends[2];
    CHECK_EQ(0, pipe(ends));
    CHECK_EQ(3, write(ends[1], "abc", 3));
    CHECK_EQ(TFW_E_IO, tfw_read_at(ends[0], out, sizeof out, 0, &got, &error));
    CHECK(got == 0 && error.os_errno == ESPIPE);
    CHECK_EQ(3, read(ends[0], out, sizeof out)); /* nothing was taken from it */
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(TFW_E_IO, tfw_read_at(ends[0], out, sizeof out, 0, &got, &error));
    CHECK_EQ(EBADF, error.os_errno);
#endif
}

int main(void) {
    RUN(every_range_is_read_up_to_the_end);
    RUN(the_position_stays);
    RUN(a_failure_is_reported);
    RUN(what_cannot_be_read_at_an_offset_is_refused);
    return check_report("read_at");
}
