// finds: use-after-free
// sizes: 24 3000 400000
// words: by strtol of
// needs: bounds
// A number is read from a text that was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (strtol(hide(p), NULL, 10) == 7)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
