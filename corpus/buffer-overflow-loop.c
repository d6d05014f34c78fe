// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// <= where < was meant.
#include "corpus.h"

NOINLINE void clear(volatile int *a, size_t n)
{
    for (size_t i = 0; i BUG(<=) FIX(<) n; i++)
        a[i] = 7;
}

int main(void)
{
    int *a = malloc(SIZE);
    clear(hide(a), SIZE / sizeof *a);
    free(hide(a));
    return 0;
}
