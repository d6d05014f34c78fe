// finds: buffer-overflow
// sizes: 24 3000 400004
// words: %SIZE%-byte
// Not the first byte after the block is written but the sixth: the bytes
// before it are as they were.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(POKE(p + SIZE + 5, 'X');)
    free(hide(p));
    return 0;
}
