// leaks: reachable 1 SIZE at A in main
// sizes: 24 3000 400000
// The main thread's own variable holds the only pointer.
#include "corpus.h"

static __thread char *volatile mine;

int main(void)
{
    mine = malloc(SIZE); // LEAK A
    POKE(mine, 1);
    FIX(free(mine);)
    wipe();
    return 0;
}
