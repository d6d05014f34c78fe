// leaks: definite 1 SIZE at A in work
// sizes: 24 3000
// The pointer is left in a frame far below, in memory of the stack that nobody uses again.
#include "corpus.h"

NOINLINE void work(void)
{
    void *volatile table[2000];
    for (int i = 0; i < 2000; i++)
        table[i] = NULL;
    table[7] = malloc(SIZE); // LEAK A
    FIX(free(table[7]);)
}

int main(void)
{
    work();
    return 0;
}
