// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The allocator itself is asked about a freed block: no guard is needed.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    BUG(free(hide(p));)
    volatile size_t n = malloc_usable_size(hide(p));
    (void)n;
    FIX(free(hide(p));)
    return 0;
}
