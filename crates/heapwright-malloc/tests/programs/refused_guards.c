/*
 * Refusals of guards by the kernel, in debug mode (`guard=all`). This program stands between the
 * library and the kernel: the library's calls find the program's madvise and mprotect first.
 *
 *   refused_guards first     the first guard is refused for lack of memory: that says nothing about the
 *                            kernel, and later guards still do not split mappings
 *   refused_guards removal   from some time on no guard can be removed: allocations are right or NULL,
 *                            and no walk of the heap touches guarded memory
 *   refused_guards some      half of the guards, and of the requests to give pages back, are refused:
 *                            calloc returns zeros, also behind the end of an earlier, shorter block
 */
#include "check.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103, ROUNDS = 40, BLOCKS = 600 };

static atomic_int refuse_first, refuse_removal, refuse_some, installed, refused, split;

int madvise(void *at, size_t size, int advice)
{
    if (advice == GUARD_INSTALL && atomic_exchange(&refuse_first, 0)) {
        atomic_fetch_add(&refused, 1);
        errno = ENOMEM;
        return -1;
    }
    if (advice == GUARD_REMOVE && refuse_removal) {
        atomic_fetch_add(&refused, 1);
        errno = ENOMEM;
        return -1;
    }
    static uint64_t state = 362436069;
    if ((advice == GUARD_INSTALL || advice == MADV_DONTNEED) && refuse_some && next_random(&state) % 2) {
        atomic_fetch_add(&refused, 1);
        errno = ENOMEM;
        return -1;
    }
    int result = (int)syscall(SYS_madvise, at, size, advice);
    if (advice == GUARD_INSTALL && result == 0)
        atomic_fetch_add(&installed, 1);
    return result;
}

int mprotect(void *at, size_t size, int access)
{
    if (access == PROT_NONE)
        atomic_fetch_add(&split, 1);
    return (int)syscall(SYS_mprotect, at, size, access);
}

/* Before the library's constructor, so before its first guard. */
static void first(int argc, char **argv, char **environment)
{
    (void)environment;
    refuse_first = argc == 2 && !strcmp(argv[1], "first");
}
__attribute__((section(".preinit_array"), used)) static void (*const begin)(int, char **, char **) = first;

/* Fills buckets of many classes and empties them. The emptied buckets are guarded, and used again
 * when the history is full. */
static void use(void)
{
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    static uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < BLOCKS; i++) {
        sizes[i] = next_random(&state) % (i % 20 ? 2000 : 100000) + 1;
        errno = 0;
        blocks[i] = malloc(sizes[i]);
        CHECK(blocks[i] != NULL || (errno == ENOMEM && refuse_removal));
        if (blocks[i])
            paint(blocks[i], sizes[i], i);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i]) {
            CHECK(is_painted(blocks[i], sizes[i], i));
            free(blocks[i]);
        }
}

/* Large blocks of changing lengths in the same spans, and other blocks in their freed memory. */
static void use_zeroes(void)
{
    enum { HELD = 8 };
    static char *blocks[HELD];
    static uint64_t state = 88172645463325252u;
    for (int i = 0; i < 500; i++) {
        char **block = &blocks[next_random(&state) % HELD];
        free(*block);
        size_t size = (next_random(&state) % 2 ? 270000 : 100000) + next_random(&state) % 700000;
        *block = calloc(1, size);
        CHECK(*block != NULL);
        for (size_t at = 0; at < size; at += 512)
            CHECK((*block)[at] == 0);
        memset(*block, 0xff, size);
    }
    for (int i = 0; i < HELD; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    if (!strcmp(argv[1], "some")) {
        atomic_store(&refuse_some, 1);
        use_zeroes();
        CHECK(refused > 0);
        return 0;
    }
    for (int i = 0; i < ROUNDS; i++)
        use();
    if (!strcmp(argv[1], "removal")) {
        atomic_store(&refuse_removal, 1);
        for (int i = 0; i < ROUNDS; i++)
            use();
        /* A kernel before 6.13 has no such guards. */
        CHECK(refused > 0 || installed == 0);
        atomic_store(&refuse_removal, 0);
        for (int i = 0; i < ROUNDS; i++)
            use();
    } else {
        /* With other pages than 4 KiB there are no guards at all. */
        CHECK(refused == 1 || sysconf(_SC_PAGESIZE) != 4096);
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED);
        /* If the kernel has such guards, they were used. (The library's signal stack has a guard of
         * the other kind.) */
        if (syscall(SYS_madvise, page, 4096, GUARD_INSTALL) == 0)
            CHECK(installed > 100 && split < 10);
    }
    return 0;
}
