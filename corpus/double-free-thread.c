// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// flags: -pthread
// stack: frees_again
#include "corpus.h"
#include <pthread.h>

NOINLINE void *frees_again(void *p)
{
    BUG(free(hide(p));)
    (void)hide(p);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(SIZE);
    free(p);
    pthread_create(&thread, NULL, frees_again, p);
    pthread_join(thread, NULL);
    return 0;
}
