// finds: use-after-free
// sizes: 24 3000 400000
// words: by memcpy of
// needs: bounds
// A block is copied from after it was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    static char other[1 << 20];
    memcpy(other, hide(p), SIZE);
    FIX(free(hide(p));)
    return 0;
}
