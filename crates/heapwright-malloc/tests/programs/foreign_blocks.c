/*
 * Blocks of the C library's own allocator, of every kind it has: small, large
 * (mapped), aligned, and of other threads' arenas. Ours must take them.
 */
#include "check.h"
#include <malloc.h>
#include <pthread.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *arena_blocks[2000];

static void *other_arena(void *argument)
{
    for (size_t i = 0; i < 2000; i++) {
        arena_blocks[i] = __libc_malloc(i * 20 + 1);
        CHECK(arena_blocks[i] != NULL);
        memset(arena_blocks[i], 1, i * 20 + 1);
    }
    return argument;
}

static void check(char *p, size_t size)
{
    CHECK(p != NULL);
    CHECK(malloc_usable_size(p) >= size);
    paint(p, size, size);
    errno = 5;
    free(p);
    CHECK(errno == 5);
}

int main(void)
{
    /* Ours among them. */
    for (size_t size = 0; size < 3000000; size += 1 + size / 5) {
        check(malloc(size), size);
        check(__libc_malloc(size), size);
        check(__libc_calloc(size, 1), size);
        check(__libc_realloc(__libc_malloc(10), size ? size : 1), size);
        for (size_t alignment = 16; alignment <= 4096; alignment *= 4)
            check(__libc_memalign(alignment, size), size);

        char *p = __libc_malloc(size);
        CHECK(p != NULL);
        paint(p, size, size);
        p = realloc(p, size * 2 + 1);
        CHECK(p != NULL && is_painted(p, size, size));
        p = realloc(p, size / 2 + 1);
        CHECK(p != NULL && is_painted(p, size / 2, size));
        check(p, size / 2);
        p = __libc_malloc(size);
        CHECK(p != NULL);
        CHECK(realloc(p, 0) == NULL);
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other_arena, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < 2000; i++)
        free(arena_blocks[i]);
    return 0;
}
