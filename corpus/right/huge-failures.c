// What cannot be had is NULL and ENOMEM, in every call, and the old block stays.
// asan: alien
#include "corpus.h"

int main(void)
{
    static const size_t sizes[] = { SIZE_MAX / 2, SIZE_MAX, SIZE_MAX - 4096, PTRDIFF_MAX, (size_t)1 << 47 };
    char *kept = strdup("kept");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        errno = 0;
        CHECK(hide(malloc(n)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hide(calloc(n, 4)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hide(realloc(kept, n)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hide(reallocarray(kept, n, 3)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hide(aligned_alloc(64, n & ~(size_t)63)) == NULL && errno == ENOMEM);
        void *p = kept;
        CHECK(posix_memalign(&p, 64, n) == ENOMEM && p == kept);
    }
    CHECK(strcmp(kept, "kept") == 0);
    free(kept);
    return 0;
}
