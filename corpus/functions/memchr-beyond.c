// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by memchr of
// needs: bounds
// A byte that is not there is looked for one byte too far.
#include "../corpus.h"

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    if (memchr(hide(p), 'x', n))
        return 1;
    free(hide(p));
    return 0;
}
