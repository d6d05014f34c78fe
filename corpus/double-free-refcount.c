// finds: double-free
// sizes: 24 3000
// flags: -pthread
// stack: drop
// The count lives outside the block; one holder was never counted.
#include "corpus.h"
#include <pthread.h>

static int holders = 2 BUG(- 1);

NOINLINE void *drop(void *p)
{
    static int gone;
    if (--holders <= 0 && (gone++ == 0 BUG(|| 1)))
        free(hide(p));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(SIZE);
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, drop, p);
        pthread_join(thread, NULL);
    }
    return 0;
}
