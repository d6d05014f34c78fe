/* malloc's functions are no cancellation points. A cancelled thread gets through them, also when
 * they read files or write messages, and ends at the next cancellation point. With an argument a
 * block is freed twice: debug mode writes a finding and continues. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

static int twice, got_through;

static void *cancelled(void *argument)
{
    pthread_cancel(pthread_self());
    malloc_stats();
    malloc_trim(0);
    free(malloc(100));
    free(malloc(10000000));
    if (twice) {
        void *volatile p = malloc(100);
        free(p);
        free(p);
    }
    got_through = 1;
    pthread_testcancel();
    return argument;
}

int main(int count, char **arguments)
{
    (void)arguments;
    twice = count > 1;
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, cancelled, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(got_through);
    CHECK(result == PTHREAD_CANCELED);
    return 0;
}
