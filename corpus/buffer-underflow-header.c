// finds: buffer-underflow
// sizes: 24 3000
// words: %SIZE%-byte
// A block of malloc is taken for one of a wrapper that keeps a header.
#include "corpus.h"

struct header { uint32_t tag; };

NOINLINE void stamp(void *p)
{
    ((volatile struct header *)hide(p))[-1].tag = 0xfeedf00d;
}

int main(void)
{
    struct header *h = malloc(sizeof *h + SIZE);
    char *p = malloc(SIZE);
    stamp(h + 1);
    BUG(stamp(p);)
    free(hide(p));
    free(h);
    return 0;
}
