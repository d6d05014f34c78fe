// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// stack: sum
#include "corpus.h"

NOINLINE int sum(const volatile char *p)
{
    return p[SIZE / 2] + p[SIZE / 2 + 1];
}

int main(void)
{
    char *p = calloc(1, SIZE);
    FIX(sum(p);)
    free(hide(p));
    BUG(sum(hide(p));)
    return 0;
}
