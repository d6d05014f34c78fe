// finds: use-after-free
// sizes: 24 3000 400000
// words: by strstr of
// needs: bounds
// A word is looked for in a line that has gone.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (strstr(hide(p), "ba"))
        return 1;
    FIX(free(hide(p));)
    return 0;
}
