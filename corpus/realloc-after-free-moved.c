// finds: realloc-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// realloc's result was not kept: the old pointer is reallocated again.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE), *q;
    q = hide(realloc(hide(p), SIZE * 20));
    FIX(p = q;)
    char *r = realloc(hide(p), SIZE * 40);
    BUG(free(hide(q));)
    FIX(free(hide(r));)
    (void)r;
    return 0;
}
