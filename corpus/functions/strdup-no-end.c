// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strdup of
// needs: bounds
// A text without an end is copied to a new block.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    char *copy = strdup(hide(p));
    free(hide(copy));
    free(hide(p));
    return 0;
}
