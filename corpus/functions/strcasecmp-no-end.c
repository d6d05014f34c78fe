// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strcasecmp of
// needs: bounds
// A header without an end is compared without case.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    static char other[1 << 20];
    memset(other, '1', sizeof other - 1);
    if (strcasecmp(hide(p), other) == 7)
        return 1;
    free(hide(p));
    return 0;
}
