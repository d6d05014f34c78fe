// finds: use-after-free
// sizes: 24 3000 400000
// words: by strcmp of
// needs: bounds
// A key that was freed is compared with another one.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    if (strcmp(hide(p), "b") == 7)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
