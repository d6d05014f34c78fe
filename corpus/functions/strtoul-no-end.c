// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strtoul of
// needs: bounds
// A number without an end: digits up to the last byte.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (strtoul(hide(p), NULL, 10) == 7)
        return 1;
    free(hide(p));
    return 0;
}
