// finds: buffer-overflow
// sizes: 24 3000 400000
// malloc_usable_size is the limit, and this goes over it.
#include "corpus.h"

int main(void)
{
    char *p = malloc(SIZE);
    memset(hide(p), 'u', malloc_usable_size(p) BUG(+ 1));
    free(hide(p));
    return 0;
}
