// finds: use-after-free
// sizes: 24 3000 400000
// words: by fputs of
// needs: bounds
// A message is printed after it was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (fputs(hide(p), stdout) < 0)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
