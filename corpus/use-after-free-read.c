// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE);
    FIX(PEEK(p);)
    free(hide(p));
    BUG(PEEK(p);)
    return 0;
}
