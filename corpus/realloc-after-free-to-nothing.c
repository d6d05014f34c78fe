// finds: realloc-after-free
// sizes: 24 3000
// words: %SIZE%-byte
// realloc(p, 0) as a second free.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    free(hide(p));
    FIX(p = malloc(SIZE);)
    p = realloc(hide(p), 0);
    CHECK(p == NULL BUG(|| 1));
    return 0;
}
