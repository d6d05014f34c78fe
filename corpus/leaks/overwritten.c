// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// The only pointer to a block is set to another one.
#include "corpus.h"

char *buffer;

int main(void)
{
    buffer = malloc(SIZE); // LEAK A
    POKE(buffer, 1);
    FIX(free(buffer);)
    buffer = malloc(SIZE);
    POKE(buffer, 2);
    free(buffer);
    return 0;
}
