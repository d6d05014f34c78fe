// finds: interior-free
// sizes: 24 3000 400000
// words: 16 bytes into a %SIZE%-byte
// An address that could be a block's, as far as its alignment tells.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(free(hide(p + 16));)
    free(hide(p));
    return 0;
}
