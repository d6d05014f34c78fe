// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by asprintf of
// needs: bounds
// A text without an end becomes a part of another one.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    char *made = NULL;
    if (asprintf(&made, "%s", (char *)hide(p)) < 0)
        return 1;
    free(hide(made));
    free(hide(p));
    return 0;
}
