// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// flags: -pthread
// The argument of a thread is freed before the thread has answered in it.
#include "corpus.h"
#include <pthread.h>

static void *answers(void *p)
{
    POKE(p, 42);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(SIZE);
    BUG(free(hide(p));)
    pthread_create(&thread, NULL, answers, p);
    pthread_join(thread, NULL);
    FIX(free(hide(p));)
    return 0;
}
