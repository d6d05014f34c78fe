// finds: use-after-free
// sizes: 24 3000 400000
// words: by sscanf of
// needs: bounds
// A line is taken apart after it was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    int number;
    if (sscanf(hide(p), "%d", &number) == 7)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
