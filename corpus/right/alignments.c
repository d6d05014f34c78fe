// All alignments from 1 to 4 MiB, sizes around them, each call that takes one.
// asan: alien
#include "corpus.h"

static void use(void *p, size_t alignment, size_t n)
{
    CHECK(p != NULL && (uintptr_t)p % alignment == 0 && malloc_usable_size(p) >= n);
    memset(p, 'a', n);
    free(p);
}

int main(void)
{
    for (size_t alignment = 8; alignment <= 4 << 20; alignment *= 2)
        for (size_t k = 0; k < 5; k++) {
            size_t n = k == 0 ? 1 : k == 1 ? 24 : k == 2 ? alignment : k == 3 ? alignment + 1 : 3000;
            void *p = NULL;
            CHECK(posix_memalign(&p, alignment, n) == 0);
            use(p, alignment, n);
            use(memalign(alignment, n), alignment, n);
            use(aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment), alignment, n);
        }
    use(valloc(100), 4096, 100);
    use(pvalloc(100), 4096, 4096);
    void *p = memalign(4096, 100);
    memset(p, 'r', 100);
    p = realloc(p, 10000);
    CHECK(((char *)p)[99] == 'r');
    free(p);
    return 0;
}
