// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// p = realloc(p, n) with an n that nobody can give: the old block stays, its pointer is gone.
#include "corpus.h"

char *p;

int main(void)
{
    p = malloc(SIZE); // LEAK A
    POKE(p, 1);
    FIX(char *old = p;)
    p = realloc(p, (size_t)hide((void *)(PTRDIFF_MAX - 4096)));
    CHECK(p == NULL);
    FIX(free(old);)
    return 0;
}
