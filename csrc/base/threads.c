/* SPDX-License-Identifier: Apache-2.0 */
/* Threads by the system: POSIX, Windows by MinGW or MSVC, and WebAssembly, where none starts. */
#define _POSIX_C_SOURCE 200809L
#ifdef __APPLE__
#define _DARWIN_C_SOURCE /* pthread_cond_timedwait_relative_np */
#endif

#include "base/threads.h"

#include "base/memory.h"

#ifdef __wasi__

#include <time.h>

bool tfwi_mutex_init(tfwi_mutex *mutex) {
    *mutex = (tfwi_mutex){NULL};
    return true;
}

bool tfwi_condition_init(tfwi_condition *condition) {
    *condition = (tfwi_condition){NULL};
    return true;
}

/* Nobody else holds a mutex, and nobody could signal: what waits here would wait for ever, so the
 * callers wait only for threads that have started. */
void tfwi_mutex_destroy(tfwi_mutex *mutex) { (void)mutex; }
void tfwi_condition_destroy(tfwi_condition *condition) { (void)condition; }
void tfwi_mutex_lock(tfwi_mutex *mutex) { (void)mutex; }
void tfwi_mutex_unlock(tfwi_mutex *mutex) { (void)mutex; }
void tfwi_condition_signal(tfwi_condition *condition) { (void)condition; }
void tfwi_condition_broadcast(tfwi_condition *condition) { (void)condition; }

void tfwi_condition_wait(tfwi_condition *condition, tfwi_mutex *mutex) {
    (void)condition;
    (void)mutex;
}

void tfwi_condition_wait_until(tfwi_condition *condition, tfwi_mutex *mutex, uint64_t deadline) {
    (void)deadline;
    tfwi_condition_wait(condition, mutex);
}

bool tfwi_thread_start(tfwi_thread *thread, void (*run)(void *), void *argument) {
    (void)run;
    (void)argument;
    *thread = (tfwi_thread){NULL};
    return false;
}

void tfwi_thread_join(tfwi_thread *thread) { (void)thread; }

uint64_t tfwi_process(void) { return 1; }

#else

/* A function for a new thread, which frees this. */
typedef struct task {
    void (*run)(void *);
    void *argument;
} task;

static task *task_of(void (*run)(void *), void *argument) {
    task *t = tfwi_realloc(NULL, sizeof *t);
    if (t != NULL) {
        *t = (task){run, argument};
    }
    return t;
}

static void run_task(void *argument) {
    const task t = *(task *)argument;
    tfw_free(argument);
    t.run(t.argument);
}

#endif

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <process.h>

_Static_assert(sizeof(SRWLOCK) == sizeof(tfwi_mutex), "a word");
_Static_assert(sizeof(CONDITION_VARIABLE) == sizeof(tfwi_condition), "a word");

static SRWLOCK *lock_of(tfwi_mutex *mutex) { return (SRWLOCK *)mutex; }
static CONDITION_VARIABLE *variable_of(tfwi_condition *c) { return (CONDITION_VARIABLE *)c; }

bool tfwi_mutex_init(tfwi_mutex *mutex) {
    InitializeSRWLock(lock_of(mutex));
    return true;
}

bool tfwi_condition_init(tfwi_condition *condition) {
    InitializeConditionVariable(variable_of(condition));
    return true;
}

void tfwi_mutex_destroy(tfwi_mutex *mutex) { (void)mutex; }
void tfwi_condition_destroy(tfwi_condition *condition) { (void)condition; }

void tfwi_mutex_lock(tfwi_mutex *mutex) { AcquireSRWLockExclusive(lock_of(mutex)); }
void tfwi_mutex_unlock(tfwi_mutex *mutex) { ReleaseSRWLockExclusive(lock_of(mutex)); }

static void wait_for(tfwi_condition *condition, tfwi_mutex *mutex, DWORD ms) {
    (void)SleepConditionVariableSRW(variable_of(condition), lock_of(mutex), ms, 0);
}

void tfwi_condition_wait(tfwi_condition *condition, tfwi_mutex *mutex) {
    wait_for(condition, mutex, INFINITE);
}

void tfwi_condition_wait_until(tfwi_condition *condition, tfwi_mutex *mutex, uint64_t deadline) {
    const uint64_t now = tfwi_clock();
    if (now < deadline) {
        const uint64_t left = deadline - now;
        wait_for(condition, mutex, left < INT32_MAX ? (DWORD)left : INT32_MAX);
    }
}

void tfwi_condition_signal(tfwi_condition *condition) {
    WakeConditionVariable(variable_of(condition));
}

void tfwi_condition_broadcast(tfwi_condition *condition) {
    WakeAllConditionVariable(variable_of(condition));
}

