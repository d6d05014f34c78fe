// finds: buffer-underflow
// sizes: 4096 65536
// words: %SIZE%-byte
// needs: guard=all
// stack: trimmed
// Spaces are cut off from the right, and nothing else is there to stop at.
#include "corpus.h"

NOINLINE long trimmed(const char *p, long n)
{
    while (FIX(n > 0 &&) ((volatile const char *)p)[n - 1] == ' ')
        n--;
    return n;
}

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, ' ', SIZE);
    trimmed(hide(p), (long)SIZE);
    free(hide(p));
    return 0;
}
