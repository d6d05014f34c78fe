// leaks: definite 1 SIZE at A in work
// sizes: 24 3000 400000
// flags: -pthread
// A thread has the only pointer on its stack, and ends. The C library keeps the stack for the next.
#include "corpus.h"
#include <pthread.h>

static void *work(void *unused)
{
    char *volatile held = malloc(SIZE); // LEAK A
    POKE(held, 1);
    FIX(free(held);)
    return unused;
}

int main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
