// leaks: definite 1 SIZE at A in goodbye
// sizes: 24 3000 400000
// A function that runs when the program ends loses a block.
#include "corpus.h"

static void goodbye(void)
{
    char *p = malloc(SIZE); // LEAK A
    POKE(p, 1);
    FIX(free(p);)
}

int main(void)
{
    atexit(goodbye);
    return 0;
}
