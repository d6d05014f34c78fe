/* cfree, and C23's free_sized and free_aligned_sized. */
#include "check.h"

void cfree(void *);
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t alignment, size_t size);

int main(void)
{
    errno = 5;
    cfree(NULL);
    free_sized(NULL, 0);
    free_sized(NULL, 100);
    free_aligned_sized(NULL, 64, 128);
    CHECK(errno == 5);

    for (size_t size = 0; size <= 300000; size += 1 + size / 5) {
        char *p = malloc(size);
        CHECK(p != NULL);
        memset(p, 1, size);
        cfree(p);
        p = malloc(size);
        CHECK(p != NULL);
        free_sized(p, size);
        p = calloc(size, 1);
        CHECK(p != NULL);
        free_sized(p, size);
        p = realloc(malloc(size / 2), size ? size : 1);
        CHECK(p != NULL);
        free_sized(p, size ? size : 1);
        for (size_t alignment = 1; alignment <= 65536; alignment *= 4) {
            p = aligned_alloc(alignment, size);
            CHECK(p != NULL);
            free_aligned_sized(p, alignment, size);
        }
    }
    CHECK(errno == 5);

    /* Blocks freed in this way are used again: memory does not grow. */
    for (int i = 0; i < 1000000; i++) {
        void *p = malloc(1000);
        CHECK(p != NULL);
        free_sized(p, 1000);
    }
    return 0;
}
