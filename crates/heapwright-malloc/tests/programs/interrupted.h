/*
 * Each thread has a timer of its own, which interrupts it by SIGUSR1. So a handler runs in the
 * midst of any code.
 */
#ifndef INTERRUPTED_H
#define INTERRUPTED_H

#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* From now on the calling thread is interrupted every `every_ns` nanoseconds. */
static timer_t interrupt_me(long every_ns)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec every = { { 0, every_ns }, { 0, every_ns } };
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    return timer;
}

/* Ends the interruptions. Afterwards the handler does not run in this thread. */
static void leave_me_alone(timer_t timer)
{
    CHECK(timer_delete(timer) == 0);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
}

#endif
