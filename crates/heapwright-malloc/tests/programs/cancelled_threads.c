/* Threads that are cancelled or end by pthread_exit while others allocate. */
#include "check.h"
#include <pthread.h>

static void cleanup(void *block)
{
    free(block);
    free(malloc(100));
}

static void *cancelled(void *argument)
{
    (void)argument;
    pthread_cleanup_push(cleanup, malloc(1000));
    for (;;) {
        void *p = malloc(200);
        CHECK(p != NULL);
        free(p);
        pthread_testcancel();
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void *leaves(void *argument)
{
    (void)argument;
    pthread_cleanup_push(cleanup, malloc(1000));
    pthread_exit(malloc(10));
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    for (int round = 0; round < 100; round++) {
        pthread_t a[4], b[4];
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_create(&a[i], NULL, cancelled, NULL) == 0);
            CHECK(pthread_create(&b[i], NULL, leaves, NULL) == 0);
        }
        for (int i = 0; i < 4; i++) {
            void *result;
            CHECK(pthread_cancel(a[i]) == 0);
            CHECK(pthread_join(a[i], &result) == 0 && result == PTHREAD_CANCELED);
            CHECK(pthread_join(b[i], &result) == 0 && result != NULL);
            free(result);
        }
    }
    return 0;
}
