/* The library that chaos.c opens and closes. It allocates when it is opened, used and closed.
 * Without memory it does nothing. */
#include "check.h"

static char *kept[50];
static size_t count;

__attribute__((constructor)) static void begin(void)
{
    for (count = 0; count < 50; count++) {
        kept[count] = malloc(count * 40 + 1);
        if (kept[count])
            paint(kept[count], count * 40 + 1, count);
    }
}

__attribute__((destructor)) static void end(void)
{
    for (size_t i = 0; i < count; i++)
        if (kept[i]) {
            CHECK(is_painted(kept[i], i * 40 + 1, i));
            free(kept[i]);
        }
}

/* Frees some blocks again. Returns a block that the caller frees, perhaps after this library is
 * gone. */
void *plugin_work(uint64_t seed)
{
    uint64_t state = seed | 1;
    for (int i = 0; i < 200; i++) {
        size_t size = next_random(&state) % 3000 + 1;
        char *block = malloc(size);
        if (!block)
            continue;
        paint(block, size, (size_t)i);
        char *longer = realloc(block, size * 2);
        CHECK(is_painted(longer ? longer : block, size, (size_t)i));
        free(longer ? longer : block);
    }
    return malloc(next_random(&state) % 1000 + 8);
}
