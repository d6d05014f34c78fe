/*
 * A program limits its own address space after it has begun to use it. The limit covers heap,
 * stacks and mappings, and the program can use all of it.
 */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { LIMIT = 400 << 20 };

static void *thread(void *argument)
{
    for (size_t i = 1; i < 1000; i++) {
        char *p = malloc(i);
        CHECK(p != NULL);
        memset(p, 1, i);
        free(p);
    }
    return argument;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static char *kept[1000];
    for (size_t i = 0; i < 1000; i++) {
        kept[i] = malloc(i * 20 + 1);
        CHECK(kept[i] != NULL);
        paint(kept[i], i * 20 + 1, i);
    }

    struct rlimit limit, before;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = LIMIT;
    if (!strcmp(argv[1], "setrlimit"))
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    else if (!strcmp(argv[1], "prlimit"))
        CHECK(prlimit(0, RLIMIT_AS, &limit, &before) == 0 && before.rlim_cur == RLIM_INFINITY);
    else
        CHECK(prlimit(getpid(), RLIMIT_AS, &limit, NULL) == 0);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0 && before.rlim_cur == LIMIT);

    /* Other limits and other errors are untouched. */
    CHECK(getrlimit(RLIMIT_CORE, &before) == 0 && setrlimit(RLIMIT_CORE, &before) == 0);
    errno = 0;
    CHECK(setrlimit((enum __rlimit_resource)1000, &limit) == -1 && errno == EINVAL);

    /* The other parts of the process get the address space that the heap does not use. */
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    void *mapping = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapping != MAP_FAILED);
    CHECK(munmap(mapping, 100 << 20) == 0);

    /* The heap grows to the limit, and not beyond it. */
    for (size_t size = 1000; size <= 1000000; size *= 1000) {
        size_t taken = 0;
        void **list = NULL;
        for (;;) {
            errno = 0;
            void **p = malloc(size);
            if (!p)
                break;
            *p = list;
            list = p;
            taken += size;
            CHECK(taken < LIMIT);
        }
        CHECK(errno == ENOMEM);
        CHECK(taken > LIMIT / 4);
        while (list) {
            void **next = *list;
            free(list);
            list = next;
        }
    }

    for (size_t i = 0; i < 1000; i++) {
        CHECK(is_painted(kept[i], i * 20 + 1, i));
        free(kept[i]);
    }

    /* A limit that cannot be set has no effect. The heap follows a limit that is raised. */
    struct rlimit wrong = { .rlim_cur = 2, .rlim_max = 1 };
    CHECK(setrlimit(RLIMIT_AS, &wrong) == -1 && errno == EINVAL);
    void *block = malloc(LIMIT / 4);
    CHECK(block != NULL);
    free(block);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    block = malloc((size_t)10 * LIMIT);
    CHECK(block != NULL);
    free(block);
    return 0;
}
