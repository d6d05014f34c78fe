// finds: invalid-free
// flags: -pthread
// stack: frees_its_own
// The stack of a thread: memory that the C library mapped.
#include "corpus.h"
#include <pthread.h>

NOINLINE void *frees_its_own(void *p)
{
    char local[64] = "on a thread's stack";
    FIX((void)local;)
    free(hide(BUG(local) FIX(p)));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(24);
    pthread_create(&thread, NULL, frees_its_own, p);
    pthread_join(thread, NULL);
    return 0;
}
