// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by memcpy of
// needs: bounds
// One byte more than there is is copied.
#include "../corpus.h"

int main(void)
{
    static char other[1 << 20];
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    memcpy(other, hide(p), n);
    free(hide(p));
    return 0;
}
