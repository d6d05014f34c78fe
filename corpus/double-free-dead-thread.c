// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// flags: -pthread
// The block's thread allocated it, freed it, and ended.
#include "corpus.h"
#include <pthread.h>

static void *leaves(void *unused)
{
    (void)unused;
    char *p = malloc(SIZE);
    free(hide(p));
    return p;
}

int main(void)
{
    pthread_t thread;
    void *p;
    pthread_create(&thread, NULL, leaves, NULL);
    pthread_join(thread, &p);
    BUG(free(hide(p));)
    return 0;
}
