// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// Through the pointer from before the block grew.
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE), *old = p;
    p = hide(realloc(hide(p), SIZE * 20));
    FIX(old = p;)
    PEEK(hide(old));
    free(p);
    return 0;
}
