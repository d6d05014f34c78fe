// leaks: definite 1 SIZE at A in load
// sizes: 200000 40000000
// valgrind: differs Its blocks lie at low addresses: small numbers look like pointers into one of 40 MB.
// A block so large that it has a mapping of its own, as a file that was read.
#include "corpus.h"

NOINLINE void load(void)
{
    char *image = malloc(SIZE); // LEAK A
    POKE(image, 1);
    POKE(image + SIZE - 1, 1);
    FIX(free(image);)
}

int main(void)
{
    load();
    wipe();
    return 0;
}
