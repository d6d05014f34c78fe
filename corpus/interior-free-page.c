// finds: interior-free
// sizes: 20000 400000 3000000
// words: 8192 bytes into a %SIZE%-byte
// The start of a page within a large block.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(free(hide(p + 8192));)
    free(hide(p));
    return 0;
}
