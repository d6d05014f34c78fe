// finds: use-after-free
// sizes: 24 3000 400000
// words: by strdup of
// needs: bounds
// A text is copied after it was given back.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    char *copy = strdup(hide(p));
    free(hide(copy));
    FIX(free(hide(p));)
    return 0;
}
