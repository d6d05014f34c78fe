// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// realloc has moved the block: the old one is freed.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    char *q = realloc(p, SIZE * 20);
    q[0] = 1;
    BUG(free(hide(p));)
    free(hide(q));
    return 0;
}
