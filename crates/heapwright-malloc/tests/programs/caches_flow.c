/*
 *   caches_flow PRODUCERS CONSUMERS
 *
 * Some threads allocate, others free. About 24 MiB are live at most. So resident memory must be
 * bounded, too, however many blocks pass.
 */
#include "stamped.h"
#include <pthread.h>
#include <stdatomic.h>

enum { QUEUE = 4096, MOST = 8, ROUNDS = 60 };
static _Atomic(void *) queue[QUEUE];
static atomic_ulong in, out;
static atomic_int producing;

static void *produce(void *argument)
{
    uint64_t state = (uintptr_t)argument * 104729 + 5;
    size_t each = (size_t)QUEUE * ROUNDS / (size_t)atomic_load(&producing);
    for (size_t i = 0; i < each; i++) {
        void *block = stamped(next_random(&state) % 12000 + STAMPED_LEAST, 8);
        size_t at = atomic_fetch_add(&in, 1) % QUEUE;
        void *empty = NULL;
        while (!atomic_compare_exchange_weak(&queue[at], &empty, block)) {
            empty = NULL;
            usleep(50);
        }
    }
    return NULL;
}

static void *consume(void *argument)
{
    size_t total = *(size_t *)argument;
    for (;;) {
        size_t at = atomic_fetch_add(&out, 1);
        if (at >= total)
            return NULL;
        void *block;
        while (!(block = atomic_exchange(&queue[at % QUEUE], NULL)))
            usleep(50);
        give_back(block, 8);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    size_t producers = strtoul(argv[1], NULL, 10), consumers = strtoul(argv[2], NULL, 10);
    CHECK(producers <= MOST && consumers <= MOST && producers && consumers);
    size_t total = (size_t)QUEUE * ROUNDS / producers * producers;
    atomic_store(&producing, (int)producers);
    pthread_t threads[2 * MOST];
    long before = resident_kib(), most = 0;
    for (size_t i = 0; i < producers; i++)
        CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < consumers; i++)
        CHECK(pthread_create(&threads[producers + i], NULL, consume, &total) == 0);
    while (atomic_load(&out) < total) {
        long now = resident_kib() - before;
        most = now > most ? now : most;
        usleep(5000);
    }
    for (size_t i = 0; i < producers + consumers; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("%ld KiB at most\n", most);
    /* 4096 blocks of 6 KB on average are 24 MiB. Another 24 MiB may be on their way, and another 24
     * MiB may be free and not yet given back (if threads wait for a CPU, half of the whole). Caches
     * have less than 4 MiB each: the threads' caches and, if threads give these up, the CPUs'
     * arrays. 1.4 GiB pass. */
    long caches = (long)(producers + consumers) + sysconf(_SC_NPROCESSORS_ONLN);
    long limit = 3 * 24L * 1024 + 4096L * caches;
    if (most > limit) {
        fprintf(stderr, "%ld KiB in memory, more than %ld\n", most, limit);
        return 1;
    }
    return 0;
}
