// The calls of the allocator, and the time inside of them.
//
//   CLOCK   none   no call is timed
//           all    every call, by the processor's counter before and after it, as in
//                  the review of scudo's registries. The time includes waits for a lock,
//                  and other threads that ran meanwhile on this processor.
//           N      each N-th call of a thread. Other threads' time is subtracted, so
//                  that the mean, times the calls, is processor time.
//
// Removal of other threads' time: the thread's clock is read at the call before the timed call. So
// this system call is not next to the timed call. If the timed call took longer than a switch of
// threads, the clock is read again. The difference of the two readings is the most that the call
// can have taken.
//
// The counter costs time itself. Before the work, the difference of two adjacent readings is
// measured. The median is subtracted from each timed call, and printed.

#ifndef INSIDE_H
#define INSIDE_H

#include "base.h"
#include <malloc.h>
#include <sys/resource.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t ticks(void) { return __rdtsc(); }
#elif defined(__aarch64__)
static inline uint64_t ticks(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}
#else
static inline uint64_t ticks(void) { return now_ns(); }
#endif

// 0: none; 1: all; else one call in this many.
static unsigned clock_every;
static double ticks_a_ns;
// The time of an empty timed call.
static uint64_t clock_ticks;
// After a longer time, the thread may have been switched away.
static uint64_t long_ticks;

struct spent {
    uint64_t calls, timed, ticks;
};

// The data of one thread; added to the sum at its end.
static _Thread_local struct spent spent;
static _Thread_local unsigned until_timed;
static _Thread_local uint64_t cpu_before;
static struct spent spent_sum;

static inline uint64_t clock_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Processor time of the process so far.
static inline uint64_t cpu_ns(void) { return clock_of(CLOCK_PROCESS_CPUTIME_ID); }


static inline void clock_prepare(const char *word) {
    enum { TRIES = 1001 };
    static uint64_t tries[TRIES];
    if (strcmp(word, "none") == 0)
        return;
    clock_every = strcmp(word, "all") == 0 ? 1 : (unsigned)number(word, "CLOCK (none, all, or each N-th call)", 2, 1000000);
    uint64_t from_ns = now_ns(), from = ticks(), ns;
    while ((ns = now_ns()) - from_ns < 5000000) {
    }
    ticks_a_ns = (double)(ticks() - from) / (double)(ns - from_ns);
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = ticks();
        __asm__ volatile("" ::: "memory");
        tries[i] = ticks() - before;
    }
    // Sorts by hand, because qsort may allocate.
    for (int i = 1; i < TRIES; i++) {
        uint64_t one = tries[i];
        int at = i;
        for (; at > 0 && tries[at - 1] > one; at--)
            tries[at] = tries[at - 1];
        tries[at] = one;
    }
    clock_ticks = tries[TRIES / 2];
    long_ticks = (uint64_t)(5000 * ticks_a_ns);
}

static inline uint64_t enter_sampled(void) {
    if (until_timed > 1) {
        if (--until_timed == 1)
            cpu_before = clock_of(CLOCK_THREAD_CPUTIME_ID);
        return 0;
    }
    if (until_timed == 0) {
        // The first timed call of a thread is somewhere in its first round.
        uint64_t state = stream((uintptr_t)&spent >> 12);
        until_timed = 2 + (unsigned)(next_random(&state) % clock_every);
        return 0;
    }
    until_timed = clock_every;
    return ticks();
}

static inline uint64_t enter(void) {
    spent.calls++;
    if (__builtin_expect(clock_every == 0, 1))
        return 0;
    return clock_every == 1 ? ticks() : enter_sampled();
}

static inline void leave(uint64_t from) {
    if (__builtin_expect(from == 0, 1))
        return;
    uint64_t took = ticks() - from;
    if (clock_every > 1 && took > long_ticks) {
        uint64_t at_most = (uint64_t)((double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before) * ticks_a_ns);
        took = took < at_most ? took : at_most;
    }
    spent.timed++;
    spent.ticks += took > clock_ticks ? took - clock_ticks : 0;
}

// Called at the end of a thread, and of the main thread before the result.
static inline void spent_flush(void) {
    __atomic_fetch_add(&spent_sum.calls, spent.calls, __ATOMIC_RELAXED);
    __atomic_fetch_add(&spent_sum.timed, spent.timed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&spent_sum.ticks, spent.ticks, __ATOMIC_RELAXED);
    spent = (struct spent){ 0 };
}

static inline void *must(void *p) {
    if (p == NULL)
        die(2, "out of memory");
    return p;
}

static inline void *timed_malloc(size_t size) {
    uint64_t from = enter();
    void *p = malloc(size);
    leave(from);
    return must(p);
}

static inline void *timed_calloc(size_t size) {
    uint64_t from = enter();
    void *p = calloc(size, 1);
    leave(from);
    return must(p);
}

static inline void *timed_memalign(size_t alignment, size_t size) {
    uint64_t from = enter();
    void *p = memalign(alignment, size);
    leave(from);
    return must(p);
}

static inline void *timed_realloc(void *old, size_t size) {
    uint64_t from = enter();
    void *p = realloc(old, size);
    leave(from);
    return must(p);
}

static inline void timed_free(void *p) {
    uint64_t from = enter();
    free(p);
    leave(from);
}

#endif
