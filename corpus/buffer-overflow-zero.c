// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The byte that is written is zero, as fresh memory is.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(POKE(p + SIZE, 0);)
    free(hide(p));
    return 0;
}
