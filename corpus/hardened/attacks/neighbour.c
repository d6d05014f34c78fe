/* An overflow into what the allocator keeps at a freed neighbour: its header, or its link. The attacker has
   one block, and writes up to the end of the one behind it. */
#include "attack.h"

static bool attempt(void)
{
    enum { SIZE = 48, COUNT = 256 };
    static char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = malloc(SIZE);
    /* A pair that lies side by side; a distance of 128 bytes or less. */
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            ptrdiff_t distance = blocks[j] - blocks[i];
            if (distance < SIZE || distance > 128)
                continue;
            char *mine = hide(blocks[i]);
            free(blocks[j]);
            for (ptrdiff_t at = SIZE; at < distance + SIZE; at += 8)
                *(volatile uint64_t *)(mine + at) = (uint64_t)target;
            return obtains(target, SIZE, 1000);
        }
    return false;
}
