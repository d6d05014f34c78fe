/*
 * A leak check's pause in a program with a large heap: snapshot MIB [CHECKS [PAUSE_MS]]
 *
 * MIB of live blocks, most of 32 to 512 bytes, some of 64 KiB, in linked lists. One thread reads
 * the clock in a loop and keeps the longest time between two reads. The other thread raises SIGUSR1
 * CHECKS times (3), PAUSE_MS milliseconds apart (4000). A library with the option
 * HEAPWRIGHT=leak_signal=USR1 answers each signal with a check. One block of 123 bytes is lost.
 *
 * Lines `figure NAME NUMBER`; those with a round have its number last:
 *
 *   live_mib        the bytes requested from malloc
 *   quiet_gap_ms    the longest gap of the other thread without a check
 *   raised_ms N     the time of raise(SIGUSR1)
 *   gap_ms N        the other thread's longest gap, from before check N until the next check
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct link {
    struct link *next;
};

enum { LISTS = 1024, LOST = 123 };
static struct link *lists[LISTS];

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sleep_ms(long ms)
{
    /* A signal's handler may end a sleep. */
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&left, &left))
        ;
}

static _Atomic uint64_t longest;
static atomic_int stop;

static void *watch(void *unused)
{
    uint64_t before = now();
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t at = now();
        if (at - before > atomic_load_explicit(&longest, memory_order_relaxed))
            atomic_store_explicit(&longest, at - before, memory_order_relaxed);
        before = at;
    }
    return unused;
}

static double taken_ms(void)
{
    return (double)atomic_exchange(&longest, 0) / 1e6;
}

static unsigned state = 12345;
static unsigned draw(void)
{
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

/* One block in 2048 is large: large blocks have about a tenth of the bytes. */
static size_t size_of_next(void)
{
    unsigned drawn = draw();
    return drawn % 2048 == 0 ? 65536 : 32 + drawn / 2048 % 481;
}

__attribute__((noinline)) static void lose(void)
{
    char *volatile block = malloc(LOST);
    block[0] = 1;
    block = NULL;
}

/* Overwrites the words that calls have left on the stack. */
__attribute__((noinline)) static void wipe(void)
{
    volatile char litter[8192];
    for (size_t i = 0; i < sizeof litter; i++)
        litter[i] = 0;
}

int main(int count, char **words)
{
    size_t asked = (count > 1 ? strtoul(words[1], NULL, 10) : 1024) << 20, live = 0;
    int checks = count > 2 ? atoi(words[2]) : 3;
    long pause = count > 3 ? atol(words[3]) : 4000;

    /* Without a library that handles it, the signal is ignored and nothing is measured. */
    struct sigaction set;
    if (!sigaction(SIGUSR1, NULL, &set) && set.sa_handler == SIG_DFL) {
        fprintf(stderr, "nobody takes SIGUSR1\n");
        signal(SIGUSR1, SIG_IGN);
    }

    while (live < asked) {
        size_t size = size_of_next();
        struct link *made = malloc(size), **list = &lists[draw() % LISTS];
        if (!made)
            return 1;
        memset(made, 0x5a, size);
        made->next = *list;
        *list = made;
        live += size;
    }
    lose();
    wipe();
    printf("figure live_mib %zu\n", live >> 20);

    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL))
        return 1;
    taken_ms();
    sleep_ms(pause);
    printf("figure quiet_gap_ms %.3f\n", taken_ms());
    for (int check = 1; check <= checks; check++) {
        uint64_t before = now();
        raise(SIGUSR1);
        double raised = (double)(now() - before) / 1e6;
        sleep_ms(pause);
        printf("figure raised_ms %.3f %d\nfigure gap_ms %.3f %d\n", raised, check, taken_ms(), check);
    }
    stop = 1;
    pthread_join(thread, NULL);
    /* The lists stay: they are reachable at the end, too. */
    return 0;
}
