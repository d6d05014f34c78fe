/* posix_memalign: its error is its result; it touches nothing when it fails. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    for (size_t alignment = sizeof(void *); alignment <= (size_t)4 << 20; alignment *= 2)
        for (size_t size = 0; size <= 200000; size = size * 2 + 1) {
            void *p = NULL;
            errno = 11;
            CHECK(posix_memalign(&p, alignment, size) == 0);
            CHECK(errno == 11);
            CHECK(p != NULL);
            CHECK(is_aligned(p, alignment));
            CHECK(malloc_usable_size(p) >= size);
            memset(p, 0xCC, size);
            free(p);
        }

    static const size_t bad[] = { 0, 1, 2, 3, 4, 7, 9, 12, 15, 24, 40, 100, 4095, 4097, SIZE_MAX,
                                  SIZE_MAX - 7, ((size_t)1 << 63) + 8 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *p = &p;
        errno = 11;
        CHECK(posix_memalign(&p, bad[i], 64) == EINVAL);
        CHECK(p == &p);
        CHECK(errno == 11);
    }

    void *p = &p;
    CHECK(posix_memalign(&p, 64, PTRDIFF_MAX) == ENOMEM);
    CHECK(posix_memalign(&p, (size_t)1 << 62, 64) == ENOMEM);
    CHECK(p == &p);
    /* POSIX leaves errno open here. glibc sets it, and so does heapwright. The call goes through a
     * pointer, because compilers know what POSIX says of the name. */
    int (*volatile memalign_at)(void **, size_t, size_t) = posix_memalign;
    errno = 11;
    CHECK(memalign_at(&p, 64, PTRDIFF_MAX) == ENOMEM);
    CHECK(errno == ENOMEM);
    errno = 11;
    CHECK(memalign_at(&p, 24, 64) == EINVAL);
    CHECK(errno == 11);
    return 0;
}
