/*
 * hw_object_size of blocks of many sizes, made in each way. Checked functions can write each byte.
 *
 *   sizes exact        a block ends at its requested size; a freed one has size 0 (mode=hardened, debug)
 *   sizes usable       a block ends at its malloc_usable_size; small freed ones are unknown (mode=fast)
 */
#include "check.h"
#include <malloc.h>

/* The preloaded library defines this function. */
size_t hw_object_size(const void *address) __attribute__((weak));

static int exact;

/* The block has this size, seen from its first byte and from each other byte that is tried. */
static void look(char *block, size_t size)
{
    CHECK(block != NULL);
    size_t end = exact ? size : malloc_usable_size(block);
    CHECK(end >= size);
    for (size_t at = 0; at < end; at += at < 40 || at + 40 > end ? 1 : end / 7 + 1)
        CHECK(hw_object_size(block + at) == end - at);
    CHECK(!exact || hw_object_size(block + end) == 0);
    memset(block, 1, end);
    memset(block + end / 2, 2, end - end / 2);
}

static void look_and_free(char *block, size_t size)
{
    look(block, size);
    volatile uintptr_t address = (uintptr_t)block;
    free(block);
    if (exact)
        CHECK(hw_object_size((void *)address) == 0);
}

int main(int count, char **words)
{
    static char still[64];
    char stack[64];
    exact = count > 1 && strcmp(words[1], "exact") == 0;
    CHECK(hw_object_size(still) == SIZE_MAX && hw_object_size(stack) == SIZE_MAX);
    CHECK(hw_object_size(NULL) == SIZE_MAX && hw_object_size((void *)-1) == SIZE_MAX);
    CHECK(hw_object_size((void *)(uintptr_t)main) == SIZE_MAX);
    size_t step = 1;
    for (size_t size = 1; size < 40000; size += step) {
        step = size < 700 ? 1 : size / 9;
        look_and_free(malloc(size), size);
        look_and_free(calloc(size, 1), size);
        look_and_free(aligned_alloc(64, size), size);
        look_and_free(realloc(malloc(size / 2 + 1), size), size);
        look_and_free(realloc(malloc(size * 2), size), size);
    }
    for (size_t size = 40000; size < (64u << 20); size = size * 5 / 3 + 1) {
        look_and_free(malloc(size), size);
        look_and_free(realloc(malloc(size / 2), size), size);
        look_and_free(aligned_alloc(4096, size), size);
    }
    char *freed = malloc(1 << 20);
    volatile uintptr_t address = (uintptr_t)freed;
    free(freed);
    CHECK(hw_object_size((void *)(address + 5)) == 0);
    return 0;
}
