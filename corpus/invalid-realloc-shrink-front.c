// finds: invalid-realloc
// words: 4 bytes into a 40-byte
// The front of a text is cut off by moving the pointer, the back by realloc.
#include "corpus.h"

int main(void)
{
    char *p = malloc(40), *trimmed = p BUG(+ 4);
    memset(p, ' ', 40);
    char *q = realloc(hide(trimmed), 20);
    FIX(p = q;)
    (void)q;
    free(hide(p));
    return 0;
}
