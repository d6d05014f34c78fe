// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// Element -1: a search that found nothing, and was not asked.
#include "corpus.h"

int main(void)
{
    int *a = malloc(SIZE);
    volatile long found = BUG(-1) FIX(0);
    ((volatile int *)hide(a))[found] = 42;
    free(hide(a));
    return 0;
}
