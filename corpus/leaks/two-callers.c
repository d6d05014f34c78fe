// leaks: definite 2 2*SIZE at A in xmalloc from B
// leaks: definite 3 3*SIZE at A in xmalloc from C
// sizes: 24 3000
// Two callers of a wrapper leak: two leaks, not one.
#include "corpus.h"

NOINLINE void *xmalloc(size_t n)
{
    void *p = malloc(n); // LEAK A
    if (p == NULL)
        abort();
    POKE(p, 1);
    return p;
}

NOINLINE void one(void)
{
    void *volatile p = xmalloc(SIZE); // LEAK B
    FIX(free(p);)
}

NOINLINE void two(void)
{
    void *volatile p = xmalloc(SIZE); // LEAK C
    FIX(free(p);)
}

int main(void)
{
    one(), one();
    two(), two(), two();
    wipe();
    return 0;
}
