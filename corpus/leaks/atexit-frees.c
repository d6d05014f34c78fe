// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// What the program frees at its very end is no leak; the one it forgets is.
#include "corpus.h"

char *kept, *other;

static void goodbye(void)
{
    free(kept);
    FIX(free(other);)
    kept = other = NULL;
}

int main(void)
{
    atexit(goodbye);
    kept = malloc(SIZE);
    other = malloc(SIZE); // LEAK A
    POKE(kept, 1);
    POKE(other, 1);
    return 0;
}
