// finds: buffer-overflow
// sizes: 24 3000 400008
// words: %SIZE%-byte
// stack: grows
// Found when the block is reallocated; it is never freed under this address.
#include "corpus.h"

char *kept;

NOINLINE void grows(void)
{
    kept = realloc(hide(kept), SIZE * 2);
}

int main(void)
{
    kept = malloc(SIZE);
    memset(kept, 'r', SIZE BUG(+ 1));
    grows();
    return 0;
}
