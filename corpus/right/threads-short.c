// 5000 short threads, one after the other, with thread-local data on the heap.
// flags: -pthread
#include "corpus.h"
#include <pthread.h>

static pthread_key_t key;

static void *works(void *p)
{
    pthread_setspecific(key, malloc(100));
    free(p);
    return malloc(50);
}

int main(void)
{
    pthread_key_create(&key, free);
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, works, malloc((size_t)(i % 500))) == 0);
        pthread_join(thread, &result);
        free(result);
    }
    return 0;
}
