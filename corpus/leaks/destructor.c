// leaks: definite 1 SIZE at A in finish
// sizes: 24 3000
// As an atexit handler, but the linker's list calls it.
#include "corpus.h"

__attribute__((destructor)) static void finish(void)
{
    char *p = malloc(SIZE); // LEAK A
    POKE(p, 1);
    FIX(free(p);)
}

int main(void)
{
    return 0;
}
