/* A double free gives a block to two owners: the one can then change what the other relies on. */
#include "attack.h"

static bool attempt(void)
{
    enum { SIZE = 48, COUNT = 1000 };
    char *p = malloc(SIZE), *q = malloc(SIZE);
    free(p);
    free(q);
    free(hide(p));
    static char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(SIZE);
        for (int j = 0; j < i; j++)
            if (blocks[i] == blocks[j])
                return true;
    }
    return false;
}
