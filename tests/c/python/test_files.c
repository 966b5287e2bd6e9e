/* Files that Python leaves for C to close. */
#include "check.h"

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

int main(void) {
    RUN(a_file_is_closed_once);
    return check_report("files");
}
