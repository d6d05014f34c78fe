/*
 *   caches_hand_over THREADS [shares]
 *
 * Threads in a ring hand blocks to the next thread, beside own blocks that stay. They hand over so
 * many blocks that with cache=auto each thread gives its cache up. One more thread hands no block
 * over, and keeps its cache. It gets slabs of all other threads, and they get its slabs. Every
 * block keeps its stamp, whichever thread frees it, and whatever became of its cache. Children of
 * forks find the stamps, too. With `shares` the threads must share caches at the end.
 */
#include "heapwright.h"
#include "stamped.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST = 16, STAY = 3000, RING = 512, SECONDS_AT_MOST = 30, ENOUGH = 400000 };

#pragma weak hw_get_stats

static struct lane {
    _Atomic(void *) ring[RING];
    void *stay[STAY];
} lanes[MOST];
static size_t threads, enough = ENOUGH;
static pthread_barrier_t all;

/* A child frees the kept blocks of a thread that it does not have, and allocates. */
static void fork_once(size_t whose)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint64_t state = whose + 1;
        for (size_t i = 0; i < STAY; i += 7)
            give_back(lanes[whose].stay[i], whose);
        for (size_t i = 0; i < 1000; i++)
            give_back(stamped(some_size(&state), 99), 99);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *work(void *argument)
{
    size_t mine = (size_t)(uintptr_t)argument, next = (mine + 1) % threads;
    uint64_t state = mine * 7919 + 3;
    for (size_t i = 0; i < STAY; i++)
        lanes[mine].stay[i] = stamped(some_size(&state), mine);
    pthread_barrier_wait(&all);
    time_t end = time(NULL) + SECONDS_AT_MOST;
    for (size_t i = 0; i < enough && (i % 1024 || time(NULL) < end); i++) {
        void *block = stamped(some_size(&state), 77);
        void *old = atomic_exchange(&lanes[next].ring[i % RING], block);
        if (old != NULL)
            give_back(old, 77);
        old = atomic_exchange(&lanes[mine].ring[next_random(&state) % RING], NULL);
        if (old != NULL)
            give_back(old, 77);
        if (mine == 0 && i % (ENOUGH / 8) == ENOUGH / 16) {
            /* The next thread's kept blocks are freed only after the last fork. */
            fork_once(next);
        }
        if (i % 64 == 0) {
            size_t at = next_random(&state) % STAY;
            if (mine != 1 % threads) {
                give_back(lanes[mine].stay[at], mine);
                lanes[mine].stay[at] = stamped(some_size(&state), mine);
            }
        }
    }
    pthread_barrier_wait(&all);
    for (size_t i = 0; i < STAY; i++)
        give_back(lanes[next].stay[i], next);
    for (size_t i = 0; i < RING; i++) {
        void *old = atomic_exchange(&lanes[mine].ring[i], NULL);
        if (old != NULL)
            give_back(old, 77);
    }
    return NULL;
}

/* Fills the table and empties it, block by block in random order, while the other threads work. */
static atomic_bool is_over;

static void *keep_to_oneself(void *argument)
{
    enum { OWN = 20000, NUMBER = 55 };
    static void *own[OWN];
    uint64_t state = 31;
    for (int round = 0; !atomic_load(&is_over); round++) {
        size_t most = OWN / (round % 4 * 4 + 1);
        for (size_t i = 0; i < most; i++)
            if (own[i] == NULL)
                own[i] = stamped(some_size(&state) % 600, NUMBER);
        for (size_t i = 0; i < OWN; i++) {
            size_t at = next_random(&state) % OWN;
            if (own[at] != NULL)
                give_back(own[at], NUMBER);
            own[at] = NULL;
        }
    }
    for (size_t i = 0; i < OWN; i++)
        if (own[i] != NULL)
            give_back(own[i], NUMBER);
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    threads = strtoul(argv[1], NULL, 10);
    /* A thread judges its calls by some ticks of the clock, and may have few ticks in a second. */
    if (argc > 2)
        enough = 8 * ENOUGH;
    CHECK(threads >= 2 && threads <= MOST);
    CHECK(pthread_barrier_init(&all, NULL, (unsigned)threads) == 0);
    pthread_t others[MOST], alone;
    CHECK(pthread_create(&alone, NULL, keep_to_oneself, NULL) == 0);
    for (size_t i = 1; i < threads; i++)
        CHECK(pthread_create(&others[i], NULL, work, (void *)(uintptr_t)i) == 0);
    work(NULL);
    for (size_t i = 1; i < threads; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
    atomic_store(&is_over, true);
    CHECK(pthread_join(alone, NULL) == 0);
    if (argc > 2) {
        struct hw_statistics statistics;
        CHECK(hw_get_stats != NULL && hw_get_stats(&statistics, sizeof statistics) > 0);
        CHECK(statistics.caches_shared > 0);
        /* The main thread gave its cache up, and the other threads have ended. */
        CHECK(statistics.caches_live == 0);
    }
    return 0;
}
