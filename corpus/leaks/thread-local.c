// leaks: definite 4 4*SIZE at A in work
// sizes: 24 3000
// flags: -pthread
// A thread's own variable goes with the thread; what it points to stays.
#include "corpus.h"
#include <pthread.h>

static __thread char *mine;

static void *work(void *unused)
{
    mine = malloc(SIZE); // LEAK A
    POKE(mine, 1);
    FIX(free(mine);)
    return unused;
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        pthread_join(thread, NULL);
    }
    return 0;
}
