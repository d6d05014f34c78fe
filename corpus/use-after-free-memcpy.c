// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// The old contents are copied after the old block was freed.
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE), *q = malloc(SIZE * 2);
    BUG(free(hide(p));)
    memcpy(hide(q), hide(p), SIZE);
    FIX(free(hide(p));)
    free(hide(q));
    return 0;
}
