// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// The old length of a block that has shrunk.
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE * 2);
    FIX(PEEK(p + SIZE);)
    p = hide(realloc(p, SIZE));
    BUG(PEEK(p + SIZE);)
    free(hide(p));
    return 0;
}
