// finds: write-after-free
// words: 32-byte
// A timer calls back after its owner was freed.
#include "corpus.h"

struct timer { void (*call)(struct timer *); long fired; long more[2]; };

NOINLINE void fire(struct timer *t)
{
    ((volatile struct timer *)hide(t))->fired = 1;
}

int main(void)
{
    struct timer *t = malloc(sizeof *t);
    void (*call)(struct timer *) = fire;
    BUG(free(hide(t));)
    call(t);
    FIX(free(hide(t));)
    return 0;
}
