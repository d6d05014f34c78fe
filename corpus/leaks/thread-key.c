// leaks: definite 1 SIZE at A in work
// sizes: 24 3000 400000
// flags: -pthread
// A thread's value of a key that has no destructor.
#include "corpus.h"
#include <pthread.h>

pthread_key_t key;

static void *work(void *unused)
{
    char *p = malloc(SIZE); // LEAK A
    POKE(p, 1);
    pthread_setspecific(key, p);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, BUG(NULL) FIX(free));
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
