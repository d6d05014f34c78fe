/* Sizes and alignments against a model: 100,000 random operations with contents checked. */
#include "check.h"
#include <malloc.h>

enum { SLOTS = 1500 };
static struct {
    void *block;
    size_t size, seed, alignment;
} slots[SLOTS];

int main(void)
{
    uint64_t state = 0x9E3779B97F4A7C15u;
    size_t held = 0;
    for (size_t step = 0; step < 100000; step++) {
        size_t at = next_random(&state) % SLOTS;
        size_t size = next_random(&state) % ((size_t)1 << (next_random(&state) % 17));
        if (next_random(&state) % 1000 == 0)
            size = next_random(&state) % (4 << 20);
        size_t kind = next_random(&state) % 8;

        if (slots[at].block) {
            CHECK(is_painted(slots[at].block, slots[at].size, slots[at].seed));
            CHECK(is_aligned(slots[at].block, slots[at].alignment));
            held -= slots[at].size;
            if (kind == 0 && size > 0) {
                size_t less = size < slots[at].size ? size : slots[at].size;
                void *p = realloc(slots[at].block, size);
                CHECK(p != NULL);
                CHECK(is_painted(p, less, slots[at].seed));
                slots[at].block = p;
                slots[at].size = size;
                slots[at].alignment = 16;
                paint(p, size, slots[at].seed);
                held += size;
                continue;
            }
            free(slots[at].block);
            slots[at].block = NULL;
            slots[at].size = 0;
            if (held > (size_t)256 << 20 || kind < 4)
                continue;
        }
        size_t alignment = 16;
        void *p = NULL;
        if (kind == 1) {
            alignment = (size_t)8 << (next_random(&state) % 14);
            CHECK(posix_memalign(&p, alignment, size) == 0);
        } else if (kind == 2) {
            p = calloc(1, size);
            CHECK(p != NULL && is_zero(p, size));
        } else {
            p = malloc(size);
        }
        CHECK(p != NULL);
        CHECK(is_aligned(p, alignment) && is_aligned(p, 16));
        CHECK(malloc_usable_size(p) >= size);
        slots[at].block = p;
        slots[at].size = size;
        slots[at].alignment = alignment;
        slots[at].seed = step;
        paint(p, size, step);
        held += size;
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].block)
            CHECK(is_painted(slots[i].block, slots[i].size, slots[i].seed));
        free(slots[i].block);
    }
    return 0;
}
