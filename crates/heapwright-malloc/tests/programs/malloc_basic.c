/* malloc: every size gives a block of its own, aligned, and as large as the request. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    enum { COUNT = 512 };
    static void *blocks[COUNT];

    /* Sizes around every boundary a size class could have. */
    for (size_t size = 0; size <= 70000; size += size < 2100 ? 1 : 97) {
        errno = 0;
        unsigned char *p = malloc(size);
        CHECK(p != NULL);
        CHECK(errno == 0);
        CHECK(is_aligned(p, 16));
        CHECK(malloc_usable_size(p) >= size);
        paint(p, malloc_usable_size(p), size);
        CHECK(is_painted(p, malloc_usable_size(p), size));
        free(p);
    }

    /* Blocks of size zero are blocks: distinct, and free takes them. */
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(0);
        CHECK(blocks[i] != NULL);
        for (int j = 0; j < i; j++)
            CHECK(blocks[i] != blocks[j]);
    }
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);

    /* Many at once: none overlaps another. */
    for (size_t size = 1; size <= 40000; size = size * 3 / 2 + 1) {
        for (size_t i = 0; i < COUNT; i++) {
            blocks[i] = malloc(size);
            CHECK(blocks[i] != NULL);
            paint(blocks[i], size, i);
        }
        for (size_t i = 0; i < COUNT; i++)
            CHECK(is_painted(blocks[i], size, i));
        for (size_t i = 0; i < COUNT; i++)
            free(blocks[(i * 7) % COUNT]);
    }

    /* Large ones, written at both ends. */
    for (size_t size = 1 << 16; size <= (size_t)1 << 28; size = size * 2 + 4097) {
        char *p = malloc(size);
        CHECK(p != NULL);
        p[0] = 1;
        p[size - 1] = 2;
        CHECK(p[0] == 1 && p[size - 1] == 2);
        CHECK(malloc_usable_size(p) >= size);
        free(p);
    }
    return 0;
}
