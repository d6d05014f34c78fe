// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p + SIZE / 2, 1);
    free(hide(p));
    BUG(POKE(p + SIZE / 2, 2);)
    return 0;
}
