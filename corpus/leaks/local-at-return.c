// leaks: definite 1 SIZE at A in main
// sizes: 24 3000 400000
// A local variable of main is lost when main returns, whatever its dead frame still holds.
#include "corpus.h"

int main(void)
{
    char *volatile held = malloc(SIZE); // LEAK A
    POKE(held, 1);
    FIX(free(held);)
    return 0;
}
