// leaks: definite 2 2*32 at A in owner with 1 100
// leaks: indirect 1 100 at B in main
// Two lost blocks share a third: it is counted once.
#include "corpus.h"

struct owner { void *shared; char rest[24]; };

NOINLINE struct owner *owner(void *shared)
{
    struct owner *o = calloc(1, sizeof *o); // LEAK A
    o->shared = shared;
    return o;
}

int main(void)
{
    char *text = calloc(1, 100); // LEAK B
    struct owner *one = owner(text), *two = owner(text);
    FIX(free(one->shared); free(one); free(two);)
    one = two = hide(NULL);
    wipe();
    return 0;
}
