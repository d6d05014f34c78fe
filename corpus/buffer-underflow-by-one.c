// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(POKE(p - 1, 1);)
    free(hide(p));
    return 0;
}
