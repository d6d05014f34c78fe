// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Downwards, and once too often.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    for (long i = (long)SIZE - 1; i >= 0 BUG(- 1); i--)
        POKE(p + i, 'd');
    free(hide(p));
    return 0;
}
