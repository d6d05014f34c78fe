// finds: use-after-free
// sizes: 24 3000 400000
// words: by memcmp of
// needs: bounds
// A freed key is compared.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, 'a', SIZE - 1);
    p[SIZE - 1] = 0;
    BUG(free(hide(p));)
    static char other[1 << 20];
    if (memcmp(hide(p), other, SIZE) == 7)
        return 1;
    FIX(free(hide(p));)
    return 0;
}
