// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// flags: -pthread
// A thread frees what the destructor of its key frees, too.
#include "corpus.h"
#include <pthread.h>

static pthread_key_t key;

static void *works(void *unused)
{
    (void)unused;
    pthread_setspecific(key, malloc(SIZE));
    free(pthread_getspecific(key));
    FIX(pthread_setspecific(key, NULL);)
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, free);
    pthread_create(&thread, NULL, works, NULL);
    pthread_join(thread, NULL);
    return 0;
}
