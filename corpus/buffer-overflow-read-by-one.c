// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
#include "corpus.h"

int main(void)
{
    char *p = calloc(1, SIZE);
    PEEK(p + SIZE - 1);
    BUG(PEEK(p + SIZE);)
    free(hide(p));
    return 0;
}
