/* malloc_usable_size: the program may use all these bytes, and realloc keeps them. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    CHECK(malloc_usable_size(NULL) == 0);
    for (size_t size = 0; size <= 1 << 20; size += 1 + size / 11) {
        char *p = malloc(size);
        CHECK(p != NULL);
        size_t usable = malloc_usable_size(p);
        CHECK(usable >= size && usable > 0);
        paint(p, usable, size);
        /* A program may rely on that size: the block grows in place up to it. */
        char *q = realloc(p, usable);
        CHECK(q != NULL);
        CHECK(is_painted(q, usable, size));
        char *larger = realloc(q, usable + 1000);
        CHECK(larger != NULL);
        CHECK(is_painted(larger, usable, size));
        free(larger);
    }
    return 0;
}
