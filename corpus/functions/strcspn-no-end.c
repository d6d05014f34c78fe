// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strcspn of
// needs: bounds
// A name without an end is measured up to a slash.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (strcspn(hide(p), "/") == 7)
        return 1;
    free(hide(p));
    return 0;
}
