// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by puts of
// needs: bounds
// A text without an end is printed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (puts(hide(p)) < 0)
        return 1;
    free(hide(p));
    return 0;
}
