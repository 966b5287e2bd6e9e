/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Python opens: records by number, byte strings as records, locks, closing. */
#include "tfwire_python.h"

#include "base/system.h"
#include "records/frame.h"

#include <errno.h>

void tfw_close_file(int32_t *fd) {
    tfwi_system_close(*fd);
    *fd = -1;
}

static int lock_status(bool done, tfw_error *error) {
    const int code = errno;
    if (!done) {
        tfwi_fail(error, TFW_E_IO, "locking failed");
        TFWI_SET(error, os_errno, code);
    }
    return done ? TFW_OK : TFW_E_IO;
}

int tfw_lock_file(int32_t fd, uint32_t flags, tfw_error *error) {
    const int status = tfwi_check_flags(flags, TFW_LOCK_SHARED, error);
    return status != TFW_OK ? status : lock_status(tfwi_system_lock(fd, flags != 0), error);
}

int tfw_unlock_file(int32_t fd, tfw_error *error) {
    return lock_status(tfwi_system_unlock(fd), error);
}

size_t tfw_find_reserved_flags(const uint8_t *data, size_t len) {
    const uint8_t *const end = data + len;
    const uint8_t *p = data;
    while (end - p > 3 && (p = memchr(p, 0x1f, (size_t)(end - p) - 3)) != NULL) {
        if (p[1] == 0x8b && p[2] == 8 && (p[3] & 0xe0) != 0) {
            return (size_t)(p - data);
        }
        p++;
    }
    return len;
}

int tfw_read_record(int32_t fd, uint64_t offset, size_t size, uint8_t *out) {
    size_t got = 0;
    if (size < TFW_HEADER_SIZE + TFW_FOOTER_SIZE) {
        return TFW_E_ARGUMENT;
    }
    int status = tfw_read_at(fd, out, size, offset, &got, NULL);
    if (status != TFW_OK || got < size) {
        return status != TFW_OK ? status : TFW_E_TRUNCATED;
    }
    const uint8_t *footer = out + size - TFW_FOOTER_SIZE;
    const uint64_t length = size - TFW_HEADER_SIZE - TFW_FOOTER_SIZE;
    return tfw_verify_record(out, out + TFW_HEADER_SIZE, length, footer, NULL);
}

int tfw_pack_addresses(const tfw_span *spans, size_t count, uint8_t *out, size_t capacity,
                       size_t *out_done, size_t *out_len) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    size_t at = 0, i = 0;
    for (; i < count; i++) {
        const size_t length = (size_t)spans[i].length, room = capacity - at;
        if (TFWI_UNLIKELY(room < TFWI_FRAME_SIZE || room - TFWI_FRAME_SIZE < length)) {
            break;
        }
        uint8_t *payload = out + at + TFW_HEADER_SIZE;
        const uint8_t *data = (const uint8_t *)(uintptr_t)spans[i].offset;
        memcpy(payload, data, length);
        tfwi_put_frame(kernel, payload, data, length);
        at += length + TFWI_FRAME_SIZE;
    }
    *out_done = i;
    *out_len = at;
    return i == count ? TFW_OK : TFW_NEED_SPACE;
}
