// leaks: definite 1 SIZE at A in main
// sizes: 32 4096 400000
// A pointer to the byte behind a block leads to no byte of it, nor to the block behind it.
#include "corpus.h"

char *end;

int main(void)
{
    char *p = calloc(1, SIZE); // LEAK A
    end = p + SIZE;
    FIX(free(p);)
    p = hide(NULL);
    wipe();
    return 0;
}
