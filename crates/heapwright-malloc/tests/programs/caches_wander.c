/*
 *   caches_wander SECONDS [runs]
 *
 * Threads move to other CPUs while they allocate, by themselves and by another thread, if the
 * system allows it. They hand blocks to each other. With one CPU the other checks hold.
 */
#include "stamped.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 6, BOX = 128, SLOTS = 200 };
static _Atomic(void *) box[BOX];
static atomic_int stop;
static atomic_ulong moves;
static int cpus[CPU_SETSIZE];
static int cpu_count;
static pthread_t threads[THREADS];

static void move(pthread_t thread, uint64_t random)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[random % (unsigned)cpu_count], &set);
    CHECK(pthread_setaffinity_np(thread, sizeof set, &set) == 0);
    atomic_fetch_add(&moves, 1);
}

static void *wander(void *argument)
{
    uint64_t state = (uintptr_t)argument * 7919 + 1;
    void *slots[SLOTS] = { NULL };
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 20; i++) {
            size_t at = next_random(&state) % SLOTS;
            if (slots[at])
                give_back(slots[at], 6);
            slots[at] = stamped(some_size(&state), 6);
        }
        size_t at = next_random(&state) % SLOTS;
        slots[at] = atomic_exchange(&box[next_random(&state) % BOX], slots[at]);
        move(pthread_self(), next_random(&state));
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i])
            give_back(slots[i], 6);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    only_runs = argc > 2 && !strcmp(argv[2], "runs");
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[cpu_count++] = i;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, wander, (void *)(i + 1)) == 0);
    uint64_t state = 5;
    for (unsigned i = 0; i < strtoul(argv[1], NULL, 10) * 1000; i++) {
        usleep(1000);
        move(threads[next_random(&state) % THREADS], next_random(&state));
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < BOX; i++)
        if (box[i])
            give_back(box[i], 6);
    CHECK(atomic_load(&moves) > 100);
    return 0;
}
