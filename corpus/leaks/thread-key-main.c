// leaks: reachable 60 60*SIZE at A in main
// sizes: 24 3000
// flags: -pthread
// The main thread's values of many keys: some lie in its descriptor, some in a block of the C library's.
#include "corpus.h"
#include <pthread.h>

pthread_key_t keys[60];

int main(void)
{
    for (int i = 0; i < 60; i++) {
        pthread_key_create(&keys[i], NULL);
        char *p = malloc(SIZE); // LEAK A
        POKE(p, 1);
        pthread_setspecific(keys[i], p);
    }
    FIX(for (int i = 0; i < 60; i++) free(pthread_getspecific(keys[i]));)
    wipe();
    return 0;
}
