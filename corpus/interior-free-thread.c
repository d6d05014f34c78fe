// finds: interior-free
// sizes: 24 3000
// flags: -pthread
// words: 8 bytes into a %SIZE%-byte
// Another thread got a pointer into the block, and thinks it is the block.
#include "corpus.h"
#include <pthread.h>

static void *takes(void *p)
{
    free(hide((char *)p FIX(- 8)));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(SIZE);
    pthread_create(&thread, NULL, takes, p + 8);
    pthread_join(thread, NULL);
    BUG(free(hide(p));)
    return 0;
}
