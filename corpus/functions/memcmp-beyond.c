// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by memcmp of
// needs: bounds
// One byte more than there is is compared.
#include "../corpus.h"

int main(void)
{
    static char other[1 << 20];
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    if (memcmp(hide(p), other, n) == 7)
        return 1;
    free(hide(p));
    return 0;
}
