// finds: buffer-overflow
// sizes: 24 3000 400001
// words: by memset of
// One byte more than there is is filled.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    memset(hide(p), 1, n);
    free(hide(p));
    return 0;
}
