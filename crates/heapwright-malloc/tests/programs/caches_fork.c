/*
 *   caches_fork SECONDS [runs]
 *
 * A storm of forks: threads allocate without end, and some of them fork all the time. Children
 * allocate, free blocks of threads that they do not have, start threads, fork again, and become
 * another program. No process may hang, and no block may have two owners.
 */
#include "stamped.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

enum { BUSY = 6, FORKERS = 3, KEPT = 200, SLOTS = 150, CHILD_BLOCKS = 600 };

/* The blocks of busy threads: null while a thread changes the slot. */
static _Atomic(void *) slots[BUSY][SLOTS];
static void *kept[KEPT];
static atomic_int stop;
static atomic_int children;
static char *self;

static uint64_t number_of(size_t thread, size_t slot)
{
    return 1000 * (thread + 1) + slot;
}

static void *busy(void *argument)
{
    size_t me = (size_t)argument;
    uint64_t state = me * 7919 + 1;
    while (!atomic_load(&stop)) {
        size_t at = next_random(&state) % SLOTS;
        void *old = atomic_exchange(&slots[me][at], NULL);
        if (old)
            give_back(old, number_of(me, at));
        atomic_store(&slots[me][at], stamped(some_size(&state), number_of(me, at)));
    }
    return NULL;
}

static void *in_the_child(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    for (size_t i = 0; i < 200; i++)
        give_back(stamped(some_size(&state), i), i);
    return stamped(100, 7);
}

__attribute__((noreturn)) static void child(int number, int depth)
{
    uint64_t state = (uint64_t)number * 31 + 1;
    static void *mine[CHILD_BLOCKS];
    for (size_t i = 0; i < CHILD_BLOCKS; i++)
        mine[i] = stamped(some_size(&state), i);
    /* The kernel copies page by page while the other threads run: a slot's page may be older or
     * newer than its block's. Only blocks with the right stamp are freed. */
    if (depth == 0)
        for (size_t thread = 0; thread < BUSY; thread++)
            for (size_t i = number % 2; i < SLOTS; i += 2) {
                void *block = atomic_exchange(&slots[thread][i], NULL);
                if (block && is_stamped(block, number_of(thread, i)))
                    give_back(block, number_of(thread, i));
            }
    for (size_t i = 0; i < KEPT; i++)
        CHECK(is_stamped(kept[i], 9));
    for (size_t i = 0; i < CHILD_BLOCKS; i += 2) {
        give_back(mine[i], i);
        mine[i] = stamped(some_size(&state), i);
    }
    if (number % 4 == 0) {
        pthread_t thread;
        void *left;
        CHECK(pthread_create(&thread, NULL, in_the_child, (void *)(uintptr_t)(number + 1)) == 0);
        CHECK(pthread_join(thread, &left) == 0);
        give_back(left, 7);
    }
    if (number % 5 == 0 && depth < 2) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(number, depth + 1);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    for (size_t i = 0; i < CHILD_BLOCKS; i++)
        give_back(mine[i], i);
    if (number % 7 == 0) {
        execl(self, self, "leaf", (char *)NULL);
        CHECK(!"exec");
    }
    if (number % 3 == 0)
        exit(0);
    _exit(0);
}

static void *forks(void *argument)
{
    size_t me = (size_t)argument;
    uint64_t state = me * 104729 + 1;
    while (!atomic_load(&stop)) {
        int number = atomic_fetch_add(&children, 1);
        void *block = stamped(some_size(&state), 50 + me);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* A child that hangs dies of this alarm. */
            alarm(60);
            give_back(block, 50 + me);
            child(number, 0);
        }
        give_back(block, 50 + me);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    only_runs = argc > 2 && !strcmp(argv[2], "runs");
    self = argv[0];
    if (!strcmp(argv[1], "leaf")) {
        uint64_t state = 3;
        for (size_t i = 0; i < 100; i++)
            give_back(stamped(some_size(&state), i), i);
        return 0;
    }
    uint64_t state = 11;
    for (size_t i = 0; i < KEPT; i++)
        kept[i] = stamped(some_size(&state), 9);
    pthread_t threads[BUSY + FORKERS];
    for (size_t i = 0; i < BUSY; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, (void *)i) == 0);
    for (size_t i = 0; i < FORKERS; i++)
        CHECK(pthread_create(&threads[BUSY + i], NULL, forks, (void *)i) == 0);
    sleep((unsigned)strtoul(argv[1], NULL, 10));
    /* Waits for ten children, so that forks meet other forks. A busy machine takes longer. */
    for (size_t waits = 0; waits < 600 && atomic_load(&children) < 10; waits++)
        usleep(100000);
    atomic_store(&stop, 1);
    for (size_t i = 0; i < BUSY + FORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t thread = 0; thread < BUSY; thread++)
        for (size_t i = 0; i < SLOTS; i++)
            if (slots[thread][i])
                give_back(slots[thread][i], number_of(thread, i));
    for (size_t i = 0; i < KEPT; i++)
        give_back(kept[i], 9);
    CHECK(atomic_load(&children) >= 10);

    return 0;
}
