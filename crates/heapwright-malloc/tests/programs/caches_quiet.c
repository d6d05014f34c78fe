/*
 *   caches_quiet [IDLE]
 *
 * A program frees much memory at once and then hardly does anything. The freed memory goes back to
 * the kernel, although no later call needs a refill. (A few blocks stay, so that slabs stay.)
 *
 * With IDLE, that many threads allocate a little and wait. The thread that freed waits, too, and a
 * new thread does the little work. With cache=auto the idle threads may be as many as can have
 * caches of their own. Then the new thread has none.
 */
#include "check.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8000, SIZE = 8000, ENOUGH_KIB = 24 << 10, IDLE_MOST = 1000, KEPT = 16 };

static pthread_barrier_t all;

/* Allocates and frees now and then until little is resident. Returns the resident KiB. */
static void *do_little(void *argument)
{
    (void)argument;
    static long now;
    for (int ms = 0; ms < 15000; ms++) {
        free(malloc(64));
        usleep(1000);
        if (ms % 100 == 0 && (now = resident_kib()) < ENOUGH_KIB)
            break;
    }
    return &now;
}

static void *idle(void *argument)
{
    void *volatile block = malloc(64);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    free(block);
    return argument;
}

int main(int argc, char **argv)
{
    static char *blocks[BLOCKS];
    static pthread_t threads[IDLE_MOST];
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    CHECK(count <= IDLE_MOST);
    for (int at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(SIZE);
        CHECK(blocks[at]);
        memset(blocks[at], 1, SIZE);
    }
    CHECK(pthread_barrier_init(&all, NULL, count + 1) == 0);
    for (unsigned i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, idle, NULL) == 0);
    pthread_barrier_wait(&all);
    long most = resident_kib();
    for (int at = 0; at < BLOCKS; at++)
        if (at % KEPT != 0)
            free(blocks[at]);
    /* Work within one tick of the clock may look like the work before it: see docs/limits.md. */
    usleep(20000);
    pthread_t last;
    void *left = NULL;
    if (count > 0) {
        CHECK(pthread_create(&last, NULL, do_little, NULL) == 0);
        CHECK(pthread_join(last, &left) == 0);
    } else {
        left = do_little(NULL);
    }
    long now = *(long *)left;
    pthread_barrier_wait(&all);
    for (unsigned i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("%ld KiB, then %ld\n", most, now);
    fflush(stdout);
    CHECK(most > ENOUGH_KIB && now < ENOUGH_KIB);
    return 0;
}
