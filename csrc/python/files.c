/* Files that Python opens, and leaves for C to close. */
#include "tfwire_python.h"

#include "base/system.h"

void tfw_close_file(int32_t *fd) {
    tfwi_system_close(*fd);
    *fd = -1;
}
