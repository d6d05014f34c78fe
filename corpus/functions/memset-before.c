// finds: buffer-underflow
// sizes: 24 3000 400001
// words: by memset of
// What is filled begins before its block.
#include "../corpus.h"

int main(void)
{
    char *q = calloc(SIZE, 1);
    char *p = calloc(SIZE, 1);
    char *from = p;
    BUG(from -= 4;)
    memset(hide(from), 0, SIZE);
    free(hide(q));
    free(hide(p));
    return 0;
}
