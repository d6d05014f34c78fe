// finds: realloc-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    BUG(free(hide(p));)
    char *q = realloc(hide(p), SIZE * 2);
    FIX(free(hide(q));)
    (void)q;
    return 0;
}
