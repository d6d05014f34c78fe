// leaks: reachable 1 SIZE at A in work
// sizes: 24 3000 400000
// flags: -pthread
// valgrind: differs It calls possibly lost what the C library keeps for the thread, also in the twin.
// A detached thread that still runs has the only pointer on its stack.
#include "corpus.h"
#include <pthread.h>

static volatile int ready;

static void *work(void *unused)
{
    char *volatile held = malloc(SIZE); // LEAK A
    POKE(held, 1);
    FIX(free(held);)
    ready = 1;
    for (;;)
        pause();
    return unused;
}

int main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_detach(thread);
    while (!ready)
        usleep(1000);
    return 0;
}
