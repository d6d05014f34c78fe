// finds: use-after-free
// sizes: 24 3000 400000
// words: by puts of
// needs: bounds
// A message is printed after it was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (puts(hide(p)) < 0)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
