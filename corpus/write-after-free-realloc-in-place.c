// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Here the C library would not move the block: the mistake is there all the same.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE), *old = p;
    p = hide(realloc(hide(p), SIZE - 1));
    FIX(old = p;)
    POKE(hide(old), 1);
    free(p);
    return 0;
}
