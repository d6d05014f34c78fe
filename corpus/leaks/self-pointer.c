// leaks: definite 1 SIZE at A in make
// sizes: 24 3000 400000
// An empty intrusive list: its head points to itself, which keeps nothing.
#include "corpus.h"

struct list { struct list *next, *prev; };

NOINLINE struct list *make(void)
{
    struct list *l = malloc(SIZE); // LEAK A
    l->next = l->prev = l;
    return l;
}

int main(void)
{
    struct list *l = make();
    FIX(free(l);)
    POKE(&l, 0);
    return 0;
}
