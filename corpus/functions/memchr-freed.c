// finds: use-after-free
// sizes: 24 3000 400000
// words: by memchr of
// needs: bounds
// A byte is looked for in a freed block.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (memchr(hide(p), 'x', SIZE))
        return 1;
    FIX(free(hide(p));)
    return 0;
}
