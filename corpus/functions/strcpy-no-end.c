// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strcpy of
// needs: bounds
// A text without an end is copied.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    static char other[1 << 20];
    strcpy(other, hide(p));
    free(hide(p));
    return 0;
}
