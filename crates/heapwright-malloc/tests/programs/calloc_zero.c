/* calloc: zeros, also in memory that was used before; its product may not overflow. */
#include "check.h"
#include <malloc.h>

int main(void)
{
    /* Make much memory dirty and give it back, then ask for zeros of that size. */
    for (size_t size = 1; size <= (size_t)8 << 20; size += 1 + size / 9) {
        size_t many = size > 65536 ? 3 : 20;
        void *blocks[20];
        for (size_t i = 0; i < many; i++) {
            blocks[i] = malloc(size);
            CHECK(blocks[i] != NULL);
            memset(blocks[i], 0xA5, malloc_usable_size(blocks[i]));
        }
        for (size_t i = 0; i < many; i++)
            free(blocks[i]);
        for (size_t i = 0; i < many; i++) {
            blocks[i] = i % 2 ? calloc(1, size) : calloc(size, 1);
            CHECK(blocks[i] != NULL);
            CHECK(is_aligned(blocks[i], 16));
            CHECK(is_zero(blocks[i], size));
            memset(blocks[i], 0x5A, size);
        }
        for (size_t i = 0; i < many; i++)
            free(blocks[i]);
    }

    /* The same with sizes that change, so that pieces of old blocks are reused. */
    uint64_t state = 88172645463325252u;
    enum { SLOTS = 200 };
    static void *slots[SLOTS];
    static size_t sizes[SLOTS];
    for (int i = 0; i < 30000; i++) {
        size_t at = next_random(&state) % SLOTS;
        if (slots[at])
            memset(slots[at], 0xFF, sizes[at]);
        free(slots[at]);
        sizes[at] = next_random(&state) % (next_random(&state) % 16 ? 3000 : 200000);
        slots[at] = calloc(sizes[at], 1);
        CHECK(slots[at] != NULL);
        CHECK(is_zero(slots[at], sizes[at]));
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);

    /* calloc of zero bytes gives a block. */
    void *a = calloc(0, 0), *b = calloc(0, 100), *c = calloc(100, 0);
    CHECK(a && b && c && a != b && b != c && a != c);
    free(a);
    free(b);
    free(c);

    /* Products that wrap around, some of them to something small. */
    static const size_t pairs[][2] = {
        { SIZE_MAX, 2 },          { 2, SIZE_MAX },          { SIZE_MAX / 2 + 1, 2 },
        { (size_t)1 << 32, (size_t)1 << 32 },               { ((size_t)1 << 32) + 1, (size_t)1 << 32 },
        { SIZE_MAX / 3 + 1, 3 },  { SIZE_MAX, SIZE_MAX },   { 16, SIZE_MAX / 16 + 2 },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        errno = 0;
        void *p = calloc(pairs[i][0], pairs[i][1]);
        OPAQUE(p);
        CHECK(p == NULL);
        CHECK(errno == ENOMEM);
    }
    return 0;
}
