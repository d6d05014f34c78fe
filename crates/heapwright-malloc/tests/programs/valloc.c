/* valloc and pvalloc: blocks at starts of pages. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size <= 5 * page; size += 1 + size / 7) {
        char *p = valloc(size);
        CHECK(p != NULL && is_aligned(p, page));
        CHECK(malloc_usable_size(p) >= size);
        memset(p, 1, size);
        char *q = pvalloc(size);
        CHECK(q != NULL && is_aligned(q, page));
        size_t whole = (size + page - 1) / page * page;
        CHECK(malloc_usable_size(q) >= whole);
        memset(q, 2, whole);
        free(p);
        free(q);
    }
    return 0;
}
