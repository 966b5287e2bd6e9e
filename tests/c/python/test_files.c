/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Python leaves for C to close, records by number, and byte strings as records. */
#include "check.h"

#include <errno.h>

static void a_file_is_closed_once(void) {
    int32_t fd = unnamed_file();
    const int number = fd;
    tfw_close_file(&fd);
    CHECK_EQ(-1, fd);
    const int next = unnamed_file(); /* gets the lowest number that is free */
    CHECK_EQ(number, next);
    tfw_close_file(&fd);
    CHECK_EQ(1, write(next, "x", 1)); /* it is still open */
    close(next);
}

static void a_file_is_locked(void) {
    int32_t fd = unnamed_file();
    tfw_error error;
    for (uint32_t flags = 0; flags < 2; flags++) {
        CHECK_EQ(TFW_OK, tfw_lock_file(fd, flags, NULL));
        CHECK_EQ(TFW_OK, tfw_unlock_file(fd, NULL));
    }
    tfw_close_file(&fd);
    CHECK_EQ(TFW_E_IO, tfw_lock_file(-1, 0, &error));
    CHECK_EQ(EBADF, error.os_errno);
    CHECK_EQ(TFW_E_IO, tfw_unlock_file(-1, NULL));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_lock_file(-1, 2, NULL));
}

static void a_record_is_read_and_verified(void) {
    enum { LENGTH = 5, SIZE = TFW_HEADER_SIZE + LENGTH + TFW_FOOTER_SIZE };
    const uint8_t payload[LENGTH] = "hello";
    uint8_t file[3 + SIZE] = "abc", out[SIZE + 1];
    const tfw_span span = {0, LENGTH};
    size_t len;
    CHECK_EQ(TFW_OK, tfw_pack(payload, LENGTH, &span, 1, file + 3, SIZE, &len, NULL));
    for (int byte = -1; byte < SIZE; byte++) { /* none of them changed, then each */
        int32_t fd = unnamed_file();
        file[3 + (byte < 0 ? 0 : byte)] ^= byte < 0 ? 0 : 1;
        CHECK_EQ(sizeof file, write(fd, file, sizeof file));
        file[3 + (byte < 0 ? 0 : byte)] ^= byte < 0 ? 0 : 1;
        const int status = tfw_read_record(fd, 3, SIZE, out);
        CHECK_EQ(byte < 0                  ? TFW_OK
                 : byte < TFW_HEADER_SIZE  ? TFW_E_LENGTH_CRC
                                           : TFW_E_DATA_CRC,
                 status);
        CHECK(byte >= 0 || memcmp(out + TFW_HEADER_SIZE, payload, LENGTH) == 0);
        CHECK_EQ(TFW_E_TRUNCATED, tfw_read_record(fd, 4, SIZE, out));
        CHECK_EQ(TFW_E_ARGUMENT, tfw_read_record(fd, 3, TFW_HEADER_SIZE, out));
        CHECK(tfw_read_record(fd, 3, SIZE - 1, out) != TFW_OK);
        tfw_close_file(&fd);
    }
    CHECK_EQ(TFW_E_IO, tfw_read_record(-1, 3, SIZE, out));
}

static void strings_are_packed_as_many_as_fit(void) {
    const tfw_span spans[] = {{0, 3}, {3, 0}};
    const char *strings = "abc";
    const tfw_span addresses[] = {{(uintptr_t)strings, 3}, {(uintptr_t)strings + 3, 0}};
    uint8_t expected[35], out[35];
    size_t done = 9, len = 9;
    CHECK_EQ(TFW_OK, tfw_pack((const uint8_t *)strings, 3, spans, 2, expected, 35, &len, NULL));
    for (size_t capacity = 0; capacity <= sizeof out; capacity++) {
        int status = tfw_pack_addresses(addresses, 2, out, capacity, &done, &len);
        CHECK_EQ(capacity < 35 ? TFW_NEED_SPACE : TFW_OK, status);
        CHECK_EQ(capacity < 19 ? 0 : capacity < 35 ? 1 : 2, done);
        CHECK_EQ(capacity < 19 ? 0 : capacity < 35 ? 19 : 35, len);
        CHECK(memcmp(expected, out, len) == 0);
    }
}

static void headers_with_reserved_flags_are_found(void) {
    uint8_t data[64] = {0};
    for (size_t len = 0; len <= sizeof data; len++) {
        memset(data, 0x1f, sizeof data);
        CHECK_EQ(len, tfw_find_reserved_flags(data, len));
        for (size_t at = 0; at + 4 <= sizeof data; at++) {
            for (unsigned flags = 0; flags < 256; flags += 31) {
                const uint8_t header[] = {0x1f, 0x8b, 8, (uint8_t)flags};
                memset(data, at % 2 != 0 ? 0x1f : 0, sizeof data);
                memcpy(data + at, header, sizeof header);
                CHECK_EQ(at + 4 <= len && flags >= 0x20 ? at : len,
                         tfw_find_reserved_flags(data, len));
                data[at + 1 + flags % 2] ^= 1;
                CHECK_EQ(len, tfw_find_reserved_flags(data, len));
            }
        }
    }
    CHECK_EQ(0, tfw_find_reserved_flags(NULL, 0));
}

int main(void) {
    RUN(a_file_is_closed_once);
    RUN(a_file_is_locked);
    RUN(a_record_is_read_and_verified);
    RUN(strings_are_packed_as_many_as_fit);
    RUN(headers_with_reserved_flags_are_found);
    return check_report("files");
}
