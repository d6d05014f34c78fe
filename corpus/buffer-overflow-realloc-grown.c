// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Past the end of a block that grew.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE / 2);
    p = hide(realloc(hide(p), SIZE));
    memset(p, 'g', SIZE BUG(+ 1));
    free(hide(p));
    return 0;
}
