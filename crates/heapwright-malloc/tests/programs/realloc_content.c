/* realloc: keeps the contents, whether the size grows or shrinks. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    /* From every size to every other. */
    static const size_t sizes[] = {
        1,     2,     15,    16,    17,    24,     31,     32,     33,      48,      64,
        100,   127,   128,   129,   200,   256,    400,    512,    1000,    1024,    1025,
        2000,  4000,  4096,  4097,  10000, 16384,  32768,  32769,  60000,   65536,   65537,
        100000, 131072, 200000, 262144, 262145, 1000000, 1 << 20, 3 << 20, 5 << 20,
    };
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < COUNT; j++) {
            size_t from = sizes[i], to = sizes[j], less = from < to ? from : to;
            char *p = malloc(from);
            CHECK(p != NULL);
            paint(p, from, i);
            errno = 0;
            char *q = realloc(p, to);
            CHECK(q != NULL && errno == 0);
            CHECK(is_aligned(q, 16));
            CHECK(malloc_usable_size(q) >= to);
            CHECK(is_painted(q, less, i));
            paint(q, to, j);
            q = realloc(q, from);
            CHECK(q != NULL);
            CHECK(is_painted(q, less, j));
            free(q);
        }

    /* A block that grows byte by byte, and one that grows by half. */
    char *p = NULL;
    for (size_t size = 1; size < 5000; size++) {
        p = realloc(p, size);
        CHECK(p != NULL);
        p[size - 1] = (char)pattern(9, size - 1);
        if (size % 64 == 0)
            CHECK(is_painted(p, size, 9));
    }
    free(p);
    p = malloc(1000);
    CHECK(p != NULL);
    paint(p, 1000, 3);
    size_t had = 1000;
    for (size_t size = 1500; size < (size_t)96 << 20; size += size / 2) {
        p = realloc(p, size);
        CHECK(p != NULL);
        CHECK(is_painted(p, had, 3));
        if (size < 1 << 20) {
            paint(p, size, 3);
            had = size;
        } else {
            p[size - 1] = 1;
        }
    }
    p = realloc(p, 500);
    CHECK(p != NULL && is_painted(p, 500, 3));
    free(p);

    /* Blocks from the aligned functions can be resized too. */
    for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 4) {
        char *a = memalign(alignment, 300);
        CHECK(a != NULL);
        paint(a, 300, 5);
        a = realloc(a, 70000);
        CHECK(a != NULL && is_painted(a, 300, 5));
        a = realloc(a, 20);
        CHECK(a != NULL && is_painted(a, 20, 5));
        free(a);
    }

    /* realloc of NULL is malloc; realloc to 0 bytes is free. */
    p = realloc(NULL, 0);
    CHECK(p != NULL);
    errno = 7;
    void *gone = realloc(p, 0);
    CHECK(gone == NULL);
    CHECK(errno == 7);
    p = realloc(NULL, 100);
    CHECK(p != NULL && malloc_usable_size(p) >= 100);
    free(p);
    return 0;
}
