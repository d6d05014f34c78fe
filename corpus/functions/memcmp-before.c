// finds: buffer-underflow
// sizes: 24 3000 400000
// words: by memcmp of
// needs: bounds
// A comparison begins before its block.
#include "../corpus.h"

int main(void)
{
    static char other[1 << 20];
    char *q = calloc(SIZE, 1);
    char *p = calloc(SIZE, 1);
    char *from = p;
    BUG(from -= 4;)
    if (memcmp(hide(from), other, SIZE) == 7)
        return 1;
    free(hide(q));
    free(hide(p));
    return 0;
}
