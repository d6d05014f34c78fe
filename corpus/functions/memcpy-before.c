// finds: buffer-underflow
// sizes: 24 3000 400000
// words: by memcpy of
// needs: bounds
// A copy begins before its block.
#include "../corpus.h"

int main(void)
{
    static char other[1 << 20];
    char *q = calloc(SIZE, 1);
    char *p = calloc(SIZE, 1);
    char *from = p;
    BUG(from -= 4;)
    memcpy(other, hide(from), SIZE);
    free(hide(q));
    free(hide(p));
    return 0;
}
