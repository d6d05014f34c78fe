// finds: interior-free
// sizes: 24 3000
// words: %SIZE%-byte
// The loop moved the only pointer to the block.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE), *start = p;
    memset(p, ' ', SIZE - 1);
    p[SIZE - 1] = 0;
    for (int i = 0; i < 7; i++)
        p++;
    FIX(p = start;)
    free(hide(p));
    BUG(free(hide(start));)
    return 0;
}
