// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// realloc(p, 0) has freed p and returned NULL.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    char *q = hide(realloc(p, 0 FIX(+ 1)));
    if (q)
        p = q;
    free(hide(p));
    return 0;
}
