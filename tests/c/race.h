/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do the same at once, for ThreadSanitizer (make check-threads). */
#ifndef TFWIRE_TESTS_RACE_H
#define TFWIRE_TESTS_RACE_H

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4 };

static atomic_int wrong; /* the counters of check.h are for one thread */

#define EXPECT(condition) ((condition) ? (void)0 : (void)atomic_fetch_add(&wrong, 1))

/* Runs a function in all threads at once, on what they share. */
static void race(void *(*function)(void *), void *shared) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, function, shared));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(0, pthread_join(threads[i], NULL));
    }
    CHECK_EQ(0, atomic_exchange(&wrong, 0));
}

#endif
