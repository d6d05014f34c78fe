// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// stack: length_of
// strncpy left no room for the NUL, and the text has no end.
#include "corpus.h"

NOINLINE size_t length_of(const char *p)
{
    size_t n = 0;
    while (*(const volatile char *)(p + n))
        n++;
    return n;
}

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'n', SIZE);
    FIX(p[SIZE - 1] = 0;)
    CHECK(length_of(hide(p)) >= SIZE - 1);
    free(p);
    return 0;
}
