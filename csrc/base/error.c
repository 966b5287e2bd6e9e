/* Status names, error objects, memory. */
#include "base/common.h"

#include <stdlib.h>

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

#ifdef TFW_TEST_FAULTS
/* Test builds count requests down: the one that finds zero fails, and all after it succeed. */
__attribute__((visibility("default"))) long tfwi_test_fail_allocation = -1;

static bool request_fails(void) {
    return tfwi_test_fail_allocation >= 0 && tfwi_test_fail_allocation-- == 0;
}
#else
static bool request_fails(void) { return false; }
#endif

void *tfwi_realloc(void *memory, size_t size) {
    return request_fails() ? NULL : realloc(memory, size != 0 ? size : 1);
}

void *tfwi_calloc(size_t count, size_t size) {
    return request_fails() ? NULL : calloc(count != 0 ? count : 1, size != 0 ? size : 1);
}

void tfw_free(void *memory) { free(memory); }

int tfwi_grow(void *pointer, size_t count, size_t *capacity, size_t more, size_t size) {
    size_t wanted = count + more > 2 * *capacity ? count + more + 16 : 2 * *capacity;
    size_t bytes;
    if (tfwi_mul_overflows(wanted, size, &bytes)) {
        return TFW_E_MEMORY;
    }
    void *elements;
    memcpy(&elements, pointer, sizeof elements);
    elements = tfwi_realloc(elements, bytes);
    if (elements == NULL) {
        return TFW_E_MEMORY;
    }
    memcpy(pointer, &elements, sizeof elements);
    *capacity = wanted;
    return TFW_OK;
}
