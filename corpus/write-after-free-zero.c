// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// stack: release
// A struct is cleared after it was released, not before.
#include "corpus.h"

NOINLINE void release(char *p)
{
    FIX(memset(hide(p), 0, SIZE);)
    free(hide(p));
    BUG(memset(hide(p), 0, SIZE);)
}

int main(void)
{
    release(malloc(SIZE));
    return 0;
}
