// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strrchr of
// needs: bounds
// The last slash of a name without an end.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (strrchr(hide(p), '/'))
        return 1;
    free(hide(p));
    return 0;
}
