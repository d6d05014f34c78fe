// main returns while detached threads still allocate, and others wait.
// flags: -pthread
// asan: alien
#include "corpus.h"
#include <pthread.h>

static void *busy(void *unused)
{
    (void)unused;
    for (;;)
        churn(10);
}

static void *waits(void *unused)
{
    (void)unused;
    char *volatile mine = malloc(1000);
    mine[0] = 1;
    for (;;)
        pause();
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, i % 2 ? busy : waits, NULL);
        pthread_detach(thread);
    }
    churn(2000);
    puts("main is done");
    return 0;
}
