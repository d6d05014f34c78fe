/*
 * Blocks that the C library's own allocator made before the program's malloc was there: small,
 * large (mapped) and aligned blocks. Our malloc must take them, each once.
 */
#include "check.h"
#include <malloc.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

enum { KINDS = 5, SIZES = 20 };
static struct { char *block; size_t size; } blocks[KINDS][SIZES];

/* Before the constructors of all libraries. */
static void early(void)
{
    size_t size = 1;
    for (int i = 0; i < SIZES; i++, size = size * 2 + 1) {
        char *made[KINDS] = { __libc_malloc(size), __libc_calloc(size, 1),
                              __libc_realloc(__libc_malloc(10), size), __libc_memalign(64, size),
                              __libc_memalign(4096, size) };
        /* Some holes. */
        __libc_free(__libc_malloc(size));
        for (int kind = 0; kind < KINDS; kind++) {
            blocks[kind][i].block = made[kind];
            blocks[kind][i].size = size;
        }
    }
}
__attribute__((section(".preinit_array"), used)) static void (*const begin)(void) = early;

int main(void)
{
    /* Later blocks of the C library do not change the known blocks. */
    for (int i = 0; i < 1000; i++)
        __libc_free(__libc_malloc(i * 100));
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < SIZES; i++) {
            char *p = blocks[kind][i].block;
            size_t size = blocks[kind][i].size;
            CHECK(p != NULL && malloc_usable_size(p) >= size);
            paint(p, size, size);
            switch (i % 4) {
            case 0: /* The block grows, and becomes ours. */
                p = realloc(p, size * 2 + 1);
                CHECK(p != NULL && is_painted(p, size, size));
                break;
            case 1:
                p = realloc(p, size / 2 + 1);
                CHECK(p != NULL && is_painted(p, size / 2, size));
                break;
            case 2:
                CHECK(realloc(p, 0) == NULL);
                continue;
            }
            errno = 5;
            free(p);
            CHECK(errno == 5);
        }
    return 0;
}
