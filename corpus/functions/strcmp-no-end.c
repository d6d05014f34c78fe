// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strcmp of
// needs: bounds
// A text without an end is compared with itself.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    if (strcmp(hide(p), hide(p)) == 7)
        return 1;
    free(hide(p));
    return 0;
}
