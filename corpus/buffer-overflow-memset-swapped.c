// finds: buffer-overflow
// sizes: 24 40 56
// words: %SIZE%-byte
// memset's arguments are swapped: 'A' bytes of the value SIZE.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(hide(p), BUG((int)SIZE, 'A') FIX('A', SIZE));
    free(hide(p));
    return 0;
}
