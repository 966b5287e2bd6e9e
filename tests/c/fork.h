/* SPDX-License-Identifier: Apache-2.0 */
/* Children that a test forks, and what they found. */
#ifndef TFWIRE_TESTS_FORK_H
#define TFWIRE_TESTS_FORK_H

#include "check.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#ifdef TFW_TEST_COVERAGE
void __gcov_dump(void); /* gcc's: writes the branches taken, which else come at exit */
#endif

/* Ends a child, whose checks are good or not: by SIGKILL if they are, for valgrind must have no
 * time to miss what a child does not free. */
static inline void end_child(bool is_good) {
#ifdef TFW_TEST_COVERAGE
    __gcov_dump();
#endif
    if (is_good) {
        (void)raise(SIGKILL);
    }
    _exit(1);
}

/* Waits for a child, and checks that its checks were good. */
static inline void check_child(pid_t child) {
    int status = -1;
    CHECK_EQ(child, waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

#endif
