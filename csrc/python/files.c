/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Python opens: records by number, and descriptors that C closes. */
#include "tfwire_python.h"

#include "base/system.h"

void tfw_close_file(int32_t *fd) {
    tfwi_system_close(*fd);
    *fd = -1;
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
