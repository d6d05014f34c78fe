// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by printf of
// needs: bounds
// A text without an end is printed.
#include "../corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(p, '1', SIZE);
    FIX(p[SIZE - 1] = 0;)
    printf("%s\n", (char *)hide(p));
    free(hide(p));
    return 0;
}
