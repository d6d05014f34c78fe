/* mlockall(MCL_FUTURE) before the heap starts: every new mapping is locked. */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

static int locked;

__attribute__((constructor(101))) static void lock(void)
{
    locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

static void *thread(void *argument)
{
    for (size_t i = 1; i < 3000; i++) {
        char *p = malloc(i % 8 * 100 + 1);
        CHECK(p != NULL);
        memset(p, 1, i % 8 * 100 + 1);
        free(p);
    }
    return argument;
}

int main(void)
{
    CHECK(locked);
    char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = malloc(i % 8 * 100 + 1);
        CHECK(blocks[i] != NULL);
        paint(blocks[i], i % 8 * 100 + 1, i);
    }
    for (size_t i = 0; i < 200; i++) {
        CHECK(is_painted(blocks[i], i % 8 * 100 + 1, i));
        free(blocks[i]);
    }
    char *large = malloc(1 << 20);
    CHECK(large != NULL);
    memset(large, 1, 1 << 20);
    free(large);
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 1 << 18) == 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], &small, thread, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
