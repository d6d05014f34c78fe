// finds: buffer-underflow
// sizes: 24 3000 400000
// Sixteen bytes before the block: where the C library keeps its own words.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    POKE(p, 1);
    BUG(memset(hide(p - 16), 'u', 16);)
    free(hide(p));
    return 0;
}
