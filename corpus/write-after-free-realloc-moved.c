// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// realloc has moved the block; a second pointer has not.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE), *cursor = p + 8;
    p = hide(realloc(hide(p), SIZE * 20));
    FIX(cursor = p + 8;)
    POKE(cursor, 1);
    free(p);
    return 0;
}
