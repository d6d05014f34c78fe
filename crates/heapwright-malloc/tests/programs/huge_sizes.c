/* Sizes that no machine has: NULL and ENOMEM from every function. */
#include "check.h"
#include <malloc.h>

static void fails(void *p)
{
    OPAQUE(p);
    CHECK(p == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
}

int main(void)
{
    static const size_t huge[] = {
        (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 4096, SIZE_MAX - 65536, SIZE_MAX - 4096,
        SIZE_MAX - 4095,         SIZE_MAX - 64,              SIZE_MAX - 15,    SIZE_MAX - 1,
        SIZE_MAX,
    };
    char *block = malloc(100);
    CHECK(block != NULL);
    paint(block, 100, 1);
    errno = 0;
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        size_t size = huge[i];
        fails(malloc(size));
        fails(calloc(1, size));
        fails(calloc(size, 1));
        fails(realloc(NULL, size));
        fails(realloc(block, size));
        fails(reallocarray(block, 1, size));
        fails(aligned_alloc(16, size));
        fails(aligned_alloc(4096, size));
        fails(memalign(64, size));
        fails(valloc(size));
        fails(pvalloc(size));
        void *p = &p;
        CHECK(posix_memalign(&p, 64, size) == ENOMEM);
        CHECK(p == &p);
        errno = 0;
    }
    /* More than the machine has, but at most the largest pointer difference. */
    fails(malloc(PTRDIFF_MAX));
    fails(malloc(PTRDIFF_MAX - 65536));
    fails(calloc(PTRDIFF_MAX, 1));
    fails(realloc(block, PTRDIFF_MAX));
    fails(aligned_alloc(4096, PTRDIFF_MAX - 65536));
    fails(aligned_alloc((size_t)1 << 62, 16));
    fails(malloc((size_t)1 << 60));

    /* The block that could not grow is unchanged. */
    CHECK(is_painted(block, 100, 1));
    free(block);
    return 0;
}
