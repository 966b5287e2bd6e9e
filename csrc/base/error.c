/* SPDX-License-Identifier: Apache-2.0 */
/* Status names and error objects. */
#include "base/common.h"

const char *tfw_version(void) { return TFW_VERSION_STRING; }

const char *tfw_status_name(int status) {
    switch (status) {
    case TFW_OK: return "TFW_OK";
    case TFW_END: return "TFW_END";
    case TFW_NEED_INPUT: return "TFW_NEED_INPUT";
    case TFW_NEED_SPACE: return "TFW_NEED_SPACE";
    case TFW_E_ARGUMENT: return "TFW_E_ARGUMENT";
    case TFW_E_MEMORY: return "TFW_E_MEMORY";
    case TFW_E_IO: return "TFW_E_IO";
    case TFW_E_UNSUPPORTED: return "TFW_E_UNSUPPORTED";
    case TFW_E_TRUNCATED: return "TFW_E_TRUNCATED";
    case TFW_E_LENGTH_CRC: return "TFW_E_LENGTH_CRC";
    case TFW_E_DATA_CRC: return "TFW_E_DATA_CRC";
    case TFW_E_TOO_LARGE: return "TFW_E_TOO_LARGE";
    case TFW_E_INDEX: return "TFW_E_INDEX";
    case TFW_E_WIRE: return "TFW_E_WIRE";
    case TFW_E_MISSING: return "TFW_E_MISSING";
    case TFW_E_KIND: return "TFW_E_KIND";
    case TFW_E_COUNT: return "TFW_E_COUNT";
    case TFW_E_SCHEMA: return "TFW_E_SCHEMA";
    default: return "TFW_E_UNKNOWN";
    }
}

int tfwi_fail(tfw_error *error, int status, const char *text) {
    if (error != NULL) {
        size_t len = strlen(text);
        if (len >= TFW_ERROR_TEXT_SIZE) {
            len = TFW_ERROR_TEXT_SIZE - 1;
        }
        *error = (tfw_error){.status = status, .os_errno = -1, .record = -1, .offset = -1,
                             .feature = -1, .list = -1, .row = -1, .expected = -1, .found = -1};
        memcpy(error->text, text, len);
    }
    return status;
}
