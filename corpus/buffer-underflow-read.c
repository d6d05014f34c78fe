// finds: buffer-underflow
// sizes: 4096 65536 1048576
// words: %SIZE%-byte
// needs: guard=all
// Blocks of whole pages: the guard is right before them.
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE);
    PEEK(p BUG(- 1));
    free(hide(p));
    return 0;
}
