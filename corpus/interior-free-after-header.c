// finds: interior-free
// sizes: 24 3000
// A wrapper keeps a header before what it gives out; free does not know it.
#include "corpus.h"

struct header { size_t size; long tag; };

NOINLINE void *wrapped_malloc(size_t n)
{
    struct header *h = malloc(sizeof *h + n);
    h->size = n;
    return hide(h + 1);
}

int main(void)
{
    char *p = wrapped_malloc(SIZE);
    p[0] = 1;
    BUG(free(p);)
    free(hide((struct header *)hide(p) - 1));
    return 0;
}
