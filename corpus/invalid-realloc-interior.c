// finds: invalid-realloc
// sizes: 24 3000 400000
// words: %SIZE%-byte
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE), *cursor = p + 8;
    FIX(cursor = p;)
    char *q = realloc(hide(cursor), SIZE * 2);
    FIX(p = q;)
    (void)q;
    free(hide(p));
    return 0;
}
