/*
 * Makes one mistake, which the argument names. If the library does not notice it, the program comes
 * to its end, with exit status 9.
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

void *__libc_malloc(size_t) __attribute__((weak));

static char data[100] = "initialised data";
static void *shared;

static void *frees_twice(void *argument)
{
    char *p = malloc(40);
    CHECK(p != NULL);
    free(p);
    OPAQUE(p);
    free(p);
    return argument;
}

static void *leaves_a_freed_block(void *argument)
{
    /* No other code uses this size. So the slab is empty after the free, whichever cache has it. */
    shared = malloc(6000);
    CHECK(shared != NULL);
    free(shared);
    return argument;
}

static void in_a_thread(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static pthread_barrier_t barrier;
static void *lends_its_stack(void *argument)
{
    char local[64];
    shared = local + 16;
    OPAQUE(shared);
    pthread_barrier_wait(&barrier);
    pause();
    return argument;
}

static void *pointer_for(const char *name)
{
    char *p;
    static char *keep[10];
    for (int i = 0; i < 10; i++)
        keep[i] = malloc(40);
    OPAQUE(keep[0]);
    if (!strcmp(name, "interior"))
        return keep[5] + 12;
    if (!strcmp(name, "interior16"))
        return keep[5] + 16;
    if (!strcmp(name, "odd"))
        return keep[5] + 1;
    if (!strcmp(name, "end"))
        return keep[5] + 40;
    if (!strcmp(name, "large-interior")) {
        p = malloc(1 << 20);
        CHECK(p != NULL);
        return p + 4096;
    }
    if (!strcmp(name, "large-far")) {
        p = malloc(10 << 20);
        CHECK(p != NULL);
        return p + (7 << 20);
    }
    if (!strcmp(name, "large-freed")) {
        p = malloc(1 << 20);
        CHECK(p != NULL);
        free(p);
        return p;
    }
    if (!strcmp(name, "aligned-interior")) {
        p = memalign(4096, 100);
        CHECK(p != NULL);
        return p - 16;
    }
    if (!strcmp(name, "freed-by-thread")) {
        /* The block's thread freed it, and then ended. */
        in_a_thread(leaves_a_freed_block);
        /* The thread's cache may wait for another thread, until malloc_trim. */
        malloc_trim(0);
        return shared;
    }
    if (!strcmp(name, "data"))
        return data + 16;
    if (!strcmp(name, "literal"))
        return (void *)(uintptr_t) "a string literal";
    if (!strcmp(name, "function"))
        return (void *)(uintptr_t)pointer_for;
    if (!strcmp(name, "libc-function"))
        return (void *)(uintptr_t)strlen;
    if (!strcmp(name, "libc-data"))
        return stdout;
    if (!strcmp(name, "environment"))
        return environ[0];
    if (!strcmp(name, "thread-stack")) {
        pthread_t thread;
        CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
        CHECK(pthread_create(&thread, NULL, lends_its_stack, NULL) == 0);
        pthread_barrier_wait(&barrier);
        return shared;
    }
    if (!strcmp(name, "mapped") || !strcmp(name, "unmapped") || !strcmp(name, "protected")) {
        p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        memset(p, 0x41, 65536);
        if (name[0] == 'u')
            CHECK(munmap(p, 65536) == 0);
        if (name[0] == 'p')
            CHECK(mprotect(p, 65536, PROT_NONE) == 0);
        return p + 16;
    }
    if (!strncmp(name, "forged", 6)) {
        /* The words that precede a block of the C library's, of each kind, and the next block. */
        static size_t zeroed[4096] __attribute__((aligned(4096)));
        p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        size_t *chunk = !strcmp(name, "forged-data") ? zeroed : (size_t *)(p + 4096);
        if (!strcmp(name, "forged-break"))
            CHECK((chunk = sbrk(65536)) != (void *)-1);
        if (!strcmp(name, "forged-mapping"))
            chunk[1] = 0x2000 | 2;
        else
            chunk[1] = chunk[19] = 0x91;
        return chunk + 2;
    }
    if (!strcmp(name, "libc"))
        return __libc_malloc(100);
    /* A number. */
    return (void *)(uintptr_t)strtoull(name, NULL, 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3 || argc == 4);
    if (argc == 4) {
        /* No file can be opened, so /proc cannot be read. */
        struct rlimit none = { 0, 0 };
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    }
    char local[64];
    void *p;
    if (!strcmp(argv[2], "stack")) {
        p = local + 16;
    } else if (!strcmp(argv[2], "twice-in-thread")) {
        in_a_thread(frees_twice);
        malloc_trim(0);
        return 9;
    } else {
        p = pointer_for(argv[2]);
    }
    OPAQUE(p);
    if (!strcmp(argv[1], "free"))
        free(p);
    else if (!strcmp(argv[1], "realloc"))
        p = realloc(p, 100);
    else if (!strcmp(argv[1], "usable"))
        return malloc_usable_size(p) == 0 ? 8 : 9;
    else
        return 7;
    OPAQUE(p);
    return 9;
}
