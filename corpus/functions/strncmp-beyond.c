// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by strncmp of
// needs: bounds
// Fields without ends are compared by one character too many.
#include "../corpus.h"

int main(void)
{
    static char other[1 << 20];
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    memset(p, 'a', SIZE);
    memset(other, 'a', sizeof other);
    if (strncmp(hide(p), other, n) == 7)
        return 1;
    free(hide(p));
    return 0;
}
