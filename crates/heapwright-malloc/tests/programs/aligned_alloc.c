/* aligned_alloc and memalign: alignments, good, bad and odd. */
#include "check.h"
#include <gnu/libc-version.h>
#include <malloc.h>

int main(void)
{
    for (size_t alignment = 1; alignment <= (size_t)16 << 20; alignment *= 2)
        for (size_t size = 0; size <= 100000; size = size * 3 + 1) {
            char *p = aligned_alloc(alignment, size);
            CHECK(p != NULL);
            CHECK(is_aligned(p, alignment) && is_aligned(p, 16));
            CHECK(malloc_usable_size(p) >= size);
            memset(p, 1, malloc_usable_size(p));
            char *q = memalign(alignment, size);
            CHECK(q != NULL);
            CHECK(is_aligned(q, alignment) && is_aligned(q, 16));
            CHECK(malloc_usable_size(q) >= size);
            memset(q, 2, malloc_usable_size(q));
            free(p);
            free(q);
        }

    /* memalign rounds an alignment up to the next power of two. */
    static const size_t odd[][2] = { { 0, 16 },     { 3, 16 },      { 17, 32 },     { 33, 64 },
                                     { 100, 128 },  { 1000, 1024 }, { 4097, 8192 }, { 70000, 131072 } };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int n = 0; n < 50; n++) {
            char *p = memalign(odd[i][0], 10);
            CHECK(p != NULL);
            CHECK(is_aligned(p, odd[i][1]));
            free(p);
        }
    errno = 0;
    CHECK(memalign(((size_t)1 << 63) + 1, 16) == NULL);
    CHECK(errno == EINVAL);

    /* aligned_alloc refuses such an alignment, as C17 says. glibc does so since 2.38. */
    int major = 0, minor = 0;
    CHECK(sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2);
    if (hw_version || major > 2 || minor >= 38) {
        static const size_t bad[] = { 0, 3, 5, 24, 100, 4097, SIZE_MAX, SIZE_MAX - 1 };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            errno = 0;
            CHECK(aligned_alloc(bad[i], 64) == NULL);
            CHECK(errno == EINVAL);
        }
    }
    return 0;
}
