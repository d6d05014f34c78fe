// finds: double-free
// sizes: 64 4096 1048576
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = aligned_alloc(64, SIZE);
    POKE(p, 1);
    free(hide(p));
    BUG(free(hide(p));)
    return 0;
}
