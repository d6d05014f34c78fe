// finds: realloc-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// flags: -pthread
// stack: grows
// One thread frees a buffer that another is about to let grow.
#include "corpus.h"
#include <pthread.h>

NOINLINE void *grows(void *p)
{
    return hide(realloc(hide(p), SIZE * 3));
}

int main(void)
{
    pthread_t thread;
    void *p = malloc(SIZE), *q;
    BUG(free(hide(p));)
    pthread_create(&thread, NULL, grows, p);
    pthread_join(thread, &q);
    FIX(free(hide(q));)
    return 0;
}
