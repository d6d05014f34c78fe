// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// flags: -pthread
// Another thread writes too far; the owner's free finds it.
#include "corpus.h"
#include <pthread.h>

static void *fills(void *p)
{
    memset(p, 't', SIZE BUG(+ 2));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char *p = malloc(SIZE);
    pthread_create(&thread, NULL, fills, p);
    pthread_join(thread, NULL);
    free(hide(p));
    return 0;
}
