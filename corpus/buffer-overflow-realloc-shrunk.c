// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The block has shrunk, and what writes to it does not know.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE + 8);
    memset(p, 's', SIZE + 8);
    FIX(POKE(p + SIZE, 1);)
    p = hide(realloc(hide(p), SIZE));
    BUG(POKE(p + SIZE, 1);)
    free(hide(p));
    return 0;
}
