/*
 *   caches_fork_signals SECONDS [runs]
 *
 * A thread forks all the time, beside threads whose signal handlers allocate. A handler may
 * interrupt the very thread that holds a cache for which the fork waits. So the handler must find
 * memory meanwhile. The forking thread has such handlers itself. No thread may hang.
 */
#include "interrupted.h"
#include "stamped.h"
#include <stdatomic.h>
#include <sys/wait.h>

enum { BUSY = 2, HELD = 32 };

static atomic_int stop;
static atomic_ulong handled;
static __thread void *held[HELD];
static __thread uint64_t state;

/* Takes more blocks than one list has, so that some requests go to the central lists, and large
 * blocks. A request under a lock may be refused. */
static void handler(int number)
{
    (void)number;
    int error = errno;
    for (int i = 0; i < 8; i++) {
        size_t at = next_random(&state) % HELD;
        if (held[at])
            give_back(held[at], 2);
        size_t size = next_random(&state) % 16 == 0 ? 100000 : next_random(&state) % 2000;
        held[at] = malloc(size + STAMPED_LEAST);
        if (held[at])
            stamp_block(held[at], size + STAMPED_LEAST, 2);
    }
    atomic_fetch_add(&handled, 1);
    errno = error;
}

static timer_t interrupted(uint64_t seed)
{
    state = seed * 7919;
    free(malloc(1));
    return interrupt_me(1000000);
}

static void uninterrupted(timer_t timer)
{
    leave_me_alone(timer);
    for (size_t i = 0; i < HELD; i++)
        if (held[i])
            give_back(held[i], 2);
}

static void *busy(void *argument)
{
    uint64_t mine = (uintptr_t)argument;
    timer_t timer = interrupted(mine);
    static __thread void *slots[500];
    while (!atomic_load(&stop)) {
        size_t at = next_random(&mine) % 500;
        if (slots[at])
            give_back(slots[at], 4);
        slots[at] = stamped(some_size(&mine), 4);
    }
    uninterrupted(timer);
    for (size_t i = 0; i < 500; i++)
        if (slots[i])
            give_back(slots[i], 4);
    return NULL;
}

static void *forks(void *argument)
{
    uint64_t mine = (uintptr_t)argument;
    timer_t timer = interrupted(mine);
    do {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* A child that hangs dies of this alarm. */
            alarm(60);
            sigset_t blocked;
            CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
            CHECK(!sigismember(&blocked, SIGUSR1));
            CHECK(raise(SIGUSR1) == 0);
            for (int i = 0; i < 50; i++)
                give_back(stamped(some_size(&mine), 5), 5);
            _exit(0);
        }
        int status;
        pid_t ended;
        do
            ended = waitpid(pid, &status, 0);
        while (ended < 0 && errno == EINTR);
        CHECK(ended == pid && status == 0);
    } while (!atomic_load(&stop));
    uninterrupted(timer);
    return NULL;
}

/* A fork handler of the program's: it allocates while the heap's locks are held. */
static void allocates(void)
{
    for (size_t i = 1; i < 200; i++)
        give_back(stamped(i * 16, i), i);
}

__attribute__((constructor)) static void begin(void)
{
    CHECK(pthread_atfork(allocates, allocates, allocates) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    only_runs = argc > 2 && !strcmp(argv[2], "runs");
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[BUSY + 1];
    for (size_t i = 0; i < BUSY; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, (void *)(i + 1)) == 0);
    CHECK(pthread_create(&threads[BUSY], NULL, forks, (void *)(uintptr_t)9) == 0);
    sleep((unsigned)strtoul(argv[1], NULL, 10));
    atomic_store(&stop, 1);
    for (size_t i = 0; i <= BUSY; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&handled) > 4);
    return 0;
}
