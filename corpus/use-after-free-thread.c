// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// flags: -pthread
// A thread reads its argument late.
#include "corpus.h"
#include <pthread.h>

static void *reads(void *p)
{
    PEEK(p);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = calloc(1, SIZE);
    BUG(free(hide(p));)
    pthread_create(&thread, NULL, reads, p);
    pthread_join(thread, NULL);
    FIX(free(hide(p));)
    return 0;
}
