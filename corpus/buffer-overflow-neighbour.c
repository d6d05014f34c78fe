// finds: buffer-overflow
// sizes: 24 3000 400000
// Through the end of its own block into the neighbours.
#include "corpus.h"

int main(void)
{
    char *p[8];
    for (int i = 0; i < 8; i++)
        p[i] = memset(malloc(SIZE), 'n', SIZE);
    memset(hide(p[3]), 'X', SIZE BUG(+ 64));
    for (int i = 0; i < 8; i++)
        free(hide(p[i]));
    return 0;
}
