/*
 * Takes memory until there is none, in blocks of the size in its argument. Then each request must
 * fail correctly, and succeed again once some memory is freed.
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

static void *thread(void *argument)
{
    void *p = malloc(1000);
    free(p);
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    size_t size = strtoull(argv[1], NULL, 0);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
    size_t taken = 0;
    void **list = NULL;
    errno = 0;
    for (;;) {
        void **p = malloc(size);
        if (!p)
            break;
        CHECK(is_aligned(p, 16));
        memset(p, 1, size < 4096 ? size : 4096);
        *p = list;
        list = p;
        taken += size;
        CHECK(taken <= limit.rlim_cur);
    }
    CHECK(errno == ENOMEM);
    /* At least a quarter of a memory limit is usable. */
    CHECK(taken > limit.rlim_cur / 4);

    errno = 0;
    CHECK(malloc(taken) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(taken, 1) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(list, taken) == NULL && errno == ENOMEM);
    void *untouched = &limit;
    CHECK(posix_memalign(&untouched, 4096, taken) == ENOMEM && untouched == &limit);

    /* The newer half of the blocks is freed. The others are intact, and there is memory again. */
    void **next;
    for (size_t n = taken / size / 2; n > 0; n--) {
        next = *list;
        free(list);
        list = next;
    }
    for (void **block = list; block; block = *block)
        for (size_t at = sizeof *block; at < size && at < 4096; at++)
            CHECK(((char *)block)[at] == 1);
    malloc_trim(0);
    for (int i = 0; i < 100; i++) {
        char *p = malloc(100000);
        CHECK(p != NULL);
        memset(p, 1, 100000);
        free(p);
    }
    for (; list; list = next) {
        next = *list;
        free(list);
    }
    pthread_t other;
    for (int i = 0; i < 20; i++)
        if (pthread_create(&other, NULL, thread, NULL) == 0)
            CHECK(pthread_join(other, NULL) == 0);
    return 0;
}
