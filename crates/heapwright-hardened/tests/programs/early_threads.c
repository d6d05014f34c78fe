/*
 * A library whose constructor starts a thread, which calls the first checked function. The thread
 * waits in its lookup of the real functions until the constructor of libheapwright-hardened.so has
 * looked them up. At the end the library reads beyond a block, which a check of reads finds.
 */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#ifdef __aarch64__
#define FIRST "GLIBC_2.17"
#else
#define FIRST "GLIBC_2.2.5"
#endif

static pthread_t thread;
static _Atomic bool is_held, has_come;
static _Thread_local bool is_early;

/* heapwright looks up the real functions by this function. */
void *dlsym(void *handle, const char *name)
{
    void *(*real)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", FIRST);
    if (!is_early) {
        has_come = is_held;
    } else if (!is_held) {
        is_held = true;
        for (int i = 0; !has_come; i++) {
            CHECK(i < 10000);
            usleep(1000);
        }
        /* The constructor has now almost finished. */
        usleep(50000);
    }
    return real(handle, name);
}

static void *calls_first(void *word)
{
    char local[64];
    volatile size_t bytes = 6;
    is_early = true;
    memcpy(local, word, bytes);
    CHECK(strcmp(local, "hello") == 0);
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    CHECK(pthread_create(&thread, NULL, calls_first, "hello") == 0);
    for (int i = 0; !is_held; i++) {
        CHECK(i < 10000);
        usleep(1000);
    }
}

__attribute__((destructor)) static void end(void)
{
    CHECK(pthread_join(thread, NULL) == 0);
    char local[64], *block = malloc(32);
    volatile size_t bytes = 33;
    memcpy(local, block, bytes);
    OPAQUE(block);
    free(block);
}
