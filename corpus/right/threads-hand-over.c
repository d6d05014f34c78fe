// 200 threads; each frees what the one before it allocated, and leaves blocks.
// flags: -pthread
#include "corpus.h"
#include <pthread.h>

enum { THREADS = 200, BLOCKS = 100 };
static char *blocks[THREADS + 1][BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int ready;

static void *works(void *argument)
{
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < BLOCKS; i++) {
        size_t n = (size_t)((me * 31 + i * 77) % 3000 + 1);
        blocks[me + 1][i] = memset(malloc(n), me, n);
    }
    pthread_mutex_lock(&lock);
    while (ready != me)
        pthread_cond_wait(&turn, &lock);
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(me == 0 || blocks[me][i][0] == (char)(me - 1));
        free(blocks[me][i]);
    }
    ready++;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, works, (void *)(intptr_t)t) == 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[THREADS][i]);
    puts("handed over");
    return 0;
}
