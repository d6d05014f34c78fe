// finds: invalid-free
// flags: -pthread
#include "corpus.h"
#include <pthread.h>

static __thread char slot[64];

static void *works(void *p)
{
    free(hide(p));
    BUG(free(hide(slot));)
    POKE(slot, 1);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, works, malloc(24));
    pthread_join(thread, NULL);
    return 0;
}
