/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the core, and what they wait for. */
#include "check.h"

#include "base/threads.h"

#ifndef _WIN32
#include "fork.h"
#endif

enum { THREADS = 5, ROUNDS = 2000 };

/* Threads take turns: number i adds 1 whenever the count is i modulo their number. */
typedef struct shared {
    tfwi_mutex mutex;
    tfwi_condition turn;
    size_t count;
} shared;

typedef struct player {
    shared *shared;
    size_t number;
    bool with_deadline;
} player;

static void play(void *argument) {
    const player *me = argument;
    shared *s = me->shared;
    tfwi_mutex_lock(&s->mutex);
    for (size_t i = 0; i < ROUNDS; i++) {
        while (s->count % THREADS != me->number) {
            if (me->with_deadline) {
                tfwi_condition_wait_until(&s->turn, &s->mutex, tfwi_clock() + 10000);
            } else {
                tfwi_condition_wait(&s->turn, &s->mutex);
            }
        }
        s->count++;
        tfwi_condition_broadcast(&s->turn);
    }
    tfwi_mutex_unlock(&s->mutex);
}

static void threads_take_turns(void) {
    shared s = {.count = 0};
    tfwi_thread threads[THREADS];
    player players[THREADS];
    CHECK(tfwi_mutex_init(&s.mutex) && tfwi_condition_init(&s.turn));
    for (size_t i = 0; i < THREADS; i++) {
        players[i] = (player){&s, i, i % 2 != 0};
        CHECK(tfwi_thread_start(&threads[i], play, &players[i]));
    }
    for (size_t i = 0; i < THREADS; i++) {
        tfwi_thread_join(&threads[i]);
    }
    CHECK_EQ(THREADS * ROUNDS, s.count);
    tfwi_condition_destroy(&s.turn);
    tfwi_mutex_destroy(&s.mutex);
}

static void a_wait_ends_with_its_deadline(void) {
    shared s = {.count = 0};
    CHECK(tfwi_mutex_init(&s.mutex) && tfwi_condition_init(&s.turn));
    tfwi_mutex_lock(&s.mutex);
    const uint64_t deadline = tfwi_clock() + 30;
    while (tfwi_clock() < deadline) {
        tfwi_condition_wait_until(&s.turn, &s.mutex, deadline);
    }
    tfwi_condition_wait_until(&s.turn, &s.mutex, deadline); /* one that is over */
    tfwi_condition_signal(&s.turn); /* for nobody */
    tfwi_mutex_unlock(&s.mutex);
    tfwi_condition_destroy(&s.turn);
    tfwi_mutex_destroy(&s.mutex);
}

static void without_memory_no_thread_starts(void) {
    tfwi_thread thread;
    tfwi_test_fail_allocation = 0;
    CHECK(!tfwi_thread_start(&thread, play, NULL));
    tfwi_test_fail_allocation = -1;
}

#ifndef _WIN32
static void note_signals(void *argument) {
    sigset_t *blocked = argument;
    CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, NULL, blocked));
}

static void signals_are_for_other_threads(void) {
    tfwi_thread thread;
    sigset_t inside, before, after;
    CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, NULL, &before));
    CHECK(tfwi_thread_start(&thread, note_signals, &inside));
    tfwi_thread_join(&thread);
    CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, NULL, &after));
    CHECK(sigismember(&inside, SIGINT) == 1 && sigismember(&inside, SIGCHLD) == 1);
    CHECK(sigismember(&before, SIGINT) == 0 && sigismember(&after, SIGINT) == 0);
}

static void a_child_has_another_number(void) {
    const uint64_t mine = tfwi_process();
    CHECK(mine != 0 && mine == tfwi_process());
    const pid_t child = fork();
    if (child == 0) {
        end_child(tfwi_process() != mine);
    }
    check_child(child);
}
#endif

int main(void) {
    RUN(threads_take_turns);
    RUN(a_wait_ends_with_its_deadline);
    RUN(without_memory_no_thread_starts);
#ifndef _WIN32
    RUN(signals_are_for_other_threads);
    RUN(a_child_has_another_number);
#endif
    return check_report("native threads");
}
