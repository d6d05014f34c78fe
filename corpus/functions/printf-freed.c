// finds: use-after-free
// sizes: 24 3000 400000
// words: by printf of
// needs: bounds
// An argument of a format was freed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    printf("%d: %s\n", 1, (char *)hide(p));
    FIX(free(hide(p));)
    return 0;
}
