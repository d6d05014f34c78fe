// limits MODE: small programs for ci/limits.sh, each of which must end with
// status 0 however tight the machine is made around it.
//
//   work      three threads make, check, grow and free blocks of all sizes
//   exhaust   memory is used up, large then small; malloc says so with a null
//             and ENOMEM, and serves again once blocks were freed
//   lock      mlockall of all present and future memory, then work; the program
//             must stay small: a reservation must not become resident
//   self      limits its own address space while running, then works in one
//             thread: what malloc reserved before must go on serving
//   crash     makes blocks and aborts (for the size of the core file)

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void fail(const char *why) {
    fprintf(stderr, "limits: %s\n", why);
    exit(1);
}

static void *work(void *argument) {
    enum { LIVE = 2000 };
    unsigned seed = (unsigned)(uintptr_t)argument + 1;
    static __thread unsigned char *blocks[LIVE];
    static __thread size_t sizes[LIVE];
    for (int i = 0; i < 60000; i++) {
        seed = seed * 1103515245 + 12345;
        int at = seed / 65536 % LIVE;
        unsigned char *old = blocks[at];
        if (old != NULL && (old[0] != (unsigned char)at || old[sizes[at] - 1] != (unsigned char)at))
            fail("a block changed while it was held");
        size_t size = 1 + seed / 7 % 600;
        if (i % 500 == 0)
            size = 100000 + seed % 400000;
        unsigned char *block;
        if (i % 3 == 0) {
            block = realloc(old, size);
        } else {
            free(old);
            block = i % 7 == 0 ? aligned_alloc(256, (size + 255) & ~(size_t)255) : malloc(size);
        }
        if (block == NULL)
            fail("out of memory with little in use");
        if (i % 7 == 0 && i % 3 != 0 && (uintptr_t)block % 256 != 0)
            fail("a block is not aligned");
        block[0] = block[size - 1] = (unsigned char)at;
        blocks[at] = block;
        sizes[at] = size;
        // Large blocks do not stay: the whole must fit in tight limits.
        if (size > 100000) {
            free(block);
            blocks[at] = NULL;
        }
    }
    for (int i = 0; i < LIVE; i++)
        free(blocks[i]);
    return NULL;
}

static void work_in_threads(void) {
    pthread_t threads[3];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    for (uintptr_t t = 0; t < 3; t++)
        if (pthread_create(&threads[t], &small, work, (void *)t) != 0)
            fail("cannot start a thread");
    for (int t = 0; t < 3; t++)
        pthread_join(threads[t], NULL);
    work((void *)3);
}

static void exhaust(size_t size) {
    void **list = NULL, **block;
    long count = 0;
    errno = 0;
    while ((block = malloc(size)) != NULL) {
        // Touch the first word only: the limit is on address space or commit.
        *block = list;
        list = block;
        if (++count > 100 * 1000 * 1000)
            fail("there is no limit");
    }
    if (errno != ENOMEM)
        fail("malloc returned null without ENOMEM");
    if (count < 10)
        fail("out of memory at once");
    // A failed realloc leaves the block as it was.
    if (realloc(list, (size_t)1 << 46) != NULL || errno != ENOMEM || calloc((size_t)1 << 23, (size_t)1 << 23) != NULL)
        fail("64 TiB were found in a full heap");
    while (list != NULL) {
        void **next = *list;
        free(list);
        list = next;
    }
    void *again = malloc(size);
    if (again == NULL)
        fail("freed memory does not come back");
    free(again);
}

static long resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "work";
    if (strcmp(mode, "exhaust") == 0) {
        exhaust(1 << 20);
        exhaust(100);
        exhaust(30000);
        exhaust(1 << 20);
    } else if (strcmp(mode, "lock") == 0) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
            fail("mlockall failed");
        work_in_threads();
        if (resident_kib() > 64 * 1024) {
            fprintf(stderr, "limits: %ld KiB are resident\n", resident_kib());
            return 1;
        }
    } else if (strcmp(mode, "self") == 0) {
        struct rlimit limit = {200 << 20, 200 << 20};
        free(malloc(1000));
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            fail("setrlimit failed");
        work((void *)1);
    } else {
        work_in_threads();
        if (strcmp(mode, "crash") == 0)
            abort();
    }
    puts("done");
    return 0;
}
