// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A text is moved to the left, and by too much.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'm', SIZE);
    memmove(hide(p + 2 BUG(- 4)), hide(p + 2), SIZE - 4);
    free(hide(p));
    return 0;
}