uint64_t tfwi_clock(void) { return GetTickCount64(); }

static unsigned __stdcall run_thread(void *argument) {
    run_task(argument);
    return 0;
}

bool tfwi_thread_start(tfwi_thread *thread, void (*run)(void *), void *argument) {
    task *t = task_of(run, argument);
    thread->of = t == NULL ? NULL : (void *)_beginthreadex(NULL, 0, run_thread, t, 0, NULL);
    if (thread->of == NULL) {
        tfw_free(t);
    }
    return thread->of != NULL;
}

void tfwi_thread_join(tfwi_thread *thread) {
    (void)WaitForSingleObject(thread->of, INFINITE);
    (void)CloseHandle(thread->of);
}

uint64_t tfwi_process(void) { return GetCurrentProcessId(); }

#elif !defined(__wasi__)

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 1 << 20 }; /* some systems give a thread 128 KiB */

bool tfwi_mutex_init(tfwi_mutex *mutex) { return pthread_mutex_init(&mutex->of, NULL) == 0; }

bool tfwi_condition_init(tfwi_condition *condition) {
#ifdef __APPLE__
    return pthread_cond_init(&condition->of, NULL) == 0;
#else
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    const bool done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(&condition->of, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return done;
#endif
}

void tfwi_mutex_destroy(tfwi_mutex *mutex) { (void)pthread_mutex_destroy(&mutex->of); }

void tfwi_condition_destroy(tfwi_condition *condition) {
    (void)pthread_cond_destroy(&condition->of);
}

void tfwi_mutex_lock(tfwi_mutex *mutex) { (void)pthread_mutex_lock(&mutex->of); }
void tfwi_mutex_unlock(tfwi_mutex *mutex) { (void)pthread_mutex_unlock(&mutex->of); }

void tfwi_condition_wait(tfwi_condition *condition, tfwi_mutex *mutex) {
    (void)pthread_cond_wait(&condition->of, &mutex->of);
}

static struct timespec time_of(uint64_t ms) {
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

void tfwi_condition_wait_until(tfwi_condition *condition, tfwi_mutex *mutex, uint64_t deadline) {
#ifdef __APPLE__
    const uint64_t now = tfwi_clock();
    const struct timespec left = time_of(deadline - now);
    if (now < deadline) {
        (void)pthread_cond_timedwait_relative_np(&condition->of, &mutex->of, &left);
    }
#else
    const struct timespec until = time_of(deadline);
    (void)pthread_cond_timedwait(&condition->of, &mutex->of, &until);
#endif
}

void tfwi_condition_signal(tfwi_condition *condition) {
    (void)pthread_cond_signal(&condition->of);
}

void tfwi_condition_broadcast(tfwi_condition *condition) {
    (void)pthread_cond_broadcast(&condition->of);
}

static void *run_thread(void *argument) {
    run_task(argument);
    return NULL;
}

bool tfwi_thread_start(tfwi_thread *thread, void (*run)(void *), void *argument) {
    task *t = task_of(run, argument);
    pthread_attr_t attributes;
    sigset_t all, before;
    if (t == NULL || pthread_attr_init(&attributes) != 0) {
        tfw_free(t);
        return false;
    }
    /* A thread begins with the mask of the one that starts it: signals are for other threads. */
    (void)sigfillset(&all);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&thread->of, &attributes, run_thread, t) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (!started) {
        tfw_free(t);
    }
    return started;
}

void tfwi_thread_join(tfwi_thread *thread) { (void)pthread_join(thread->of, NULL); }

/* The number of this process, once forked children are noticed; else 0. A call of the system for
 * each column that is held and given back took longer than the rest of both. */
static _Atomic uint64_t process;

static void note_process(void) {
    atomic_store_explicit(&process, (uint64_t)getpid(), memory_order_relaxed);
}

static void notice_forks(void) {
    if (pthread_atfork(NULL, NULL, note_process) == 0) {
        note_process();
    }
}

uint64_t tfwi_process(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t number = atomic_load_explicit(&process, memory_order_relaxed);
    if (number == 0) {
        (void)pthread_once(&once, notice_forks);
        number = atomic_load_explicit(&process, memory_order_relaxed);
    }
    return number != 0 ? number : (uint64_t)getpid();
}

#endif

#ifndef _WIN32
uint64_t tfwi_clock(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif

bool tfwi_locks_init(tfwi_mutex *mutex, tfwi_condition *one, tfwi_condition *two) {
    if (!tfwi_mutex_init(mutex)) {
        return false;
    }
    if (tfwi_condition_init(one)) {
        if (tfwi_condition_init(two)) {
            return true;
        }
        tfwi_condition_destroy(one);
    }
    tfwi_mutex_destroy(mutex);
    return false;
}
