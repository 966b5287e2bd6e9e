/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, and what they wait for: POSIX, Windows, and WebAssembly, which has none. */
#ifndef TFWIRE_THREADS_H
#define TFWIRE_THREADS_H

#include "base/common.h"

#if defined(_WIN32) || defined(__wasi__)
/* SRWLOCK, CONDITION_VARIABLE and HANDLE, without the names of windows.h: each is a word. */
typedef struct tfwi_mutex {
    void *of;
} tfwi_mutex;
typedef struct tfwi_condition {
    void *of;
} tfwi_condition;
typedef struct tfwi_thread {
    void *of;
} tfwi_thread;
#else
#include <pthread.h>
typedef struct tfwi_mutex {
    pthread_mutex_t of;
} tfwi_mutex;
typedef struct tfwi_condition {
    pthread_cond_t of;
} tfwi_condition;
typedef struct tfwi_thread {
    pthread_t of;
} tfwi_thread;
#endif

/* false: the system has no memory for one. Neither moves until it is destroyed. */
bool tfwi_mutex_init(tfwi_mutex *mutex);
bool tfwi_condition_init(tfwi_condition *condition);
bool tfwi_locks_init(tfwi_mutex *mutex, tfwi_condition *one, tfwi_condition *two); /* all or none */
void tfwi_mutex_destroy(tfwi_mutex *mutex);
void tfwi_condition_destroy(tfwi_condition *condition);

void tfwi_mutex_lock(tfwi_mutex *mutex);
void tfwi_mutex_unlock(tfwi_mutex *mutex);

/* Both also return without a signal, now and then. REQUIRES: the caller has locked the mutex. */
void tfwi_condition_wait(tfwi_condition *condition, tfwi_mutex *mutex);
void tfwi_condition_wait_until(tfwi_condition *condition, tfwi_mutex *mutex, uint64_t deadline);

void tfwi_condition_signal(tfwi_condition *condition);
void tfwi_condition_broadcast(tfwi_condition *condition);

/* Milliseconds of a clock that nobody sets; deadlines are times of it. */
uint64_t tfwi_clock(void);

/* Runs a function in a thread that takes no signals; false: the system has no more threads. Every
 * thread that was started is to be joined. */
bool tfwi_thread_start(tfwi_thread *thread, void (*run)(void *), void *argument);
void tfwi_thread_join(tfwi_thread *thread);

/* The number of this process: a forked child has another. */
uint64_t tfwi_process(void);

#endif /* TFWIRE_THREADS_H */
